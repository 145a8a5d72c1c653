"""The words that options of the Python API are chosen from."""

from __future__ import annotations

from typing import Literal

#: Supersteps, or vertices that hear signals at once.
Mode = Literal["sync", "async"]
#: Bits of a signal in memory.
Precision = Literal["f64", "f32"]
#: How edges lie on disk during a run.
Layout = Literal["shards", "coupled", "decoupled"]
#: Which edges of a vertex.
Direction = Literal["out", "in"]
#: What becomes of an input that has lines or rows which are no edges.
OnError = Literal["fail", "skip"]
#: Weights of the input, or made of the two ids.
Weights = Literal["input", "hash"]
#: What becomes of self-loops.
SelfLoops = Literal["keep", "drop"]
#: What becomes of edges with the same ends.
Duplicates = Literal["keep", "drop", "sum", "min"]
#: How ids are read.
Ids = Literal["auto", "int", "string"]
#: An index of a graph.
IndexName = Literal["in", "reverse"]
#: Where lists of vertices and of signals are.
Lists = Literal["memory", "disk"]
