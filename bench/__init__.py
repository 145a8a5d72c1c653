"""Benchmarks: each runs the real command line and prints a Markdown table.

`python -m bench --help` lists them. A table names the machine, the versions, the precision and the
exact commands, and holds every figure against its target and against a reference that was measured
in the same run. Nothing here is a test: a missed target is printed, a failed command is an error.
"""
