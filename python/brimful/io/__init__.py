"""Inputs and outputs: formats, places, reading and writing."""
