"""NetworkX's own functions that read the edges of few nodes: they look these up on disk."""

from __future__ import annotations

import networkx as nx

from brimful.networkx.function import borrowed

adamic_adar_index = borrowed(nx.adamic_adar_index, reads_a_part=True)
astar_path = borrowed(nx.astar_path, reads_a_part=True)
astar_path_length = borrowed(nx.astar_path_length, reads_a_part=True)
bfs_edges = borrowed(nx.bfs_edges, reads_a_part=True)
bfs_layers = borrowed(nx.bfs_layers, reads_a_part=True)
bidirectional_dijkstra = borrowed(nx.bidirectional_dijkstra, reads_a_part=True)
bidirectional_shortest_path = borrowed(nx.bidirectional_shortest_path, reads_a_part=True)
common_neighbor_centrality = borrowed(nx.common_neighbor_centrality, reads_a_part=True)
descendants_at_distance = borrowed(nx.descendants_at_distance, reads_a_part=True)
ego_graph = borrowed(nx.ego_graph, reads_a_part=True)
is_isolate = borrowed(nx.is_isolate, reads_a_part=True)
jaccard_coefficient = borrowed(nx.jaccard_coefficient, reads_a_part=True)
preferential_attachment = borrowed(nx.preferential_attachment, reads_a_part=True)
resource_allocation_index = borrowed(nx.resource_allocation_index, reads_a_part=True)
