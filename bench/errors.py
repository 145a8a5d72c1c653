"""The two ways in which a measurement gives no figure."""

from __future__ import annotations


class NotMeasured(Exception):
    """This machine cannot measure it; the reason goes into the cell."""


class CommandFailed(Exception):
    """A command failed; the reason goes into the cell and the program exits with 1."""
