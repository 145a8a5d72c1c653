"""The opening of a collection of documents by its URL."""

from __future__ import annotations

import threading

from brimful.documents.collection import Documents
from brimful.stores.base import Opening


def open_collection(url: str, stopped: threading.Event) -> Documents:
    """Connect to the documents at `url`; `stopped` ends a wait for a server that is away.

    Raises:
        UsageError: The URL has another form, or the server refused user, password or database.
        MissingPackageError: The driver is not installed.
        StoreIoError: The server did not answer.
    """
    # Each driver is imported only for its own URLs.
    opening = Opening(url, 0, 0, stopped=stopped)
    if url.lower().startswith("orientdb:"):
        from brimful.documents.orientdb import OrientDocuments

        return OrientDocuments(opening)
    from brimful.documents.mongodb import MongoDocuments

    return MongoDocuments(opening)
