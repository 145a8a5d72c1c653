"""Secrets in URLs appear nowhere: not in errors, not on the terminal, not in a log."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pyarrow as pa
import pytest

import brimful as bf
import mongo_login
from brimful.io.redaction import redacted, redacted_about, redacted_word
from command import IO, USAGE, brimful, refuse

KEY, SECRET = "AKIAKEYKEYKEY", "wJalr/SEC+RET@x"
QUICK = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"s3://{KEY}:{SECRET}@bucket/x", "s3://***@bucket/x"),
        ("s3://KEY@bucket/x", "s3://***@bucket/x"),
        ("s3://bucket/me@home.txt", "s3://bucket/me@home.txt"),
        ("s3://bucket/x.txt?token=T&region=eu-1", "s3://bucket/x.txt?token=***&region=eu-1"),
        (
            "https://h/x?X-Amz-Signature=abc&Expires=9",
            "https://h/x?X-Amz-Signature=***&Expires=***",
        ),
        ("orientdb://u:p@h/d/C?password=a&b", "orientdb://***@h/d/C?password=***&***"),
        ("mongodb://h/d/c?field=rank", None),
        ("orientdb://USER:PASSWORD@HOST:PORT/DATABASE/CLASS", None),
        ("abfs://folder@account.dfs.core.windows.net/x", None),
        ("gs://anonymous@bucket/x", None),
        ("file:/tmp/x?a=b", None),
        ("no url: at@all?a=b", None),
    ],
)
def test_urls_without_their_secrets(url: str, shown: str | None) -> None:
    expected = url if shown is None else shown
    assert redacted_word(url) == expected
    assert redacted(f"cannot read {url}") == f"cannot read {expected}"
    assert redacted(redacted(f"'{url}' is bad")) == f"'{expected}' is bad"


def test_a_sentence_of_others_may_quote_pieces() -> None:
    said = redacted_about(
        "s3://KEY:a%2Fb c@h/x?sig=xyz", "bad a/b c in 's3://KEY:a%2Fb c@h/x?sig=xyz'"
    )
    assert said == "bad *** in 's3://***@h/x?sig=***'"


def test_every_error_is_redacted() -> None:
    kinds = [bf.BrimfulError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    assert len(kinds) > 8
    for kind in kinds:
        said = repr(kind(f"cannot read s3://{KEY}:{SECRET}@bucket/x"))
        assert KEY not in said and SECRET not in said, said


def test_no_secret_on_the_command_line_is_shown(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"bucket/x.txt?scheme=http&endpoint_override=127.0.0.1:{free.getsockname()[1]}"
    log = tmp_path / "log"
    commands: list[list[object]] = []
    for user in (f"{KEY}:SECRETSECRET", f"{KEY}:{SECRET}"):
        for scheme in ("s3", "s4", "http", "abfs", "gs", "hdfs"):
            url = f"{scheme}://{user}@{place}&token=TOKENTOKEN"
            commands.append(["import", url, "o.brimful"])
            commands.append(["import", url.replace(".txt", "*.parquet"), "o.brimful"])
        commands += [
            ["run", "pagerank", url],
            ["generate", "ring", url + ".brimful", "--vertices", 3],
            ["run", "pagerank", "no", "--store", url],
            ["run", "pagerank", "no", "-o", url + ".csv"],
        ]
    quick = QUICK | {"BRIMFUL_REMOTE_TIMEOUT": "3"}
    for words in commands:
        outcome = brimful(*words, "--log", log, env=quick, cwd=tmp_path)
        said = outcome.out + outcome.err
        assert outcome.code in (USAGE, IO, 3), said
        assert said.count("brimful: ") == 1 and "internal error" not in said
        said += log.read_text() if log.exists() else ""
        for secret in (KEY, "SECRETSECRET", "SEC+RET", "TOKENTOKEN", "wJalr"):
            assert secret not in said, (secret, said)


@pytest.mark.parametrize("scheme", ["mongodb", "orientdb"])
@pytest.mark.parametrize(
    "rest",
    [
        "u:12345678/x@localhost:1/d/C?retry_seconds=0",
        "u:[12345678@localhost:1/d/C?retry_seconds=0",
        "u:12345678\N{ACCOUNT OF}@localhost:1/d/C?retry_seconds=0",
        "u:12345678#x@localhost:1/d/C?retry_seconds=0",
        "u:x@localhost:1/d/C?retry_seconds=0&12345678",
    ],
)
def test_a_url_of_a_database_that_cannot_be_read_is_not_quoted(
    scheme: str, rest: str, tmp_path: Path
) -> None:
    pytest.importorskip("pymongo")
    (tmp_path / "e.txt").write_text("1 2\n")
    url, log = f"{scheme}://{rest}", tmp_path / "log"
    for words in (
        ["import", url, "o.brimful", "--source", "a", "--target", "b"],
        ["run", "degrees", "e.txt", "--store", url],
        ["run", "degrees", "e.txt", "-o", url.replace("retry", "field=x&retry")],
    ):
        outcome = brimful(*words, "--log", log, env={"BRIMFUL_DEBUG": "1"}, cwd=tmp_path)
        said = outcome.out + outcome.err
        assert outcome.code == USAGE, said
        assert "URL cannot be read; write" in said or "has no =" in said
        assert "12345678" not in said + log.read_text()


def test_a_wrong_password_of_mongodb_is_named_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pytest.importorskip("pymongo")
    with mongo_login.refusing() as port:
        url, begin = f"mongodb://ann:wrong7@127.0.0.1:{port}/graphs/v", time.monotonic()
        reason = f"127.0.0.1:{port} refused the user or the password: Authentication failed"
        edge = pa.table({"source": [0], "target": [1]})
        with (
            bf.Graph.from_arrow(edge) as graph,
            pytest.raises(bf.UsageError, match=reason) as of_store,
        ):
            bf.bfs(graph, source=0, store=url)
        with pytest.raises(bf.UsageError, match=reason) as of_import:
            bf.read(url, source="from", target="to")
        assert time.monotonic() - begin < 25
    assert "wrong7" not in f"{of_store.value} {of_import.value}" and caplog.text == ""


def test_outputs_are_not_urls(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("1 2\n")
    for words in (
        ["import", "e.txt", "s3://bucket/g.brimful"],
        ["export", "e.txt", "s3://bucket/g.csv"],
        ["run", "degrees", "e.txt", "-o", "s3://bucket/r.csv"],
    ):
        assert "is a URL; write to this machine" in refuse(USAGE, *words, cwd=tmp_path)
