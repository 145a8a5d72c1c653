"""Documents of databases as edges, and results as fields of documents, with real servers."""

from __future__ import annotations

import functools
import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import brimful as bf
import servers
from brimful.stores import Opening
from brimful.stores.orient import Orient
from command import INPUT, IO, USAGE, brimful, refuse, succeed

pymongo = pytest.importorskip("pymongo")


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    with servers.mongo(tmp_path_factory.mktemp("mongo")) as server:
        yield server


@pytest.fixture(scope="module")
def orient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    with servers.orient(tmp_path_factory.mktemp("orient")) as server:
        yield server


class Mongo:
    """A collection that a test fills and looks at."""

    key = "_id"

    def __init__(self, server: servers.Server, name: str) -> None:
        self.url = f"mongodb://127.0.0.1:{server.port}/app/{name}"
        self._client = pymongo.MongoClient("127.0.0.1", server.port)
        self.collection = self._client["app"][name]
        self.collection.drop()
        _OPENED.append(self)

    def insert(self, documents: list[dict[str, Any]]) -> None:
        self.collection.insert_many([dict(one) for one in documents])

    def index(self, field: str, kind: str) -> None:
        self.collection.create_index(field)

    def documents(self) -> list[dict[str, Any]]:
        return list(self.collection.find().sort("_id", 1))

    def close(self) -> None:
        self._client.close()


class OrientClass:
    """A class that a test fills and looks at."""

    key = "@rid"

    def __init__(self, server: servers.Server, name: str) -> None:
        password = quote(servers.PASSWORD, safe="")
        self.url = f"orientdb://root:{password}@127.0.0.1:{server.port}/graphs/{name}"
        self.name, self.server = name, Orient(Opening(self.url, 0, 0))
        self.server.query(f"DROP CLASS {name} IF EXISTS UNSAFE")
        self.server.query(f"CREATE CLASS {name}")
        _OPENED.append(self)

    def insert(self, documents: list[dict[str, Any]]) -> None:
        for document in documents:
            self.server.query(f"INSERT INTO {self.name} CONTENT :d", d=document)

    def index(self, field: str, kind: str) -> None:
        self.server.query(f"CREATE PROPERTY {self.name}.{field} {kind}")
        self.server.query(f"CREATE INDEX {self.name}.{field} NOTUNIQUE")

    def documents(self) -> list[dict[str, Any]]:
        rows = self.server.query(f"SELECT FROM {self.name} ORDER BY @rid")
        return [{k: v for k, v in row.items() if not k.startswith("@")} for row in rows]

    def close(self) -> None:
        self.server.close()


@pytest.fixture(autouse=True)
def closed_afterwards() -> Iterator[None]:
    yield
    while _OPENED:
        _OPENED.pop().close()


#: Places that a test has opened.
_OPENED: list[Any] = []


@pytest.fixture(params=["mongodb", "orientdb"])
def place(request: pytest.FixtureRequest) -> Any:
    name = "T" + str(abs(hash(request.node.name)))
    if request.param == "mongodb":
        return Mongo(request.getfixturevalue("mongo"), name)
    return OrientClass(request.getfixturevalue("orient"), name)


def edges_of(graph: bf.Graph) -> list[tuple[Any, ...]]:
    table = graph.to_arrow()
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


NAMED = {"source": "from", "target": "to"}


def test_edge_documents_become_a_graph(place: Any) -> None:
    place.insert(
        [{"from": n % 7, "to": (n * n) % 11, "w": n / 4, "more": "x"} for n in range(2500)]
    )
    expected = sorted((n % 7, (n * n) % 11, n / 4) for n in range(2500))
    with bf.read(place.url, weight="w", **NAMED) as graph:
        assert edges_of(graph) == expected
        columns = graph.info()["columns"]
        assert (columns["source"], columns["target"], columns["weight"]) == ("from", "to", "w")
    with bf.read(place.url, **NAMED) as graph:
        assert not graph.weighted
        assert graph.edges == 2500


def test_arrays_of_targets_become_edges(place: Any) -> None:
    place.insert(
        [
            {"uid": 1, "to": [2, 3, 3], "ws": [0.5, 1, 2]},
            {"uid": 2, "to": [], "ws": []},
            {"uid": 4, "to": [], "ws": []},
            {"uid": 3, "to": [1], "ws": [9]},
        ]
    )
    with bf.read(place.url, source="uid", target="to") as graph:
        assert edges_of(graph) == [(1, 2), (1, 3), (1, 3), (3, 1)]
        # A vertex with an empty array exists, and an edge may name it too.
        assert list(graph) == [1, 2, 3, 4]
    with bf.read(place.url, source="uid", target="to", weight="ws", ids="string") as graph:
        assert edges_of(graph) == [("1", "2", 0.5), ("1", "3", 1), ("1", "3", 2), ("3", "1", 9)]
        assert list(graph) == ["1", "2", "3", "4"]


def test_fields_within_fields_have_dots(place: Any) -> None:
    place.insert(
        [
            {"user": {"name": "ann"}, "to": [{"name": "bob", "w": 2}, {"name": "cleo", "w": 3}]},
            {"user": {"name": "dora"}, "to": []},
        ]
    )
    with bf.read(place.url, source="user.name", target="to.name", weight="to.w") as graph:
        assert edges_of(graph) == [("ann", "bob", 2), ("ann", "cleo", 3)]
        assert list(graph) == ["ann", "bob", "cleo", "dora"]


def test_object_ids_are_hexadecimal_strings(mongo: servers.Server) -> None:
    from bson import ObjectId

    place = Mongo(mongo, "objects")
    ids = [ObjectId() for _ in range(3)]
    place.insert([{"_id": ids[0], "to": [ids[1], ids[2]]}, {"_id": ids[1], "to": [str(ids[2])]}])
    with bf.read(place.url, source="_id", target="to") as graph:
        assert edges_of(graph) == sorted(
            (str(ids[a]), str(ids[b])) for a, b in ((0, 1), (0, 2), (1, 2))
        )
        ranks = bf.pagerank(graph)
        ranks.write(place.url + "?field=rank")
    assert [one["rank"] for one in place.documents()] == [ranks[str(id)] for id in ids[:2]]
    found = ranks.stats["documents"]
    assert found["updated"] == 2
    assert found["vertices_without_document"] == 1
    assert found["first_missing"] == str(ids[2])


def test_keys_of_several_types_and_whole_doubles_are_read(mongo: servers.Server) -> None:
    place = Mongo(mongo, "mixed")
    place.insert([{"_id": n, "from": float(n), "to": n + 1} for n in range(1500)])
    place.insert([{"_id": str(n), "from": n, "to": n + 1.0} for n in range(1500)])
    place.insert([{"from": 0, "to": 2**53} for _ in range(1500)])
    with bf.read(place.url, **NAMED) as graph:
        assert graph.edges == 4500
        assert max(graph) == 2**53


def test_edges_of_a_graph_database_follow_links(orient: servers.Server) -> None:
    place = OrientClass(orient, "Follows0")
    query = place.server.query
    query("DROP CLASS Follows0 IF EXISTS UNSAFE")
    query("CREATE CLASS Person0 IF NOT EXISTS EXTENDS V")
    query("CREATE CLASS Follows0 EXTENDS E")
    for name in ("ann", "bob", "cleo"):
        query("CREATE VERTEX Person0 SET name = :name", name=name)
    for a, b in (("ann", "bob"), ("cleo", "bob")):
        query(
            "CREATE EDGE Follows0 FROM (SELECT FROM Person0 WHERE name = :a) "
            "TO (SELECT FROM Person0 WHERE name = :b)",
            a=a,
            b=b,
        )
    with bf.read(place.url, source="out.name", target="in.name") as graph:
        assert edges_of(graph) == [("ann", "bob"), ("cleo", "bob")]
    with bf.read(place.url, source="out", target="in") as graph:
        people = {one["k"]: one["name"] for one in query("SELECT @rid AS k, name FROM Person0")}
        assert sorted(people[a] + people[b] for a, b in edges_of(graph)) == ["annbob", "cleobob"]
        bf.degrees(graph).write(place.url.replace("Follows0", "Person0") + "?field=degree")
    place.name = "Person0"
    assert {one["name"]: one["degree"] for one in place.documents()} == {
        "ann": 1,
        "bob": 0,
        "cleo": 1,
    }


def test_the_order_of_record_ids_is_that_of_numbers(orient: servers.Server) -> None:
    place = OrientClass(orient, "Many")
    lines = [f"INSERT INTO Many SET `from` = {n}, `to` = {n + 1}" for n in range(3000)]
    for first in range(0, len(lines), 500):
        place.server.execute(lines[first : first + 500])
    with bf.read(place.url, **NAMED) as graph:
        assert edges_of(graph) == [(n, n + 1) for n in range(3000)]


@pytest.mark.parametrize(
    ("bad", "options", "text"),
    [
        ({"from": 3}, {}, 'has no field "to"'),
        ({"to": 3}, {}, 'has no field "from"'),
        ({"from": "x", "to": 3}, {}, 'has "x" in the field "from": expected an integer'),
        ({"from": 3, "to": [1, "x"]}, {}, 'has "x" in the field "to": expected an integer'),
        ({"from": 3, "to": 4.5}, {}, 'has 4.5 in the field "to"'),
        ({"from": 3, "to": 4}, {"weight": "w"}, 'has no field "w"'),
        ({"from": 3, "to": 4, "w": "1"}, {"weight": "w"}, "expected a finite number as weight"),
        ({"from": 3, "to": [4], "w": 1}, {"weight": "w"}, "expected an array of 1 weights"),
        ({"from": True, "to": 4}, {"ids": "string"}, "expected a string as vertex id"),
        ({"from": "7.5", "to": 4}, {"ids": "int"}, "expected an integer of 64 bits"),
    ],
)
def test_a_document_that_is_no_edge_is_named(
    place: Any, bad: dict[str, Any], options: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = {"from": 1, "to": 2, "w": 1}
    place.insert([good, good, bad, good])
    with pytest.raises(bf.InputError) as caught:
        bf.read(place.url, **NAMED, **options)
    sentence = str(caught.value)
    assert text in sentence
    assert f"the document with {place.key} " in sentence
    assert servers.PASSWORD not in sentence
    with (
        caplog.at_level(logging.WARNING, "brimful"),
        bf.read(place.url, on_error="skip", **NAMED, **options) as graph,
    ):
        # Of an array the other entries stay.
        kept = 4 if bad.get("to") == [1, "x"] else 3
        assert (graph.edges, graph.info()["rejected"]) == (kept, 1)
    assert text in caplog.text


def test_fields_are_not_guessed(place: Any) -> None:
    place.insert([{"source": 1, "target": 2}])
    with pytest.raises(bf.UsageError, match="name them with source= and"):
        bf.read(place.url)
    with pytest.raises(bf.UsageError, match="must name different fields"):
        bf.read(place.url, source="target", target="target")
    with pytest.raises(bf.UsageError, match="apply to text and tables"):
        bf.read(place.url, source="source", target="target", delimiter=";")
    with pytest.raises(bf.UsageError, match="applies to files"):
        bf.read(place.url, source="source", target="target", format="csv")
    with pytest.raises(bf.UsageError, match="must be imported first"):
        bf.bfs(place.url, 1)


def test_what_is_not_there_is_named(mongo: servers.Server, orient: servers.Server) -> None:
    place = f"127.0.0.1:{mongo.port}/app/nothing"
    with pytest.raises(bf.InputError, match=f"{place} has no documents"):
        bf.read(f"mongodb://{place}", **NAMED)
    server = f"127.0.0.1:{orient.port}"
    with pytest.raises(bf.InputError, match="has no class Nothing"):
        bf.read(
            f"orientdb://root:{quote(servers.PASSWORD, safe='')}@{server}/graphs/Nothing", **NAMED
        )
    with pytest.raises(bf.UsageError, match="refused the user, the password or") as caught:
        bf.read(f"orientdb://root:wrong7@{server}/graphs/T", **NAMED)
    assert "wrong7" not in str(caught.value)


def test_a_server_that_never_answers_is_named(chain: bf.Graph) -> None:
    port = servers.free_port()
    degrees = bf.degrees(chain)
    for scheme in ("mongodb", "orientdb"):
        url = f"{scheme}://root:secret@127.0.0.1:{port}/graphs/V?retry_seconds=1"
        for call in (
            functools.partial(bf.read, url, **NAMED),
            functools.partial(degrees.write, url + "&field=x"),
        ):
            with pytest.raises(bf.StoreIoError, match="did not answer for 1 s") as caught:
                call()
            assert f"127.0.0.1:{port}" in str(caught.value)
            assert "secret" not in str(caught.value)


@pytest.fixture
def chain(tmp_path: Path) -> bf.Graph:
    path = tmp_path / "chain.txt"
    path.write_text("".join(f"{n} {n + 1}\n" for n in range(2000)))
    return bf.read(path)


def test_a_result_becomes_a_field(
    place: Any, chain: bf.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    place.insert([{"uid": n, "name": f"n{n}"} for n in range(0, 3000, 10)])
    place.insert([{"uid": 0, "name": "again"}, {"name": "no id"}])
    place.index("uid", "LONG")
    before = place.documents()
    ranks = bf.pagerank(chain)
    with caplog.at_level(logging.WARNING, "brimful"):
        ranks.write(place.url + "?field=rank&id=uid")
    after = place.documents()
    expected = [
        {**one, "rank": ranks[one["uid"]]} if one.get("uid") in range(2001) else one
        for one in before
    ]
    assert after == expected
    written = ranks.stats["documents"]
    assert (written["updated"], written["vertices_without_document"]) == (202, 1800)
    assert written["first_missing"] == 1
    assert "1,800 vertices without a document in" in caplog.text
    assert servers.PASSWORD not in caplog.text + str(ranks.stats)
    with pytest.raises(bf.UsageError, match='have the field "rank"'):
        ranks.write(place.url + "?field=rank&id=uid")
    levels = bf.bfs(chain, 1000)
    levels.write(place.url + "?field=rank&id=uid", overwrite=True)
    # A value that does not exist is null.
    found = {one["uid"]: one["rank"] for one in place.documents() if "rank" in one}
    assert (found[0], found[990], found[1500]) == (None, None, 500)


def test_strings_become_fields_as_they_are(place: Any) -> None:
    names = ["q\"u'o\\te", "\u20ac\n", "b"]
    place.insert([{"uid": name} for name in names])
    place.index("uid", "STRING")
    with bf.Graph.from_arrow(pa.table({"source": names, "target": names})) as graph:
        bf.connected_components(graph).write(place.url + "?field=part&id=uid")
    assert [one["part"] for one in place.documents()] == [one["uid"] for one in place.documents()]


def test_an_id_is_found_as_an_integer_and_as_text(place: Any) -> None:
    """`--ids` imports both, and the other form was without a document."""
    place.insert([{"uid": "5", "n": 5}, {"uid": "7", "n": 7}, {"uid": "x", "n": 8}])
    place.index("uid", "STRING")
    place.index("n", "LONG")
    for ids, field in (([5, 7], "uid"), (["5", "7"], "n")):
        with bf.Graph.from_arrow(pa.table({"source": ids, "target": ids})) as graph:
            degrees = bf.degrees(graph)
            degrees.write(f"{place.url}?field=of_{field}&id={field}")
        documents = degrees.stats["documents"]
        assert (documents["updated"], documents["vertices_without_document"]) == (2, 0)
    found = {one["uid"]: (one.get("of_uid"), one.get("of_n")) for one in place.documents()}
    assert found == {"5": (1, 1), "7": (1, 1), "x": (None, None)}


def test_equal_values_of_other_types_are_no_ids(mongo: servers.Server) -> None:
    """They were a KeyError."""
    from bson.decimal128 import Decimal128

    place = Mongo(mongo, "decimals")
    place.insert([{"uid": Decimal128("5")}, {"uid": 7.0}])
    place.index("uid", "LONG")
    with bf.Graph.from_arrow(pa.table({"source": [5], "target": [7]})) as graph:
        degrees = bf.degrees(graph)
        degrees.write(place.url + "?field=degree&id=uid")
    assert degrees.stats["documents"]["first_missing"] == 5
    assert [one.get("degree") for one in place.documents()] == [None, 0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("", "name the field for the result"),
        ("?id=uid", "name the field for the result"),
        ("?field=uid&id=uid", "cannot replace the ids"),
        ("?field=rank&id=other", "has no index"),
        ("?field=@x&id=uid", "cannot be written to the field|has no index"),
        ("?field=_id.x", "cannot be written to the field"),
    ],
)
def test_a_destination_that_cannot_be_is_refused_before_the_run(
    place: Any, options: str, text: str, tmp_path: Path
) -> None:
    place.insert([{"uid": 1}])
    if "@x" not in options:
        place.index("uid", "LONG")
    edges = tmp_path / "edges.txt"
    edges.write_text("1 2\n")
    sentence = refuse(
        USAGE, *("run", "degrees", edges, "-o", place.url + options, "--quiet"), cwd=tmp_path
    )
    assert re.search(text, sentence)
    assert servers.PASSWORD not in sentence
    # Nothing was imported: the destination is looked at first.
    assert not (tmp_path / "edges.txt.brimful").exists()


def test_integers_that_a_database_cannot_hold_are_refused(place: Any) -> None:
    place.insert([{"uid": 1}])
    place.index("uid", "LONG")
    large = pa.array([2**64 - 1, 2**64 - 2], pa.uint64())
    with (
        bf.Graph.from_arrow(pa.table({"source": large, "target": large})) as graph,
        pytest.raises(bf.InputError, match="integers have 64 bits with a sign"),
    ):
        bf.degrees(graph).write(place.url + "?field=degree&id=uid")


def test_the_command_line_imports_and_writes_back(place: Any, tmp_path: Path) -> None:
    place.insert([{"id": n, "to": [n + 1]} for n in range(1200)])
    place.index("id", "LONG")
    graph, log = tmp_path / "g.brimful", tmp_path / "log.jsonl"
    named = "--source", "id", "--target", "to"
    done = succeed("import", place.url, graph, *named, "--budget", "400M", "--log", log)
    assert "1,201 vertices, 1,200 edges" in done.out
    assert "columns: source id; target to" in done.out
    url = place.url + "?field=level&id=id"
    ran = succeed("run", "bfs", graph, "--source", 0, "-o", url, "--json", "--log", log)
    assert {one["id"]: one["level"] for one in place.documents()} == {n: n for n in range(1200)}
    assert ran.figures["documents"]["updated"] == 1200
    assert "left out: 1 vertex without a document" in ran.err
    again = succeed("run", "bfs", graph, "--source", 0, "-o", url, "--overwrite", "--log", log)
    assert "field level of 1,200 documents" in again.out
    shown = done.out + done.err + ran.out + ran.err + again.out + again.err + log.read_text()
    assert servers.PASSWORD not in shown
    assert quote(servers.PASSWORD, safe="") not in shown
    place.insert([{"id": 3, "to": ["x"]}])
    sentence = refuse(INPUT, "import", place.url, tmp_path / "h.brimful", *named, "--quiet")
    assert place.key in sentence
    assert not (tmp_path / "h.brimful").exists()


def test_several_collections_make_one_graph(mongo: servers.Server) -> None:
    first, second = Mongo(mongo, "first"), Mongo(mongo, "second")
    first.insert([{"from": 1, "to": 2}])
    second.insert([{"from": 2, "to": 3}, {"from": 5, "to": []}])
    with bf.read([first.url, second.url], **NAMED) as graph:
        assert edges_of(graph) == [(1, 2), (2, 3)]
        assert list(graph) == [1, 2, 3, 5]


def test_a_server_that_comes_back_is_waited_for(tmp_path: Path, chain: bf.Graph) -> None:
    with servers.mongo(tmp_path) as server:
        place = Mongo(server, "edges")
        server.kill()

        def starts() -> None:
            time.sleep(1.0)
            server.start()

        starter = threading.Thread(target=starts)
        starter.start()
        # The memory of the server is empty, so that its answer is that there are no documents.
        with pytest.raises(bf.InputError, match="has no documents"):
            bf.read(place.url, **NAMED)
        starter.join()


def test_a_connection_that_breaks_between_answers_goes_on(
    mongo: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pymongo.errors import AutoReconnect
    from pymongo.synchronous.cursor import RawBatchCursor

    place = Mongo(mongo, "broken")
    place.insert([{"from": n, "to": n + 1} for n in range(4500)])
    answered, following = [0], RawBatchCursor.next

    def breaks(cursor: Any) -> Any:
        answered[0] += 1
        if answered[0] in (3, 4):
            raise AutoReconnect("the connection was reset")
        return following(cursor)

    monkeypatch.setattr(RawBatchCursor, "next", breaks)
    monkeypatch.setattr(RawBatchCursor, "__next__", breaks)
    with bf.read(place.url, **NAMED) as graph:
        assert edges_of(graph) == [(n, n + 1) for n in range(4500)]
    assert answered[0] > 5
    answered[0] = 0

    def changes(cursor: Any) -> Any:
        answered[0] += 1
        if answered[0] == 2:
            first = place.collection.find_one({}, sort=[("_id", 1)])
            assert first is not None
            place.collection.delete_one({"_id": first["_id"]})
            raise AutoReconnect("the connection was reset")
        return following(cursor)

    monkeypatch.setattr(RawBatchCursor, "__next__", changes)
    with pytest.raises(bf.InputError, match="changed while it was read"):
        bf.read(place.url, **NAMED)


def test_a_lost_server_ends_a_command(tmp_path: Path) -> None:
    port = servers.free_port()
    url = f"mongodb://root:hidden@127.0.0.1:{port}/app/edges?retry_seconds=0"
    done = brimful("import", url, tmp_path / "g.brimful", "--source", "a", "--target", "b")
    assert done.code == IO
    assert "hidden" not in done.out + done.err
    edges = tmp_path / "edges.txt"
    edges.write_text("1 2\n")
    done = brimful("run", "degrees", edges, "-o", url + "&field=x")
    assert done.code == IO
    assert "hidden" not in done.out + done.err
