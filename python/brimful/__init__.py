"""Graphs and collections larger than memory, in a memory budget that you set.

Importing this package is cheap: the native module, pyarrow and the rest load when first used.

>>> import brimful as bf, pyarrow as pa
>>> with bf.read(pa.table({"source": [1, 2], "target": [3, 3]}), budget="500M") as graph:
...     bf.pagerank(graph).top(1)[0][0]
3
"""

import sys

# The command line is starting: Python calls `argv[0]` "-m" while it imports the package of a
# module that it is to run. Until `brimful.cli.app` installs its handlers, Ctrl-C ends the process
# without a traceback. So nothing comes before that is read from a file, `__future__` neither.
_STARTED = sys.argv[0] if sys.argv else ""
if (_STARTED == "-m" and __name__ in sys.orig_argv) or _STARTED.rpartition("/")[2] == __name__:
    import _signal  # type: ignore[import-not-found]

    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

# Not imported from `typing`, whose slow import Ctrl-C could interrupt with a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from brimful.algorithms import (
        bfs,
        clustering,
        color,
        connected_components,
        count_paths,
        degrees,
        hits,
        kcore,
        label_propagation,
        pagerank,
        scc,
        sssp,
        triangles,
    )
    from brimful.centralities import (
        betweenness,
        closeness,
        edge_betweenness,
        eigenvector,
        harmonic,
        katz,
    )
    from brimful.communities import (
        conductance,
        leiden,
        leiden_hierarchy,
        louvain,
        louvain_hierarchy,
        modularity,
    )
    from brimful.comparison import Comparison, compare
    from brimful.containers.bags import Bag
    from brimful.containers.boxes import Box
    from brimful.containers.counting import BloomFilter, FrequencyCounter, MembershipSet
    from brimful.containers.lists import Lists
    from brimful.containers.maps import Map
    from brimful.containers.sorting import sort
    from brimful.containers.spilling import SpillingDict
    from brimful.embeddings import fastrp
    from brimful.errors import (
        BrimfulError,
        BudgetError,
        CorruptError,
        InputError,
        MissingPackageError,
        NotFoundError,
        ProgramError,
        RecordIdError,
        StoreIoError,
        UsageError,
        WorkerLostError,
    )
    from brimful.graph import Graph
    from brimful.ids import id_name, id_of_name
    from brimful.opening import read
    from brimful.planning import Forecast, plan
    from brimful.pregel.aggregators import Aggregator
    from brimful.pregel.changes import VertexChanges, VertexData
    from brimful.pregel.master import Master, WorkerContext
    from brimful.pregel.program import Pregel
    from brimful.pregel.vertex import PregelVertex
    from brimful.program import Program, Vertex
    from brimful.report.html import Report
    from brimful.result import Records, Result
    from brimful.rows import Rows
    from brimful.running import run
    from brimful.saved import SavedResult
    from brimful.searches import diameter, distances, eccentricity, effective_diameter
    from brimful.similarities import similarity
    from brimful.states import States
    from brimful.structures import (
        articulation_points,
        bipartite,
        bridges,
        ktruss,
        maximal_independent_set,
        spanning_forest,
        topological_order,
    )
    from brimful.vertex_store import VertexStore
    from brimful.walks import random_walks

    __version__: str

__all__ = [
    "Aggregator",
    "Bag",
    "BloomFilter",
    "Box",
    "BrimfulError",
    "BudgetError",
    "Comparison",
    "CorruptError",
    "Forecast",
    "FrequencyCounter",
    "Graph",
    "InputError",
    "Lists",
    "Map",
    "Master",
    "MembershipSet",
    "MissingPackageError",
    "NotFoundError",
    "Pregel",
    "PregelVertex",
    "Program",
    "ProgramError",
    "RecordIdError",
    "Records",
    "Report",
    "Result",
    "Rows",
    "SavedResult",
    "SpillingDict",
    "States",
    "StoreIoError",
    "UsageError",
    "Vertex",
    "VertexChanges",
    "VertexData",
    "VertexStore",
    "WorkerContext",
    "WorkerLostError",
    "__version__",
    "articulation_points",
    "betweenness",
    "bfs",
    "bipartite",
    "bridges",
    "closeness",
    "clustering",
    "color",
    "compare",
    "conductance",
    "connected_components",
    "count_paths",
    "degrees",
    "diameter",
    "distances",
    "eccentricity",
    "edge_betweenness",
    "effective_diameter",
    "eigenvector",
    "fastrp",
    "harmonic",
    "hits",
    "id_name",
    "id_of_name",
    "katz",
    "kcore",
    "ktruss",
    "label_propagation",
    "leiden",
    "leiden_hierarchy",
    "louvain",
    "louvain_hierarchy",
    "maximal_independent_set",
    "modularity",
    "pagerank",
    "plan",
    "random_walks",
    "read",
    "run",
    "scc",
    "similarity",
    "sort",
    "spanning_forest",
    "sssp",
    "topological_order",
    "triangles",
]

_HOMES = {
    "Aggregator": "brimful.pregel.aggregators",
    "Bag": "brimful.containers.bags",
    "BloomFilter": "brimful.containers.counting",
    "Box": "brimful.containers.boxes",
    "BrimfulError": "brimful.errors",
    "BudgetError": "brimful.errors",
    "Comparison": "brimful.comparison",
    "CorruptError": "brimful.errors",
    "Forecast": "brimful.planning",
    "FrequencyCounter": "brimful.containers.counting",
    "Graph": "brimful.graph",
    "InputError": "brimful.errors",
    "Lists": "brimful.containers.lists",
    "Map": "brimful.containers.maps",
    "Master": "brimful.pregel.master",
    "MembershipSet": "brimful.containers.counting",
    "MissingPackageError": "brimful.errors",
    "NotFoundError": "brimful.errors",
    "Pregel": "brimful.pregel.program",
    "PregelVertex": "brimful.pregel.vertex",
    "Program": "brimful.program",
    "ProgramError": "brimful.errors",
    "RecordIdError": "brimful.errors",
    "Records": "brimful.result",
    "Report": "brimful.report.html",
    "Result": "brimful.result",
    "Rows": "brimful.rows",
    "SavedResult": "brimful.saved",
    "SpillingDict": "brimful.containers.spilling",
    "States": "brimful.states",
    "StoreIoError": "brimful.errors",
    "UsageError": "brimful.errors",
    "WorkerLostError": "brimful.errors",
    "Vertex": "brimful.program",
    "VertexChanges": "brimful.pregel.changes",
    "VertexData": "brimful.pregel.changes",
    "VertexStore": "brimful.vertex_store",
    "WorkerContext": "brimful.pregel.master",
    "articulation_points": "brimful.structures",
    "betweenness": "brimful.centralities",
    "bfs": "brimful.algorithms",
    "bipartite": "brimful.structures",
    "bridges": "brimful.structures",
    "closeness": "brimful.centralities",
    "clustering": "brimful.algorithms",
    "color": "brimful.algorithms",
    "compare": "brimful.comparison",
    "conductance": "brimful.communities",
    "connected_components": "brimful.algorithms",
    "count_paths": "brimful.algorithms",
    "degrees": "brimful.algorithms",
    "diameter": "brimful.searches",
    "distances": "brimful.searches",
    "eccentricity": "brimful.searches",
    "edge_betweenness": "brimful.centralities",
    "effective_diameter": "brimful.searches",
    "eigenvector": "brimful.centralities",
    "fastrp": "brimful.embeddings",
    "harmonic": "brimful.centralities",
    "hits": "brimful.algorithms",
    "id_name": "brimful.ids",
    "id_of_name": "brimful.ids",
    "katz": "brimful.centralities",
    "kcore": "brimful.algorithms",
    "ktruss": "brimful.structures",
    "label_propagation": "brimful.algorithms",
    "leiden": "brimful.communities",
    "leiden_hierarchy": "brimful.communities",
    "louvain": "brimful.communities",
    "louvain_hierarchy": "brimful.communities",
    "maximal_independent_set": "brimful.structures",
    "modularity": "brimful.communities",
    "pagerank": "brimful.algorithms",
    "plan": "brimful.planning",
    "random_walks": "brimful.walks",
    "read": "brimful.opening",
    "run": "brimful.running",
    "scc": "brimful.algorithms",
    "similarity": "brimful.similarities",
    "sort": "brimful.containers.sorting",
    "spanning_forest": "brimful.structures",
    "sssp": "brimful.algorithms",
    "topological_order": "brimful.structures",
    "triangles": "brimful.algorithms",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("brimful")
    if name in _HOMES:
        from importlib import import_module

        value: object = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    from brimful.wording import did_you_mean

    hint = did_you_mean(name, __all__) if not name.startswith("_") else ""
    raise AttributeError(f"module 'brimful' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
