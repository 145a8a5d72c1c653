"""Types of the native module; checked against it by mypy's stubtest.

`budget` is in bytes, None means `auto`. With `process_budget` it covers the whole process, else
brimful's own memory. `reserve_bytes` is what a pyarrow reader or writer in this process needs
beside. Every call that can last releases the GIL; Ctrl-C stops it within a second.
"""

from typing import Any, final

from brimful.reporting import Progress

__all__ = [
    "Graph",
    "Result",
    "algorithms",
    "auto_budget_bytes",
    "generate",
    "import_files",
    "import_stream",
    "peak_rss_bytes",
    "run",
]

def auto_budget_bytes() -> int: ...
def peak_rss_bytes() -> int | None: ...
def algorithms() -> list[dict[str, Any]]: ...
def import_files(
    paths: list[str],
    out: str,
    *,
    format: str,
    undirected: bool | None,
    vertices: int | None,
    on_error: str,
    index: list[str],
    weights: str,
    self_loops: str,
    duplicates: str,
    threads: int | None,
    budget: int | None,
    process_budget: bool,
    origin: str | None,
    progress: Progress | None,
) -> dict[str, Any]: ...
def import_stream(
    stream: object,
    out: str,
    *,
    name: str,
    source: str,
    target: str,
    weight: str | None,
    undirected: bool | None,
    vertices: int | None,
    isolated: list[int],
    on_error: str,
    index: list[str],
    weights: str,
    self_loops: str,
    duplicates: str,
    threads: int | None,
    budget: int | None,
    process_budget: bool,
    reserve_bytes: int,
    origin: str | None,
    progress: Progress | None,
) -> dict[str, Any]: ...
def generate(
    kind: str,
    out: str,
    params: dict[str, int | float],
    *,
    seed: int,
    undirected: bool,
    index: list[str],
    weights: str,
    self_loops: str,
    duplicates: str,
    threads: int | None,
    budget: int | None,
    process_budget: bool,
    progress: Progress | None,
) -> dict[str, Any]: ...
def run(
    graph: Graph,
    algorithm: str,
    params: dict[str, object],
    *,
    precision: str,
    tolerance: float | None,
    max_supersteps: int | None,
    weighted: bool,
    threads: int | None,
    budget: int | None,
    process_budget: bool,
    reserve_bytes: int,
    progress: Progress | None,
) -> Result: ...

@final
class Graph:
    @staticmethod
    def open(path: str) -> Graph: ...
    @property
    def path(self) -> str: ...
    @property
    def vertices(self) -> int: ...
    @property
    def edges(self) -> int: ...
    @property
    def arcs(self) -> int: ...
    @property
    def directed(self) -> bool: ...
    @property
    def weighted(self) -> bool: ...
    @property
    def origin(self) -> str | None: ...
    @property
    def indexes(self) -> list[str]: ...
    def info(self) -> dict[str, Any]: ...
    def verify(self, *, progress: Progress | None) -> dict[str, Any]: ...
    def build_index(
        self,
        names: list[str],
        *,
        threads: int | None,
        budget: int | None,
        process_budget: bool,
        progress: Progress | None,
    ) -> dict[str, Any]: ...
    def degree(self, vertex: int) -> int: ...
    def neighbors(self, vertex: int) -> list[int]: ...
    def contains(self, vertex: int) -> bool: ...
    def vertex_stream(self) -> object: ...
    def edge_stream(
        self,
        *,
        budget: int | None,
        process_budget: bool,
        reserve_bytes: int,
    ) -> object: ...
    def export_text(
        self,
        out: str,
        *,
        format: str,
        compression: str | None,
        renumber: bool,
        overwrite: bool,
        budget: int | None,
        process_budget: bool,
        progress: Progress | None,
    ) -> int: ...

@final
class Result:
    @property
    def column(self) -> str: ...
    @property
    def stats(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def value(self, vertex: int) -> float | int | None: ...
    def top(self, n: int) -> list[tuple[int, float | int]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def write_csv(self, path: str, *, overwrite: bool) -> None: ...
