"""Folders of kept vertices.

A command checks them before its budget, so this module loads no others but those of options.
"""

from __future__ import annotations

import os
from typing import Any

from brimful.errors import BrimfulError, UsageError
from brimful.io.formats import refuse_folder_in_graph, refuse_in_graph
from brimful.io.redaction import redacted_word
from brimful.options.runs import store_url


def describe_store(url: str) -> dict[str, Any] | None:
    """Return the description of a store in a folder; None if there is none.

    Raises:
        UsageError: The URL names no store, or none that can be kept.
    """
    from brimful import _native

    where = _location(url)
    return _native.KeptVertexStore.describe(where["url"], where["opener"])


def _location(url: str) -> dict[str, Any]:
    """Return a store as the native module takes it; only a plug-in needs the registry."""
    from brimful import _native

    own = store_url(url, "url") or ""
    if own.partition(":")[0] in {form.partition(":")[0] for form in _native.stores()}:
        return {"url": own, "opener": None}
    from brimful.catalog import store_location

    return store_location(own, keeps=True)


def check_outside(url: str) -> list[str]:
    """Return the folders of a store, none of which is a graph or inside one.

    Raises:
        UsageError: A folder is a graph, or inside one.
    """
    folders: list[str] = _location(url)["url"].partition(":")[2].split(",")
    for folder in folders:
        refuse_in_graph(folder)
        if _opens_as_graph(folder):
            refuse_folder_in_graph(folder)
    return folders


def check_new(url: str) -> None:
    """Refuse a new store whose folder is in use.

    A store that was not loaded to the end is replaced.

    Raises:
        UsageError: The folder has a store, a graph or other files, or is inside a graph.
    """
    folders = check_outside(url)
    stored = describe_store(url)
    if stored is not None and stored["is_loading"]:
        return
    if stored is not None:
        raise UsageError(
            f"there is a store at {redacted_word(url)} already; open it, or remove its folder"
        )
    for folder in folders:
        # A killed run leaves a folder of this name, which the next run removes. A refused store
        # leaves its lock.
        names = os.listdir(folder) if os.path.isdir(folder) else []
        others = [name for name in names if name != "lock" and not name.startswith(".brimful-run-")]
        if others:
            raise UsageError(
                f"{folder} has other files, such as {min(others)}; name another folder for the "
                "store"
            )


def _opens_as_graph(folder: str) -> bool:
    """Return whether a folder is a graph, and not a store, which has the same pointer."""
    from brimful import _native

    try:
        _native.Graph.open(folder)
    except BrimfulError:
        return False
    return True
