"""The command line, one file per verb; no other module prints."""

from __future__ import annotations

# Not imported from `typing`, whose slow import Ctrl-C could interrupt with a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    # As in `brimful`, for a caller of another name. `_signal`, unlike `signal`, imports nothing.
    import _signal  # type: ignore[import-not-found]

    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from brimful.cli import app

    return app.main(arguments)


__all__ = ["main"]
