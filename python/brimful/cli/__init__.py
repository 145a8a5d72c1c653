"""The command line, one file per verb; no other module prints."""

from __future__ import annotations

# Nothing is imported before `main` has seen to Ctrl-C; this is not that of `typing`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    # The part of `signal` that needs no import of others: until the handlers of `app` are there,
    # Ctrl-C ends the process without a traceback.
    import _signal  # type: ignore[import-not-found]

    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from brimful.cli import app

    return app.main(arguments)


__all__ = ["main"]
