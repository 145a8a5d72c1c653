"""`brimful run` from the user's side: the JSON line, the outputs, the printed lines."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from command import brimful, succeed

FIELDS = {
    "algorithm",
    "variant",
    "precision",
    "mode",
    "store",
    "threads",
    "vertices",
    "edges",
    "arcs",
    "directed",
    "supersteps",
    "converged",
    "reason",
    "seconds",
    "index_seconds",
    "phases",
    "superstep_seconds",
    "superstep_min",
    "superstep_median",
    "superstep_max",
    "bytes_read",
    "bytes_written",
    "peak_rss_bytes",
    "budget_bytes",
    "signals",
    "resumed_from",
    "output",
    "documents",
}


@pytest.mark.parametrize("algorithm", ["pagerank", "connected_components"])
def test_the_last_line_is_one_json_object(rmat: Path, tmp_path: Path, algorithm: str) -> None:
    out = tmp_path / "r.parquet"
    options = ["--budget", "200M", "--threads", 2, "--top", 3, "--json"]
    outcome = succeed("run", algorithm, rmat, "-o", out, *options)
    figures = outcome.figures
    assert figures.keys() >= FIELDS
    assert figures["algorithm"] == algorithm
    assert figures["edges"] == figures["arcs"] == 16 << 14
    assert (figures["output"], figures["documents"]) == (str(out), None)
    assert figures["budget_bytes"] == 200 << 20
    assert figures["threads"] == 2
    assert (figures["mode"], figures["precision"]) == ("sync", "f64")
    assert figures["resumed_from"] is None
    assert isinstance(figures["phases"], dict)
    assert len(figures["superstep_seconds"]) == figures["supersteps"]
    low, median, high = (figures[f"superstep_{name}"] for name in ("min", "median", "max"))
    assert 0 <= low <= median <= high <= figures["seconds"]
    assert 10 << 20 < figures["peak_rss_bytes"] <= figures["budget_bytes"]
    assert len(outcome.out.strip().split("\n")) == 5
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures


def test_many_supersteps_keep_the_json_line_short(tmp_path: Path) -> None:
    succeed("generate", "ring", tmp_path / "g.brimful", "--vertices", 10, "--quiet")
    options = ["--tolerance", 0, "--max-supersteps", 1500, "--json"]
    figures = succeed("run", "pagerank", tmp_path / "g.brimful", *options).figures
    assert figures["supersteps"] == 1500
    assert len(figures["superstep_seconds"]) <= 1000


def test_every_output_format_holds_the_same_result(rmat: Path, tmp_path: Path) -> None:
    for name in ("r.parquet", "r.csv", "r.arrow"):
        succeed("run", "pagerank", rmat, "-o", tmp_path / name, "--quiet")
    parquet = pq.read_table(tmp_path / "r.parquet")
    csv = pacsv.read_csv(tmp_path / "r.csv")
    with pa.OSFile(str(tmp_path / "r.arrow")) as file:
        arrow = pa.ipc.open_file(file).read_all()
    assert parquet.schema.names == ["vertex", "pagerank"]
    assert parquet.schema.field("vertex").type == pa.int64()
    assert parquet.schema.field("pagerank").type == pa.float64()
    assert parquet.equals(arrow)
    assert csv.cast(parquet.schema).equals(parquet)
    vertices = parquet["vertex"].to_pylist()
    assert vertices == sorted(vertices) == list(range(1 << 14))
    assert {path.name for path in tmp_path.iterdir()} == {"r.parquet", "r.csv", "r.arrow"}


def test_the_summary_is_for_people(rmat: Path, tmp_path: Path) -> None:
    outcome = succeed(
        "run", "pagerank", rmat, "--top", 5, "-o", tmp_path / "r.csv", "--budget", "200M"
    )
    for words in ("supersteps", "median", "peak memory", "200M", "r.csv", "converged"):
        assert words in outcome.out
    top = outcome.out.strip().split("\n")[-5:]
    scores = [float(line.split("\t")[1]) for line in top]
    assert scores == sorted(scores, reverse=True)
    assert "\x1b" not in outcome.err and "\r" not in outcome.err


def test_a_result_that_is_not_kept_is_pointed_out(rmat: Path, tmp_path: Path) -> None:
    run = ["run", "degrees", rmat]
    hint = "the result was not written; give -o FILE"
    assert hint in succeed(*run).out
    assert hint not in succeed(*run, "--top", 3).out
    assert hint not in succeed(*run, "-o", tmp_path / "degrees.csv").out


def test_quiet_is_silent(rmat: Path) -> None:
    outcome = brimful("run", "pagerank", rmat, "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_progress_shows_on_standard_error(tmp_path: Path) -> None:
    outcome = succeed("generate", "rmat", tmp_path / "g.brimful", "--scale", 18)
    assert outcome.err.startswith("brimful: ")
    outcome = succeed("run", "pagerank", tmp_path / "g.brimful", "--tolerance", 0)
    assert "superstep" in outcome.err
