"""A Bloom filter that must fit in memory; `bloom_in_memory.py` uses it."""

import numpy as np


class BloomFilter:
    """A Bloom filter in memory: 10 bits a key, 7 probes."""

    def __init__(self, keys: int) -> None:
        """Make room for `keys` keys."""
        self._bits = np.zeros(keys * 10, bool)

    def _places(self, keys: np.ndarray) -> np.ndarray:
        first = (keys ^ (keys >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
        second = (first ^ (first >> np.uint64(29))) * np.uint64(0x94D049BB133111EB) | np.uint64(1)
        return (first + second * np.arange(7, dtype="u8")[:, None]) % np.uint64(len(self._bits))

    def add_many(self, keys: np.ndarray) -> None:
        """Add keys."""
        self._bits[self._places(keys)] = True

    def contains_many(self, keys: np.ndarray) -> np.ndarray:
        """Return which of `keys` may have been added."""
        return self._bits[self._places(keys)].all(axis=0)
