"""Growing lists that must fit in memory; `mesh_in_memory.py` uses them."""

import numpy as np


class Lists:
    """Growing lists of numbers."""

    def __init__(self, count: int) -> None:
        """Make `count` empty lists."""
        self._lists: list[list[int]] = [[] for _ in range(count)]

    def append_many(self, lists: np.ndarray, items: np.ndarray) -> None:
        """Append `items[i]` to list `lists[i]`."""
        for index, item in zip(lists.tolist(), items.tolist(), strict=True):
            self._lists[index].append(item)

    def __getitem__(self, index: int) -> np.ndarray:
        """Return the items of a list."""
        return np.array(self._lists[index], "u4")
