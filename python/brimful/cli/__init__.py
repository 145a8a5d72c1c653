"""The command line: one file per verb, and only here anything is printed."""

from brimful.cli.app import main

__all__ = ["main"]
