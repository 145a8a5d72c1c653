"""Paths, reports and plots of a graph in the Python API, and the counts that these need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

import brimful
from brimful.catalog import algorithm_request
from brimful.ids import VertexId, Vertices, several_ids
from brimful.memory import require_runs
from brimful.options.checks import flag
from brimful.options.described import described
from brimful.options.runs import AskedOptions
from brimful.options.table import WorkOptions, checked, texts
from brimful.packages import matplotlib
from brimful.paths import shortest_path, shortest_paths
from brimful.reporting import shows_progress
from brimful.resources import Resources
from brimful.result import computed_on

if TYPE_CHECKING:
    from brimful.report.facts import Census

#: Descriptions of the parameters of paths and reports.
_LOOK = texts(WorkOptions) | {
    "source": "Id of the vertex where the path begins.",
    "target": "Id of the vertex where it ends.",
}

#: The most arcs of a graph whose degrees a notebook draws; counting them takes a moment.
_DRAWN_ARCS = 10_000_000


class GraphQueries:
    """Paths, reports and plots of a `Graph`, each of which runs an algorithm."""

    @shows_progress
    @described(_LOOK, "vertex", "closed graph", "budget", "corrupt", "io")
    def shortest_path(
        self,
        source: VertexId,
        target: VertexId,
        *,
        weighted: bool = False,
        coordinates: Mapping[Any, Sequence[float]] | None = None,
        **options: Unpack[WorkOptions],
    ) -> list[Any] | None:
        """Return a shortest path along edges.

        Where the reverse index exists, as in an undirected graph, two searches from both ends look
        up the edges of few vertices. `bfs` (`sssp` with weights) finds the path if there is no
        reverse index, or if many vertices are near the ends. With `coordinates` one search goes
        towards the target (A*; Hart, Nilsson, Raphael 1968), even without the reverse index.

        Of several shortest paths, the result has the fewest edges, and then, from the target back,
        the vertices with the smallest ids. Rounding can make paths of equal length differ, and
        so change which one is returned. With `weighted` a directed graph needs its reverse index,
        see `in_neighbors`.

        Args:
            weighted: The length of a path is the sum of its weights instead of its edges.
            coordinates: The place of each vertex, by its id, in the unit of the weights: no edge
                may be shorter than the straight line between its ends. Needs `weighted`.

        Returns:
            The vertices from `source` to `target`; None if no path leads there.

        Raises:
            UsageError: `weighted`, and the graph has no weights; or `coordinates` without
                `weighted`, or of another type.
            InputError: `weighted`, and a weight is negative; or a vertex on the way has no
                coordinates, or an edge there is shorter than the straight line.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [1, 2, 1], "target": [2, 3, 3], "weight": [1.0, 1.0, 5.0]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.shortest_path(1, 3), graph.shortest_path(1, 3, weighted=True)
        ...     graph.shortest_path(3, 1)
        ([1, 3], [1, 2, 3])
        """
        resources = _resources(options, "shortest_path", "weighted", "coordinates")
        graph = cast("brimful.Graph", self)
        is_weighted = flag(weighted, "weighted")
        return shortest_path(graph, source, target, is_weighted, resources, coordinates)

    @shows_progress
    @described(_LOOK, "vertex", "closed graph", "budget", "corrupt", "io")
    def shortest_paths(
        self,
        source: VertexId,
        target: VertexId,
        k: int = 10,
        *,
        weighted: bool = False,
        **options: Unpack[WorkOptions],
    ) -> list[tuple[float, list[Any]]]:
        """Return the `k` shortest paths along edges that visit no vertex twice (Yen 1971).

        One run of `bfs` or `sssp` bounds the searches, which look up the edges to vertices near the
        paths. A directed graph needs its reverse index, see `in_neighbors`. Parallel edges make one
        path, of the least weight.

        Args:
            k: Number of paths, at most.
            weighted: The length of a path is the sum of its weights instead of its edges.

        Returns:
            Pairs of a length and the vertices from `source` to `target`, shortest first; fewer than
            `k` if there are no more.

        Raises:
            UsageError: `weighted`, and the graph has no weights; or `k` is not a whole number.
            InputError: `weighted`, and a weight is negative.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [1, 2, 1], "target": [2, 3, 3]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.shortest_paths(1, 3)
        [(1, [1, 3]), (2, [1, 2, 3])]
        """
        resources = _resources(options, "shortest_paths", "weighted")
        graph, is_weighted = cast("brimful.Graph", self), flag(weighted, "weighted")
        return shortest_paths(graph, source, target, k, is_weighted, resources)

    @shows_progress
    @described(texts(WorkOptions), "closed graph", "budget", "corrupt", "io")
    def report(self, *, around: Vertices = (), **options: Unpack[WorkOptions]) -> brimful.Report:
        """Return a report with figures of the graph, which a notebook shows.

        Properties, degree distribution, component sizes, the vertices of the highest degree, and
        drawings of neighborhoods. Runs `degrees` and `connected_components`.

        Args:
            around: A vertex whose neighborhood is drawn, or several; none: the two of the highest
                degree.

        Returns:
            A `Report`; its `write` makes a file that needs no network.

        Raises:
            MissingPackageError: Matplotlib or Jinja is not installed: `brimful[report]`.
            NotFoundError: The graph has no vertex of `around` (also a `KeyError`).

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        ...     "Degree distribution" in graph.report(around=[0]).html
        True
        """
        resources = _resources(options, "report", "around")
        from brimful.report import html as report_html

        graph, drawn = cast("brimful.Graph", self), several_ids(around, "around")
        report_html.check_packages()
        for vertex in drawn:
            # Raises before the runs if the graph lacks a vertex.
            graph.degree(vertex)
        return report_html.of_graph(graph, census_of(graph, resources), drawn)

    @shows_progress
    @described(texts(WorkOptions), "closed graph", "budget", "corrupt", "io")
    def plot_degrees(
        self, ax: matplotlib.axes.Axes | None = None, **options: Unpack[WorkOptions]
    ) -> matplotlib.axes.Axes:
        """Draw the number of vertices of each degree, on logarithmic axes.

        Args:
            ax: Axes to draw on; None: new ones of `matplotlib.pyplot`.

        Returns:
            The `matplotlib.axes.Axes`.

        Raises:
            MissingPackageError: Matplotlib is not installed: `brimful[report]`.

        >>> import brimful as bf, pyarrow as pa
        >>> from matplotlib.figure import Figure
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        ...     graph.plot_degrees(Figure().subplots()).get_xlabel()
        'degree'
        """
        from brimful.report import figures

        drawn_on, resources = figures.axes(ax), _resources(options, "plot_degrees", "ax")
        counts = _degree_counts(cast("brimful.Graph", self), resources)
        return figures.plot_counts(drawn_on, counts, "degree", "vertices")


def _resources(options: WorkOptions, caller: str, *others: str) -> Resources:
    return Resources.of(checked(WorkOptions, options, caller, others))


def census_of(graph: brimful.Graph, resources: Resources) -> Census:
    """Count the degrees and components of a graph."""
    from brimful.report import facts

    _require_census(graph, resources)
    components = computed_on(graph, "connected_components", {}, resources)
    return facts.Census(
        _degree_counts(graph, resources),
        facts.component_sizes(components, resources.on(graph).budget_bytes()),
        _degrees(graph, "out", resources).top(facts.TOP_ROWS),
    )


def _require_census(graph: brimful.Graph, resources: Resources) -> None:
    """Refuse a budget that is too small for one of the runs, before the first.

    Raises:
        BudgetError: The message names the smallest budget that works for all of them.
    """
    runs: list[tuple[str, Mapping[str, object]]] = [
        ("connected_components", {}),
        *(("degrees", {"direction": direction}) for direction in ("out", "in")),
    ]
    require_runs(
        graph.native,
        [
            algorithm_request(algorithm, params, checked(AskedOptions, {}))
            for algorithm, params in runs
        ],
        resources.on(graph),
        "to count the degrees and components of this graph",
    )


def small_figure(graph: brimful.Graph) -> str:
    """Return a small figure of the degrees for a notebook; nothing for a graph of many edges."""
    from brimful.report import figures

    if graph.arcs > _DRAWN_ARCS:
        return ""
    counts = _degree_counts(graph, Resources())
    return figures.small(
        "Degree distribution",
        lambda ax, colors: figures.plot_counts(ax, counts, "degree", "vertices", colors),
    )


def _degree_counts(graph: brimful.Graph, resources: Resources) -> dict[str, dict[int, int]]:
    """Return the number of vertices of each degree, by direction, the outgoing ones first."""
    from brimful.report import facts

    directions = ("out", "in") if graph.directed else ("out",)
    return {
        f"{direction}_degrees" if graph.directed else "degrees": facts.degree_counts(
            _degrees(graph, direction, resources)
        )
        for direction in directions
    }


def _degrees(graph: brimful.Graph, direction: str, resources: Resources) -> brimful.Result:
    return computed_on(graph, "degrees", {"direction": direction}, resources)
