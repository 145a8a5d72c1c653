"""Arrays that are sorted within a budget."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import brimful as bf


@pytest.mark.parametrize("dtype", ["uint64", "int64", "int16", "uint8"])
def test_sorting_more_than_memory(tmp_path: Path, dtype: str) -> None:
    bounds = np.iinfo(dtype)
    rng = np.random.default_rng(5)
    batches = [
        rng.integers(bounds.min, bounds.max, 1_500_000, dtype, endpoint=True) for _ in range(4)
    ]
    found = list(bf.sort(batches, budget="24M", folder=tmp_path))
    assert all(batch.dtype == dtype for batch in found)
    assert np.array_equal(np.concatenate(found), np.sort(np.concatenate(batches)))
    assert list(tmp_path.iterdir()) == []


def test_sorting_refuses(tmp_path: Path) -> None:
    assert list(bf.sort([], budget="64M")) == []
    with pytest.raises(bf.UsageError, match="not float64"):
        list(bf.sort([[0.5]], budget="64M"))
    with pytest.raises(bf.UsageError, match="dtype uint8 of the first"):
        list(bf.sort([np.zeros(3, np.uint8), np.zeros(3, np.int8)], budget="64M"))
    with pytest.raises(bf.BudgetError):
        list(bf.sort([[1]], budget="4K"))
    with pytest.raises(bf.StoreIoError):
        list(bf.sort([np.arange(10)], budget="64M", folder=tmp_path / "missing"))
    # A sort whose generator is not exhausted ends with the generator.
    begun = bf.sort([np.arange(3_000_000)], budget="24M")
    assert len(next(begun)) > 0
    begun.close()
