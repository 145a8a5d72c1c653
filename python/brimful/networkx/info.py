"""The description of the backend that NetworkX reads at its own import; it loads nothing else."""

from __future__ import annotations

from typing import Any

#: The modules of `brimful.networkx.functions`, by the names of NetworkX's functions there.
FUNCTIONS = {
    name: module
    for module, names in {
        "link_analysis": ("pagerank", "hits"),
        "components": (
            "connected_components",
            "is_connected",
            "is_strongly_connected",
            "is_weakly_connected",
            "node_connected_component",
            "number_connected_components",
            "number_strongly_connected_components",
            "number_weakly_connected_components",
            "strongly_connected_components",
            "weakly_connected_components",
        ),
        "distances": (
            "bellman_ford_path_length",
            "descendants",
            "dijkstra_path_length",
            "has_path",
            "multi_source_dijkstra_path_length",
            "single_source_bellman_ford_path_length",
            "single_source_shortest_path_length",
            "single_target_shortest_path_length",
        ),
        "paths": (
            "multi_source_dijkstra",
            "shortest_path",
            "single_source_bellman_ford",
            "single_source_shortest_path",
        ),
        "composed": (
            "all_pairs_bellman_ford_path",
            "all_pairs_bellman_ford_path_length",
            "all_pairs_dijkstra",
            "all_pairs_dijkstra_path",
            "all_pairs_dijkstra_path_length",
            "all_pairs_shortest_path",
            "all_pairs_shortest_path_length",
            "average_clustering",
            "average_shortest_path_length",
            "bellman_ford_path",
            "closeness_centrality",
            "dijkstra_path",
            "harmonic_centrality",
            "k_core",
            "k_corona",
            "k_crust",
            "k_shell",
            "multi_source_dijkstra_path",
            "periphery",
            "radius",
            "shortest_path_length",
            "single_source_bellman_ford_path",
            "single_source_dijkstra",
            "single_source_dijkstra_path",
            "single_source_dijkstra_path_length",
        ),
        "looked_up": (
            "astar_path",
            "astar_path_length",
            "bfs_edges",
            "bfs_layers",
            "bidirectional_dijkstra",
            "bidirectional_shortest_path",
            "common_neighbor_centrality",
            "descendants_at_distance",
            "ego_graph",
            "is_isolate",
            "preferential_attachment",
        ),
        "cores": ("core_number",),
        "extents": ("diameter", "eccentricity"),
        "prediction": (
            "adamic_adar_index",
            "jaccard_coefficient",
            "resource_allocation_index",
        ),
        "structure": ("articulation_points", "bridges", "has_bridges", "k_truss", "local_bridges"),
        "cluster": ("clustering", "transitivity", "triangles"),
        "walks": ("number_of_walks",),
        "degrees": (
            "degree_centrality",
            "in_degree_centrality",
            "is_empty",
            "isolates",
            "number_of_isolates",
            "number_of_selfloops",
            "out_degree_centrality",
        ),
    }.items()
    for name in names
}


#: Settings, as `networkx.config.backends.brimful`: the budget of converted graphs, and the least
#: number of edges of a graph that NetworkX converts of its own accord.
DEFAULTS: dict[str, Any] = {"budget": None, "least_edges": 100_000}

_NOTES = {
    "composed": "NetworkX's own code; the searches that it consists of run in brimful.",
    "looked_up": "NetworkX's own code, which looks up the edges that it reads.",
}


def get_info() -> dict[str, Any]:
    """Return NetworkX's description of the backend: the entry point of `networkx.backend_info`."""
    return {
        "backend_name": "brimful",
        "project": "brimful",
        "package": "brimful",
        "short_summary": "Graphs larger than memory, in a memory budget that you set.",
        "default_config": dict(DEFAULTS),
        "functions": {
            name: {"additional_docs": _NOTES[module]} if module in _NOTES else {}
            for name, module in FUNCTIONS.items()
        },
    }
