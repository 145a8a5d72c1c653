"""Rows in a file without a name: on disk, and gone with the object that reads them."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from brimful.io.regular import writing_to

if TYPE_CHECKING:
    import pyarrow


def spilled(schema: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch]) -> Any:
    """Write batches, and return a reader of Arrow that maps them into memory.

    Raises:
        StoreIoError: The folder for temporary files is full, or cannot be written.
    """
    import pyarrow as pa

    folder = tempfile.gettempdir()
    with writing_to(folder), tempfile.TemporaryFile(dir=folder) as new:
        with pa.ipc.new_file(new, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        new.flush()
        mapped = mmap.mmap(new.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_file(pa.py_buffer(mapped))
