"""NetworkX's own functions that read the edges of few nodes: they look these up on disk."""

from __future__ import annotations

import networkx as nx

from brimful.networkx.function import borrowed

astar_path = borrowed(nx.astar_path, reads="few")
astar_path_length = borrowed(nx.astar_path_length, reads="few")
bfs_edges = borrowed(nx.bfs_edges, reads="few")
bfs_layers = borrowed(nx.bfs_layers, reads="few")
bidirectional_dijkstra = borrowed(nx.bidirectional_dijkstra, reads="few")
bidirectional_shortest_path = borrowed(nx.bidirectional_shortest_path, reads="few")
common_neighbor_centrality = borrowed(nx.common_neighbor_centrality, reads="few")
descendants_at_distance = borrowed(nx.descendants_at_distance, reads="few")
ego_graph = borrowed(nx.ego_graph, reads="few")
is_isolate = borrowed(nx.is_isolate, reads="few")
preferential_attachment = borrowed(nx.preferential_attachment, reads="few")
