"""Files of results that tests write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FORMATS = ("parquet", "csv", "arrow")


def written(path: Path, ids: Any, values: Any, name: str = "value") -> Path:
    """Write a result file from columns."""
    table = pa.table({"vertex": ids, name: values})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=100)
    else:
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        lines = [f"{one},{'' if other is None else other}\n" for one, other in rows]
        path.write_text(f"vertex,{name}\n" + "".join(lines))
    return path
