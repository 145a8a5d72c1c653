"""The command line, one file per verb; no other module prints."""

from __future__ import annotations

# Defined here, not imported from `typing`: nothing may be imported before `main` handles Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    # `_signal`, unlike `signal`, imports nothing else. Until `app` installs its handlers, Ctrl-C
    # ends the process without a traceback.
    import _signal  # type: ignore[import-not-found]

    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from brimful.cli import app

    return app.main(arguments)


__all__ = ["main"]
