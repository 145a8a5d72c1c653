"""The command line: one file per verb, and only here anything is printed."""

from __future__ import annotations

import signal
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    # While the rest is imported, Ctrl-C ends the process without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from brimful.cli import app

    return app.main(arguments)


__all__ = ["main"]
