"""NetworkX's own functions that call functions which run in brimful.

Most of them run once for each node, as in NetworkX.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from brimful.networkx.function import borrowed
from brimful.networkx.functions.cluster import DIRECTED, WEIGHTED
from brimful.networkx.functions.distances import BACKWARDS, towards


def _all_pairs_at_once(call: Mapping[str, Any]) -> str | None:
    if call["method"] in ("floyd-warshall", "floyd-warshall-numpy"):
        return "brimful searches from each node, and keeps no matrix of distances"
    return None


def _backwards(call: Mapping[str, Any]) -> str | None:
    """Refuse a choice of targets: NetworkX searches back from them if they are few."""
    return None if call["nbunch"] is None else BACKWARDS(call)


all_pairs_bellman_ford_path = borrowed(nx.all_pairs_bellman_ford_path)
all_pairs_bellman_ford_path_length = borrowed(nx.all_pairs_bellman_ford_path_length, reads="often")
all_pairs_dijkstra = borrowed(nx.all_pairs_dijkstra)
all_pairs_dijkstra_path = borrowed(nx.all_pairs_dijkstra_path)
all_pairs_dijkstra_path_length = borrowed(nx.all_pairs_dijkstra_path_length, reads="often")
all_pairs_shortest_path = borrowed(nx.all_pairs_shortest_path)
all_pairs_shortest_path_length = borrowed(nx.all_pairs_shortest_path_length, reads="often")
average_clustering = borrowed(nx.average_clustering, DIRECTED, WEIGHTED, reads="often")
average_shortest_path_length = borrowed(
    nx.average_shortest_path_length, _all_pairs_at_once, reads="often"
)
bellman_ford_path = borrowed(nx.bellman_ford_path)
closeness_centrality = borrowed(nx.closeness_centrality, BACKWARDS, reads="often")
dijkstra_path = borrowed(nx.dijkstra_path)
harmonic_centrality = borrowed(nx.harmonic_centrality, _backwards, reads="often")
k_core = borrowed(nx.k_core)
k_corona = borrowed(nx.k_corona)
k_crust = borrowed(nx.k_crust)
k_shell = borrowed(nx.k_shell)
multi_source_dijkstra_path = borrowed(nx.multi_source_dijkstra_path)
periphery = borrowed(nx.periphery, reads="often")
radius = borrowed(nx.radius, reads="often")
shortest_path_length = borrowed(nx.shortest_path_length, towards)
single_source_bellman_ford_path = borrowed(nx.single_source_bellman_ford_path)
single_source_dijkstra = borrowed(nx.single_source_dijkstra)
single_source_dijkstra_path = borrowed(nx.single_source_dijkstra_path)
single_source_dijkstra_path_length = borrowed(nx.single_source_dijkstra_path_length)
