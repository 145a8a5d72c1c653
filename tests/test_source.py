"""An input file as GRAPH: imported next to itself, kept, and imported again when it changed."""

from __future__ import annotations

import errno
import logging
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import brimful as bf
from brimful.io.hidden import whole_graph
from command import BRIMFUL, INPUT, names_below, refuse, succeed, write_edges
from disks import small_disk


def inode(path: Path) -> int:
    return path.stat().st_ino


def test_imported_once_and_kept(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (2, 3)])
    kept = tmp_path / "a.txt.brimful"
    first = succeed("run", "pagerank", source, "--json")
    assert "importing" in first.err
    assert first.figures["edges"] == 2
    assert names_below(tmp_path) >= {"a.txt", "a.txt.brimful"}
    made = inode(kept)
    second = succeed("run", "pagerank", source, "--json")
    assert "importing" not in second.err
    assert inode(kept) == made
    with bf.read(source) as graph:
        assert graph.edges == 2
    assert inode(kept) == made


def test_columns_that_nobody_chose_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = tmp_path / "a.csv"
    source.write_text("source,target,amount\n1,2,0.5\n")
    said = succeed("run", "pagerank", source).err
    assert "columns ignored: amount; --weight of an import takes one as weights\n" in said
    assert "ignored" not in succeed("run", "pagerank", source).err
    with caplog.at_level(logging.WARNING, logger="brimful"):
        for options, count in (({"weight": "amount"}, 0), ({"ignore_extra": True}, 0), ({}, 1)):
            caplog.clear()
            bf.read(source, **options).close()  # type: ignore[arg-type]
            assert (
                sum("columns ignored: amount; weight=" in one for one in caplog.messages) == count
            )


@pytest.mark.parametrize("change", ["grown", "same size", "touched"])
def test_a_changed_file_is_imported_again_aloud(tmp_path: Path, change: str) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (2, 3)])
    succeed("info", source, "--quiet")
    if change == "grown":
        write_edges(source, [(1, 2), (2, 3), (3, 4)])
    elif change == "same size":
        times = source.stat()
        write_edges(source, [(1, 2), (2, 9)])
        os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    else:
        os.utime(source, ns=(1, 1))
    made = inode(tmp_path / "a.txt.brimful")
    outcome = succeed("run", "pagerank", source, "--json")
    assert "importing" in outcome.err and "again" in outcome.err
    assert outcome.figures["edges"] == (3 if change == "grown" else 2)
    assert inode(tmp_path / "a.txt.brimful") != made
    assert not [name for name in names_below(tmp_path) if name.startswith(".")]
    assert "importing" not in succeed("run", "pagerank", source, "--json").err


def test_other_options_import_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (2, 3)])
    with bf.read(source) as graph:
        assert graph.arcs == 2
    with bf.read(source, undirected=True) as graph:
        assert graph.arcs == 4
    assert "again" in caplog.text


def test_a_failed_second_import_keeps_the_first(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (2, 3)])
    succeed("info", source, "--quiet")
    before = names_below(tmp_path)
    source.write_text("1 2\nbroken\n")
    refuse(INPUT, "run", "pagerank", source, "--quiet")
    assert names_below(tmp_path) == before
    succeed("verify", tmp_path / "a.txt.brimful", "--quiet")


def test_a_graph_that_the_user_named_is_not_replaced(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (2, 3)])
    kept = tmp_path / "a.txt.brimful"
    succeed("import", source, kept, "--undirected", "--quiet")
    made = inode(kept)
    assert "by name" in refuse(INPUT, "run", "pagerank", source, "--quiet")
    assert inode(kept) == made
    succeed("run", "pagerank", kept, "--quiet")


@pytest.mark.parametrize("other", ["file", "folder", "link"])
def test_something_else_in_the_place_of_the_kept_graph(tmp_path: Path, other: str) -> None:
    source, kept = write_edges(tmp_path / "a.txt", [(1, 2)]), tmp_path / "a.txt.brimful"
    if other == "file":
        kept.touch()
    elif other == "folder":
        kept.mkdir()
    else:
        kept.symlink_to("nowhere")
    sentence = refuse(INPUT, "run", "degrees", source, "--quiet")
    assert f"keeps the import of {source} as {kept}, which is something else; remove" in sentence
    assert names_below(tmp_path) == {"a.txt", "a.txt.brimful"}


def test_a_graph_that_the_user_named_is_used_when_it_agrees(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (2, 3)])
    succeed("import", source, tmp_path / "a.txt.brimful", "--quiet")
    assert "importing" not in succeed("run", "pagerank", source).err


def test_leftovers_of_a_killed_swap_are_swept(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (2, 3)])
    succeed("info", source, "--quiet")
    kept = tmp_path / "a.txt.brimful"
    # Killed between the two renames: the old graph is set aside, and the new one has no name yet.
    aside = tmp_path / ".a.txt.brimful.partial-1-a"
    aside.mkdir()
    shutil.copytree(kept, tmp_path / ".a.txt.brimful.partial-1-b")
    kept.rename(aside / "old")
    write_edges(source, [(1, 2)])
    assert succeed("info", source, "--json").figures["edges"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "a.txt.brimful"}
    succeed("verify", kept, "--quiet")


def test_a_graph_stays_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was removed."""
    out, rename = tmp_path / "g.brimful", os.rename
    out.mkdir()
    (out / "old").touch()

    def refused(source: str, target: str) -> None:
        if target == str(out) and os.path.basename(source) == out.name:
            raise OSError(errno.EIO, "the disk failed")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refused)
    with (
        pytest.raises(bf.StoreIoError, match="the disk failed"),
        whole_graph(str(out), replace=True) as place,
    ):
        os.mkdir(place)
    assert names_below(tmp_path) == {"g.brimful", "g.brimful/old"}


@pytest.mark.slow
def test_a_replacement_that_is_killed_leaves_a_whole_graph_or_none(tmp_path: Path) -> None:
    """The old graph, the new one or none, and the next start makes the new one."""
    source, kept = tmp_path / "a.txt", tmp_path / "a.txt.brimful"
    choose = random.Random(1)
    for number in range(12):
        edges = [(vertex, vertex * 7919 % 20_011) for vertex in range(20_000 + number)]
        write_edges(source, edges)
        process = subprocess.Popen([*BRIMFUL, "info", str(source), "--quiet"])
        time.sleep(choose.uniform(0.1, 0.5))
        process.kill()
        process.wait()
        if kept.exists():
            succeed("verify", kept, "--quiet")
        assert succeed("info", source, "--json").figures["edges"] == len(edges)
        left = {path.name for path in tmp_path.iterdir()}
        # A process that ended after it had published its graph swept before.
        assert {name for name in left if not name.startswith(".")} == {"a.txt", "a.txt.brimful"}
    write_edges(source, [(1, 2)])
    succeed("info", source, "--quiet")
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "a.txt.brimful"}


def test_an_unwritable_folder_uses_the_cache_directory(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with small_disk(tmp_path, "1m") as disk:
        source = write_edges(disk / "a.txt", [(1, 2), (2, 3)])
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        settings = {"XDG_CACHE_HOME": str(cache)}
        assert succeed("run", "pagerank", source, "--json", env=settings).figures["edges"] == 2
        (kept,) = (cache / "brimful").glob("a.txt-*.brimful")
        made = inode(kept)
        assert "importing" not in succeed("run", "pagerank", source, env=settings).err
        assert inode(kept) == made


def test_a_file_that_cannot_be_imported_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2\nbroken\n")
    assert "a.txt" in refuse(INPUT, "run", "pagerank", tmp_path / "a.txt", "--quiet")
    assert names_below(tmp_path) == {"a.txt"}


@pytest.mark.parametrize("origin", ["[]", "no JSON", '"text"', "3", "{}", "[" * 100_000, "null"])
def test_a_kept_graph_whose_origin_is_not_ours_is_left_alone(tmp_path: Path, origin: str) -> None:
    from brimful.io.ingest import import_paths
    from brimful.options.imports import import_options
    from brimful.resources import Resources

    edges = write_edges(tmp_path / "e.txt", [(1, 2)])
    kept = f"{edges}.brimful"
    import_paths([str(edges)], kept, import_options(), Resources(), origin=origin)
    sentence = refuse(INPUT, "run", "degrees", edges, "--quiet")
    assert f"{kept} was imported by name and is no longer the graph of the file" in sentence
    succeed("run", "degrees", kept, "--quiet")
