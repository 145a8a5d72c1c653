"""Inputs and outputs: which format a file has, where it lies, and how it is read and written."""
