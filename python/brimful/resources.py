"""The resources of a call: threads, memory budget and progress."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brimful.memory import PROCESS_BYTES, budget_bytes, resident_bytes, too_small
from brimful.options.table import WorkOptions, picked
from brimful.tables.edge_table import shrink_arrow_pools

if TYPE_CHECKING:
    from brimful.graph import Graph
    from brimful.reporting import Progress


@dataclass(frozen=True)
class Resources:
    """The resources of a call: threads (None: all), budget in bytes (None: auto), progress.

    With `process_budget` the budget covers the whole process, as on the command line;
    `reserve_bytes` of it then stay free for other packages and for later work. The native module
    takes objects of this class.
    """

    threads: int | None = None
    budget: int | None = None
    process_budget: bool = False
    progress: Progress | None = None
    reserve_bytes: int = 0

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Resources:
        """Return the resources among options that were checked."""
        return cls(**picked(WorkOptions, options))

    def on(self, graph: Graph) -> Resources:
        """Return the resources for work on a graph, whose own budget is the default."""
        return self if self.budget is not None else dataclasses.replace(self, budget=graph.budget)

    def beside(self, loaded_bytes: int) -> Resources:
        """Return the resources of work beside packages and readers of `loaded_bytes`.

        An automatic budget that is for brimful's own use leaves that memory to them; a given one
        does not count it, and a budget of the process counts it by itself.
        """
        if self.process_budget or self.budget is not None:
            return self
        return dataclasses.replace(self, budget=max(1 << 20, self.budget_bytes() - loaded_bytes))

    def leaving(self, more: int) -> Resources:
        """Return the resources of work that leaves `more` bytes free."""
        return dataclasses.replace(self, reserve_bytes=self.reserve_bytes + more)

    def beside_ray(self, budget: int) -> Resources:
        """Return the resources of work in a process that runs Ray.

        The budget does not cover the whole process: brimful cannot account for the memory of Ray.
        """
        return dataclasses.replace(self, budget=budget, process_budget=False)

    def budget_bytes(self) -> int:
        """Return the budget in bytes."""
        return budget_bytes(self.budget)

    def taken_bytes(self, loaded_bytes: int) -> int:
        """Return the bytes of the budget that are taken once a package of `loaded_bytes` is loaded.

        They are none if the budget is for brimful's own use.
        """
        if not self.process_budget:
            return 0
        # A small process counts as `PROCESS_BYTES`: the pages of its libraries that are mapped
        # depend on the system's cache, and errors would name one budget or the next.
        return max(resident_bytes(), PROCESS_BYTES) + loaded_bytes

    def require(self, more: int, purpose: str) -> None:
        """Refuse a budget without room for `more` bytes beside the process as it is.

        Raises:
            BudgetError: The message names the smallest budget that works.
        """
        if not self.has_room(more):
            raise too_small(self, self.taken_bytes(more), purpose)

    def has_room(self, more: int) -> bool:
        """Return whether the budget has room for `more` bytes beside the process as it is."""
        return self.taken_bytes(more) <= self.budget_bytes()

    def shrink_arrow_pools(self) -> None:
        """Shrink the pools of pyarrow, unless the budget is for brimful's own use.

        Raises:
            StoreIoError, BudgetError: A limit of the address space leaves too little.
        """
        if self.process_budget:
            shrink_arrow_pools(self.budget)
