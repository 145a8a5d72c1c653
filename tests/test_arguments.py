"""Arguments that cannot be meant: one sentence and exit 2, for every option that there is."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import brimful as bf
from brimful.cli import app, tree
from brimful.cli.options import print_json, show_rows
from command import BUDGET, DONE, INPUT, USAGE, brimful, refuse, succeed, write_edges

#: Python would read these as 10 and as 2.
NO_DIGITS = ["1_0", "２"]  # noqa: RUF001
#: No option of whole numbers takes these.
WRONG_INTEGERS = [str(2**64), "1" + "0" * 30, "-1", "1e3x", "", "1.5", "x", "1" * 5000, "٣x"]
WRONG_INTEGERS += NO_DIGITS
WRONG_NUMBERS = ["", "x", "nan", "inf", "-inf", "1" * 5000, "1e999", *NO_DIGITS]


def options_of(kind: str) -> list[tuple[str, str]]:
    """Return verb and option for every option whose type was made by `arguments.KIND`."""
    found = []
    for verb, _, action in tree.every_action(app.build_parser()):
        if getattr(action.type, "__qualname__", "").startswith(f"{kind}."):
            found += [(verb, action.option_strings[0])]
    return found


def parsed(words: list[str]) -> tuple[int, str]:
    """Return exit code and standard error of a command that is refused before any work."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = app.main(words)
    return code, err.getvalue()


@pytest.fixture
def signals() -> Any:
    """Keep the handlers that a command in this process replaces."""
    import signal

    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def words_of(verb: str) -> list[str]:
    """Return a command without options that the parser takes; nothing is at its paths."""
    names = {
        "import": ["no.txt", "no.brimful"],
        "generate": ["rmat", "no.brimful"],
        "run": ["pagerank", "no.brimful"],
        "plan": ["no.brimful", "pagerank"],
        "index": ["no.brimful", "in"],
        "export": ["no.brimful", "no.csv"],
    }
    return [verb, *names.get(verb, ["no.brimful"])]


def test_no_option_reads_numbers_in_its_own_way() -> None:
    for verb, _, action in tree.every_action(app.build_parser()):
        assert action.type not in (int, float), (verb, action.option_strings)
    counted = options_of("integer")
    assert {("run", "--top"), ("run", "--max-supersteps"), ("generate", "--seed")} <= set(counted)
    assert len(counted) >= 12


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(("verb", "option"), options_of("integer"))
def test_integers_that_cannot_be_meant(verb: str, option: str) -> None:
    most = 2**64 - 1 if option == "--seed" else 2**63 - 1
    for text in [*WRONG_INTEGERS, str(most + 1), "1e3"]:
        code, err = parsed([*words_of(verb), f"{option}={text}"])
        assert (code, err.count("\n")) == (USAGE, 1), (text, err)
        assert option in err and "whole number from" in err and len(err) < 300, err


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(("verb", "option"), [*options_of("real"), *options_of("count")])
def test_numbers_that_cannot_be_meant(verb: str, option: str) -> None:
    for text in WRONG_NUMBERS:
        code, err = parsed([*words_of(verb), f"{option}={text}"])
        assert (code, err.count("\n")) == (USAGE, 1), (text, err)
        assert option in err and len(err) < 300, err


@pytest.mark.usefixtures("signals")
def test_budgets_that_cannot_be_meant() -> None:
    for verb in ("import", "generate", "run", "plan", "index", "export"):
        for text in [*WRONG_INTEGERS, str(2**63), "1e3", "-1", "9" * 5000 + "G", "1.5"]:
            if text == "1.5":  # a byte and a half is one
                continue
            code, err = parsed([*words_of(verb), f"--budget={text}"])
            # What is at the paths is looked at first by some verbs, and is not there either way.
            assert code in (USAGE, INPUT) and err.count("\n") == 1 and len(err) < 400, (text, err)
            assert "internal error" not in err


@pytest.mark.parametrize(
    "option",
    ["--checkpoint-every", "--cache", "--source", "--param=length", "--param=damping", "--top"],
)
def test_numbers_within_texts(tmp_path: Path, option: str) -> None:
    graph = write_edges(tmp_path / "g.txt", [(1, 2)])
    algorithm = {"--source": "bfs", "--param=length": "count_paths"}.get(option, "pagerank")
    more = {"--cache": ["--store", "bytes"], "--param=length": ["--source", "1"]}.get(option, [])
    for text in (str(2**64), "1" + "0" * 30, "1" * 5000, "1e999", "-1", *NO_DIGITS):
        value = f"lru:{text}" if option == "--cache" else text
        outcome = brimful("run", algorithm, graph, *more, f"{option}={value}", "--quiet")
        # A vertex of such an id there is not.
        assert outcome.code in ((USAGE, INPUT) if option == "--source" else (USAGE,)), outcome
        assert outcome.err.count("\n") == 1 and len(outcome.err) < 400, outcome.err


def test_parameters_are_options(tmp_path: Path) -> None:
    graph = write_edges(tmp_path / "g.txt", [(1, 2), (2, 3), (1, 3)])
    named = [["--param", "damping=0.5"], ["--damping", "0.5"], ["--damping=0.5"]]
    run = ["run", "pagerank", graph, "--quiet", "--top", 3]
    tops = [succeed(*run, *words).out for words in named]
    assert tops[0] == tops[1] == tops[2] != succeed(*run).out
    front = ["run", "--damping", "0.5", "pagerank", graph, "--quiet", "--top", 3]
    assert succeed(*front).out == tops[0]
    succeed("plan", graph, "pagerank", "--damping", "0.5", "--quiet")
    for words, part in (
        (["--damping", "0.5", "--param", "damping=0.6"], "given twice"),
        (["--damping"], "--damping needs a value"),
        (["--length", "3"], "pagerank has no parameter 'length'"),
        (["--dampin", "0.5"], "did you mean '--damping'"),
        (["--variant", "normalised"], "did you mean 'normalized'"),
    ):
        assert part in refuse(USAGE, "run", "pagerank", graph, "--quiet", *words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["exprot", "a", "b"], "'export'"),
        (["run", "page_rank", "g.txt"], "'pagerank'"),
        (["run", "pagerank", "g.txt", "--max-superstep", "3"], "'--max-supersteps'"),
        (["run", "pagerank", "g.txt", "--mode", "asinc"], "'async'"),
        (["run", "pagerank", "g.txt", "--param", "dampign=.9"], "'damping'"),
        (["run", "pagerank", "g.txt", "--store", "byte"], "'bytes'"),
        (["run", "bfs", "g.txt", "--store", "bytes", "--serializer", "natve"], "'native'"),
        (["import", "g.txt", "h.brimful", "--format", "edgelst"], "'edgelist'"),
        (["import", "s4://bucket/g.txt", "h.brimful"], "'s3'"),
        (["generate", "rmta", "h.brimful"], "'rmat'"),
        (["index", "g.txt", "revers"], "'reverse'"),
        (["completion", "bsh"], "'bash'"),
        (["algorithms", "hit"], "'hits'"),
        (["help", "improt"], "'import'"),
        (["run", "components", "g.txt"], "'connected_components'"),
        (["run", "clustering_coefficient", "g.txt"], "'clustering'"),
        (["run", "pagerank", "g.txt", "--logfile", "x"], "'--log'"),
    ],
)
def test_unknown_names_are_corrected(tmp_path: Path, words: list[str], meant: str) -> None:
    write_edges(tmp_path / "g.txt", [(1, 2)])
    assert f"did you mean {meant}?" in refuse(USAGE, *words, cwd=tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "pagerank", "g.txt", "--filter", "x"],
        ["run", "pagerank", "g.txt", "--cores", "2"],
        ["run", "centrality", "g.txt"],
        ["import", "g.txt", "h.brimful", "--force"],
        ["import", "g.txt", "h.brimful", "--limit", "9"],
    ],
)
def test_names_that_differ_much_are_not_suggested(tmp_path: Path, words: list[str]) -> None:
    """`--filter` was taken for `--cluster`, and `centrality` for `eccentricity`."""
    write_edges(tmp_path / "g.txt", [(1, 2)])
    assert "did you mean" not in refuse(USAGE, *words, cwd=tmp_path)


def test_a_graph_of_a_similar_name_is_named(tmp_path: Path) -> None:
    succeed("generate", "ring", tmp_path / "web.brimful", "--vertices", 3, "--quiet")
    said = refuse(INPUT, "info", tmp_path / "wbe.brimful")
    assert "did you mean 'web.brimful'?" in said


def test_help_version_and_nothing(tmp_path: Path) -> None:
    whole = succeed("--help").out
    assert succeed("help").out == whole
    assert succeed("help", "run").out == succeed("run", "--help").out
    assert succeed("-V").out == succeed("--version").out
    nothing = brimful()
    assert (nothing.code, nothing.out) == (USAGE, whole)
    for verb in tree.verbs(app.build_parser()):
        text = succeed(verb, "--help").out
        assert "usage: brimful" in text
        assert verb == "help" or f"\n  brimful {verb}" in text or f"(brimful {verb}" in text, text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_parser(shell: str) -> None:
    script = succeed("completion", shell).out
    names = {"pagerank", "connected_components", "union_find", "graphalytics", "unnormalized"}
    for word in {*tree.verbs(app.build_parser()), *names}:
        assert word in script, word
    assert ("-l max-supersteps" if shell == "fish" else "--max-supersteps") in script


def test_bash_completes(tmp_path: Path) -> None:
    import subprocess

    script = succeed("completion", "bash").out

    def completed(*words: str) -> set[str]:
        quoted = " ".join(f"'{word}'" for word in words)
        code = (
            f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _brimful\n"
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return set(done.stdout.split())

    assert completed("brimful", "ex") == {"export"}
    assert completed("brimful", "run", "con") == {"connected_components"}
    assert completed("brimful", "run", "pagerank", "g", "--mo") == {"--mode"}
    assert completed("brimful", "run", "pagerank", "g", "--mode", "") == {"sync", "async"}
    assert completed("brimful", "run", "pagerank", "g", "--damp") == {"--damping"}
    assert completed("brimful", "generate", "gr") == {"grid"}


def test_the_parser_of_argparse_can_be_looked_at() -> None:
    """What `tree` relies on in argparse, which does not promise it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--one")
    parser.add_subparsers().add_parser("two").add_argument("three")
    assert "--one" in tree.option_names(parser)
    assert [action.dest for _, _, action in tree.every_action(parser)][-1] == "three"
    assert BUDGET and DONE == 0


def test_the_command_line_names_flags_in_checks(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "e.txt", [(1, 2)])
    for words in (
        ("import", edges, tmp_path / "g.brimful", "--delimiter", "zz"),
        ("import", edges, tmp_path / "g.brimful", "--cluster", "x"),
        ("plan", edges, "pagerank", "--cluster", "x"),
        ("export", edges, tmp_path / "o.parquet", "--columns", ","),
    ):
        assert refuse(USAGE, *words, "--quiet").startswith(f"brimful: {words[-2]} must be ")
    with pytest.raises(bf.UsageError, match=r"^delimiter must be "):
        bf.read(edges, delimiter="zz")


def test_run_takes_graph_and_algorithm_in_either_order(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "e.txt", [(1, 2)])
    words = ("--top", 2, "--quiet")
    assert succeed("run", edges, "pagerank", *words) == succeed("run", "pagerank", edges, *words)
    assert "there is no algorithm" in refuse(USAGE, "run", edges, "pagerang")


@pytest.mark.parametrize("as_json", [False, True])
def test_rows_are_written_a_thousand_at_a_time(
    as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Unbuffered output needs a call of the system for each write.
    class Output(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            return super().write(text)

    output = Output()
    monkeypatch.setattr(sys, "stdout", output)
    if as_json:
        print_json({"rows": iter(range(5000)), "none": iter([])})
        assert json.loads(output.getvalue()) == {"rows": [*range(5000)], "none": []}
    else:
        show_rows(("one", "other"), zip(range(5000), range(5000), strict=True))
        assert output.getvalue().splitlines()[::5000] == ["one\tother", "4999\t4999"]
    assert output.writes < 15
