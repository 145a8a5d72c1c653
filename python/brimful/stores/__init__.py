"""Stores of vertices from outside: databases, and classes of your own.

A store keeps the vertices of a run as records by key. brimful calls it in batches, reads the
records of the next vertices together, and writes changed ones together. A class derived from
`Store` becomes a scheme of store URLs through the entry-point group `brimful.stores`, or through
`register`; `python -m brimful.conformance URL` checks it.
"""

from __future__ import annotations

from brimful.stores.base import Opening, Store
from brimful.stores.registry import register

__all__ = ["Opening", "Store", "register"]
