"""Makes a new graph in a hidden folder next to its place; it appears complete or not at all.

Invariant: the next import removes the folder if this process is killed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from brimful.errors import StoreIoError, UsageError
from brimful.io.regular import folder_around, sync_folder

#: Prefix of the hidden folder.
_HIDDEN = ".brimful-import-"


@contextlib.contextmanager
def whole_graph(out: str, *, replace: bool = False) -> Iterator[str]:
    """Yield a hidden path for a new graph; after the block the graph appears at `out`, durable.

    With `replace`, the old graph is moved away first and then removed. It is moved back if the new
    one cannot take its place.

    Raises:
        UsageError: Something is at `out`, without `replace`.
        StoreIoError: The graph cannot be made there.
    """
    from brimful import _native

    if not replace:
        refuse_existing(out)
    parent = folder_around(out, "create")
    try:
        folder = _native.TemporaryFolder(parent, _HIDDEN)
    except StoreIoError as error:
        # The folder of the graph is there, although the sentence names it.
        reason = str(error).removeprefix(f"cannot create {parent}: ")
        raise StoreIoError(f"cannot create {out}: {reason}", error.errno) from None
    try:
        place = os.path.join(folder.path, os.path.basename(os.path.abspath(out)))
        yield place
        old = os.path.join(folder.path, "replaced")
        try:
            if replace and os.path.lexists(out):
                _rename(out, old, parent)
            refuse_existing(out)
            _rename(place, out, parent)
        except BaseException:
            if os.path.lexists(old) and not os.path.lexists(out):
                _rename(old, out, parent)
            raise
    finally:
        folder.close()


def refuse_existing(out: str) -> None:
    """Refuse to overwrite a file or folder.

    Raises:
        UsageError: The file or folder exists.
    """
    if os.path.lexists(out):
        raise UsageError(f"{out} already exists; remove it or choose another name")


def _rename(place: str, out: str, parent: str) -> None:
    """Rename a complete graph, durably; `parent` is the folder of one of the names."""
    try:
        os.rename(place, out)
        sync_folder(parent)
    except OSError as error:
        raise StoreIoError(f"cannot create {out}: {error.strerror}", error.errno) from None
