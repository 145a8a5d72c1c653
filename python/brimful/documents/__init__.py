"""Documents of databases: the edges of imports, and fields that results are written to."""

from __future__ import annotations

#: The schemes of URLs that name documents.
SCHEMES = ("mongodb", "mongodb+srv", "orientdb")


def is_database(path: str) -> bool:
    """Return whether `path` is the URL of documents in a database."""
    return path.partition("://")[0].lower() in SCHEMES and "://" in path
