"""The values of options of the Python API."""

from __future__ import annotations

from typing import Literal

#: Synchronous supersteps, or sweeps that receive signals at once.
Mode = Literal["sync", "async"]
#: Bits of a signal in memory.
Precision = Literal["f64", "f32"]
#: Which edges of a vertex.
Direction = Literal["out", "in"]
#: Treatment of lines or rows that are no edges.
OnError = Literal["fail", "skip"]
#: Weights of the input, or computed from the two ids.
Weights = Literal["input", "hash"]
#: Treatment of self-loops.
SelfLoops = Literal["keep", "drop"]
#: Treatment of edges with the same ends.
Duplicates = Literal["keep", "drop", "sum", "min"]
#: How ids are read.
Ids = Literal["auto", "int", "string"]
#: An index of a graph.
IndexName = Literal["in", "reverse"]
#: Where lists of waiting vertices and signals lie.
Lists = Literal["memory", "disk"]
#: The order in which vertices of a store act in the asynchronous mode.
Scheduler = Literal["latency", "throughput"]
