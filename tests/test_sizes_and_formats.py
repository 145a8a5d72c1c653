"""Memory sizes and file names, as people write them."""

import numpy as np
import pytest

from brimful.errors import UsageError
from brimful.io.formats import export_format, input_format, result_format
from brimful.sizes import format_bytes, parse_budget


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500M", 500 << 20),
        ("500m", 500 << 20),
        ("1G", 1 << 30),
        ("1.5G", 3 << 29),
        ("2T", 2 << 40),
        ("64K", 64 << 10),
        ("64KiB", 64 << 10),
        ("64 MiB", 64 << 20),
        ("10MB", 10 << 20),
        ("123456", 123456),
        (7, 7),
        ("auto", None),
        ("AUTO", None),
        (None, None),
    ],
)
def test_budgets(text: str | int | None, expected: int | None) -> None:
    assert parse_budget(text) == expected


def test_budgets_of_numpy() -> None:
    assert parse_budget(np.int64(200 << 20)) == 200 << 20


@pytest.mark.parametrize(
    "text", ["", "M", "5 apples", "-1", "0", "1e9", 0, -5, 2.5, True, "9" * 30]
)
def test_what_is_no_budget(text: object) -> None:
    with pytest.raises(UsageError):
        parse_budget(text)  # type: ignore[arg-type]


def test_bytes_for_people() -> None:
    assert format_bytes(12) == "12 bytes"
    assert format_bytes(588 << 20) == "588M"
    assert format_bytes(3 << 29) == "1.5G"
    assert format_bytes(5 << 50) == "5120T"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # The content decides; an edge list unless its first line says otherwise.
        ("web.txt", "auto"),
        ("web.txt.gz", "auto"),
        ("web.e", "auto"),
        ("web", "auto"),
        ("-", "auto"),
        ("web.mtx.bz2", "mtx"),
        ("web.metis", "metis"),
        ("web.graph.gz", "metis"),
        ("road.gr.xz", "gr"),
        ("cnr-2000.graph-txt.gz", "adjacency"),
        ("web.adjlist", "adjacency-ids"),
        ("email.jlg", "jlg"),
        ("web.v.zst", "graphalytics"),
        ("web.csv", "csv"),
        ("WEB.CSV.ZST", "csv"),
        ("web.parquet", "parquet"),
        ("web.u32", "u32pairs"),
        ("web.bin.xz", "u32pairs"),
    ],
)
def test_input_formats(name: str, expected: str) -> None:
    assert input_format(name) == expected


def test_formats_by_name() -> None:
    assert input_format("data.dat", "u32pairs") == "u32pairs"
    assert export_format("a.parquet") == "parquet"
    assert export_format("a.Graph.XZ") == "metis"
    assert export_format("a.dat", "csv") == "csv"
    assert result_format("a.ARROW") == "arrow"
    for wrong in (
        lambda: input_format("a", "xml"),
        lambda: export_format("a.gz"),
        lambda: export_format("a.txt.bz2"),
        lambda: export_format("a.txt", "xml"),
        lambda: result_format("a.txt"),
    ):
        with pytest.raises(UsageError):
            wrong()
