"""Runs and imports on a Ray cluster, which all tests of this package share."""
