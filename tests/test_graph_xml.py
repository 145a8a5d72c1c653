"""GraphML and GEXF as inputs: edges, direction, nodes, attributes; memory; broken files."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import pyarrow as pa
import pytest

import brimful as bf
from brimful.tables.graph_xml import GraphXml
from command import INPUT, USAGE, refuse, succeed
from edge_files import compress

WRITERS: dict[str, Callable[..., None]] = {"graphml": nx.write_graphml, "gexf": nx.write_gexf}


def example(directed: bool) -> nx.Graph:
    """Return a graph with attributes of several types and a node without edges."""
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_node("a", age=41, name="Ann & <co>", score=0.5, member=True)
    graph.add_node("b", age=35, name="é", score=2.5, member=False)
    graph.add_node("c d", name="", age=1, score=1.0, member=True)
    graph.add_node("alone", name="z", age=2, score=1.0, member=True)
    graph.add_edge("a", "b", weight=2.5, year=2020, kind="x")
    graph.add_edge("b", "c d", weight=0.5, year=2021, kind="y")
    graph.add_edge("a", "a", weight=1.0, year=2022, kind="y")
    return graph


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_graphs_of_networkx_are_read(
    tmp_path: Path, kind: str, directed: bool, ending: str
) -> None:
    graph = example(directed)
    path = tmp_path / f"g.{kind}"
    WRITERS[kind](graph, path)
    if ending:
        path = tmp_path / f"g.{kind}.gz"
        path.write_bytes(gzip.compress((tmp_path / f"g.{kind}").read_bytes()))
    with bf.read(path, path=tmp_path / "g.brimful") as made:
        assert list(made) == sorted(graph)
        assert made.directed == directed and made.weighted
        assert made.edges == 3
        assert made.neighbors("a", weights=True)[0] == ["a", "b"]
        assert made.neighbors("a", weights=True)[1] == [1.0, 2.5]
        assert made.info()["id_type"] == "string"


@pytest.mark.parametrize("kind", WRITERS)
def test_attributes_become_columns(tmp_path: Path, kind: str) -> None:
    graph, path = example(True), tmp_path / f"g.{kind}"
    WRITERS[kind](graph, path)
    out = tmp_path / "g.brimful"
    shown = succeed(
        *("import", path, out, "--vertex-columns", path, "--on", "id"),
        *("--edge-columns", "year,kind", "--budget", "450M"),
    ).out
    assert "kept with edges year, kind" in shown
    with bf.Graph.open(out) as made:
        rows = made.vertex_rows("age,name,score,member").read_all().to_pylist()
        assert {row.pop("vertex"): row for row in rows} == {
            node: dict(values) for node, values in graph.nodes(data=True)
        }
        assert {
            (row["source"], row["target"]): (row["weight"], row["year"], row["kind"])
            for row in made.edge_rows().read_all().to_pylist()
        } == {
            (source, target): (values["weight"], values["year"], values["kind"])
            for source, target, values in graph.edges(data=True)
        }


def test_graphs_of_igraph_are_read(tmp_path: Path) -> None:
    graph = igraph.Graph.Ring(5, directed=True)
    graph.vs["age"] = [1.5, 2, 3, 4, 5]
    graph.write_graphml(str(tmp_path / "ring.graphml"))
    with bf.read(
        tmp_path / "ring.graphml", vertex_columns=tmp_path / "ring.graphml", on="id"
    ) as made:
        assert (made.vertices, made.edges, made.weighted) == (5, 5, False)
        assert made.vertex_values("age")["n0"] == 1.5


def test_ids_may_be_read_as_integers(tmp_path: Path) -> None:
    nx.write_graphml(nx.path_graph(4), tmp_path / "path.graphml")
    with bf.read(tmp_path / "path.graphml", ids="int", path=tmp_path / "p.brimful") as made:
        assert list(made) == [0, 1, 2, 3] and made.neighbors(1) == [0, 2]


GRAPHML = '<graphml><graph edgedefault="directed">{}</graph></graphml>'
GEXF = '<gexf><graph defaultedgetype="directed"><nodes/><edges>{}</edges></graph></gexf>'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GRAPHML.format('<edge source="a" target="b"/>')[:-3], "is broken XML"),
        (GRAPHML.format('<edge source="a"/>'), "g.graphml:1: this <edge> has no target"),
        (GRAPHML.format("<node/>"), ":1: this <node> has no id"),
        (GRAPHML.format('<edge source="a" target="b" directed="false"/>'), "of both kinds"),
        (GRAPHML.format('<edge source="a" target="b" directed="0"/>'), "of both kinds"),
        (GEXF.format('<edge source="a" target="b" type="undirected"/>'), "of both kinds"),
        (GEXF.format('<edge source="a" target="b" type="Undirected"/>'), "of both kinds"),
        (GEXF.format('<edge source="a" target="b" type="mutual"/>'), "edge as two arcs"),
        (GEXF.replace('"directed"', '"mutual"'), ":1: expected directed or undirected edges"),
        (GRAPHML.format('<node id="a"><graph/></node>'), "graphs within a graph"),
        (GRAPHML.format("<hyperedge/>"), "has hyperedges"),
        (GRAPHML.format('<node id="a"><data key="d0">1</data></node>'), "that is not declared"),
        (GRAPHML.format('<node id="a"><data>1</data></node>'), "this <data> has no key"),
        ('<?xml version="1.0" encoding="gbk"?><graphml/>', "convert it to UTF-8"),
        ('<!DOCTYPE graphml [<!ENTITY x "y">]><graphml/>', "declares the entity x"),
        ("<html/>", "neither GraphML nor GEXF"),
        ("<graphml/>", "has no graph"),
        ("", "is broken XML"),
    ],
)
def test_what_is_no_graph_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / ("g.gexf" if "gexf" in text else "g.graphml")
    path.write_text(text)
    assert says in refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet")


def test_values_of_another_type_are_refused(tmp_path: Path) -> None:
    key = '<graphml><key id="d" for="node" attr.name="age" attr.type="{}"/>'
    rest = '<graph edgedefault="directed"><node id="a"><data key="d">{}</data></node></graph>'
    path = tmp_path / "g.graphml"
    wrong = [("int", "x"), ("boolean", "maybe"), ("int", "99999999999"), ("double", "")]
    for kind, value in [*wrong, ("double", "-3e400"), ("float", "3e40")]:
        path.write_text(f"{key.format(kind)}{rest.format(value)}</graphml>")
        with pytest.raises(
            bf.InputError, match=f':1: this <node> has a wrong age: expected .*, found "{value}"'
        ):
            GraphXml(str(path)).nodes().read_all()
    for kind, value in (
        ("double", "-INF"),
        ("float", "Infinity"),
        ("float", "-3.4028234663852886e38"),
    ):
        path.write_text(f"{key.format(kind)}{rest.format(value)}</graphml>")
        (age,) = GraphXml(str(path)).nodes().read_all()["age"].to_pylist()
        assert age == float(value)


def test_a_weight_has_its_name_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    for names, weight in ((["Weight"], 0), (["WEIGHT", "weight"], 1), (["weights"], None)):
        keys = "".join(
            f'<key id="{at}" for="edge" attr.name="{name}" attr.type="double"/>'
            for at, name in enumerate(names)
        )
        data = "".join(f'<data key="{at}">{at + 2}</data>' for at in range(len(names)))
        nodes = '<node id="a"/><node id="b"/>'
        edge = f'<edge source="a" target="b">{data}</edge>'
        path.write_text(
            f'<graphml>{keys}<graph edgedefault="directed">{nodes}{edge}</graph></graphml>'
        )
        with bf.read(path) as graph:
            assert graph.weighted == (weight is not None)
            if weight is not None:
                assert graph.to_arrow()["weight"].to_pylist() == [weight + 2]


def test_a_weight_of_gexf_is_one_by_default(tmp_path: Path) -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    path = tmp_path / "g.gexf"
    nx.write_gexf(graph, path)
    with bf.read(path) as plain:
        assert not plain.weighted
    graph.edges["b", "c"].update(weight=2.0, label="late")
    nx.write_gexf(graph, path)
    with bf.read(path, edge_columns="label") as read:
        assert pa.table(read.edge_rows()).to_pydict() == {
            "source": ["a", "b"],
            "target": ["b", "c"],
            "weight": [1.0, 2.0],
            "label": [None, "late"],
        }


def test_a_weight_has_64_bits(tmp_path: Path) -> None:
    key = '<key id="{0}" for="edge" attr.name="{0}" attr.type="float"/>'
    data = '<data key="weight">16777217</data><data key="cost">16777217</data>'
    edge = f'<node id="a"/><edge source="a" target="a">{data}</edge>'
    path = tmp_path / "g.graphml"
    keys = key.format("weight") + key.format("cost")
    path.write_text(f'<graphml>{keys}<graph edgedefault="directed">{edge}</graph></graphml>')
    for weight, other in (("weight", "cost"), ("cost", None)):
        with bf.read(path, weight=weight, edge_columns=other) as graph:
            row = pa.table(graph.edge_rows()).to_pylist()[0]
        assert row["weight"] == 16777217
        assert other is None or row[other] == 16777216


def test_a_weight_is_one_plain_number(tmp_path: Path) -> None:
    """Other attributes may be broken, or have a value for each time."""
    key = '<key id="{0}" for="edge" attr.name="{0}" attr.type="double"/>'
    start = f"<graphml>{key.format('weight')}{key.format('time')}"
    nodes = '<graph edgedefault="Directed"><node id="a"/><node id="b"/>'
    path = tmp_path / "g.graphml"

    def write(*values: str) -> None:
        data = "".join(f"<data {value}</data>" for value in values)
        edge = f'<edge source="a" target="b" type="friend">{data}</edge>'
        path.write_text(f"{start}{nodes}{edge}</graph></graphml>")

    weight, time = 'key="weight">', 'key="time">'
    for values, says in (
        ([weight + "1_000"], 'a number, found "1_000"'),
        ([weight + "\u0663"], 'a number, found "\u0663"'),
        ([weight + "1", weight + "2"], "one value, found several"),
    ):
        write(*values)
        with pytest.raises(bf.InputError, match=f"has a wrong weight: expected {says}"):
            bf.read([path])
    write(weight + " 2.5 ", time + "1", time + "x")
    with bf.read([path]) as graph:
        assert graph.directed
        assert graph.neighbors("a", weights=True) == (["b"], [2.5])
    with pytest.raises(bf.InputError, match="a wrong time: expected one value, found several"):
        GraphXml(str(path)).edges().read_all()


def test_text_around_the_children_of_an_element_is_its_value(tmp_path: Path) -> None:
    """The text of the children is not, and neither is the space between those of yEd."""
    path = tmp_path / "g.graphml"
    keys = (
        '<key id="d" for="node" attr.name="name" attr.type="string">'
        "<default>un<i>x</i>known</default></key>"
        '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
    )
    nodes = "".join(
        f'<node id="{id_}"><data key="d">{text}</data></node>'
        for id_, text in enumerate((" a<b>b</b>c<d>d<e>e</e>d</d><!-- e -->f", "\n <y/>\n ", " \n"))
    )
    edge = '<edge source="0" target="1"><data key="w"><x>1</x>2.5</data></edge>'
    path.write_text(f'<graphml>{keys}<graph edgedefault="directed">{nodes}{edge}</graph></graphml>')
    with bf.read(path, vertex_columns=path, on="id") as graph:
        names = pa.table(graph.vertex_rows())["name"].to_pylist()
        assert names == ["acf", "unknown", " \n"]
        assert graph.to_arrow()["weight"].to_pylist() == [2.5]


def test_the_choice_of_columns_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    nx.write_graphml(example(True), path)
    out = tmp_path / "g.brimful"
    assert "has edges of its own" in refuse(USAGE, "import", path, out, "--source", "a")
    assert "no numeric attribute kind" in refuse(USAGE, "import", path, out, "--weight", "kind")
    with bf.read(path, weight="year", path=out) as made:
        assert made.neighbors("a", weights=True)[1] == [2022.0, 2020.0]


def test_files_of_another_name_are_known_by_their_content(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    nx.write_graphml(example(True), path)
    assert "this is GraphML; read it with --format graphml" in refuse(
        *(INPUT, "import", path, tmp_path / "g.brimful")
    )
    succeed("import", path, tmp_path / "g.brimful", "--format", "graphml", "--quiet")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_the_content_shows_the_compression(tmp_path: Path, suffix: str) -> None:
    """Damage is an error of the input, as in text."""
    noise = random.Random(1).randbytes(999).hex()
    text = GRAPHML.format(f'<!--{noise}--><node id="a"/><edge source="a" target="a"/>').encode()
    whole = compress(suffix, text)
    damaged = whole[:12] + b"\xff" * 99 + whole[111:]
    path = tmp_path / f"g.graphml{suffix}"
    for content in (whole[: len(whole) // 2], damaged):
        path.write_bytes(content)
        message = refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet")
        assert f"{path} is truncated or damaged" in message
    for name, content in (("plain.graphml" + suffix, text), ("g.graphml", compress(suffix, text))):
        (tmp_path / name).write_bytes(content)
        with bf.read(tmp_path / name) as graph:
            assert list(graph) == ["a"]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for count in (8_000, 32_000):
        path = tmp_path / f"{count}.graphml"
        nodes = "".join(f'<node id="n{at}"/>' for at in range(count))
        edges = "".join(f'<edge source="n{at}" target="n0"/>' for at in range(count))
        path.write_text(GRAPHML.format(nodes + edges))
        file: Any = GraphXml(str(path))
        tracemalloc.start()
        assert sum(batch.num_rows for batch in file.edges()) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_a_token_without_an_end_is_refused_soon(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text('<graphml><graph edgedefault="directed"><node id="' + "1" * (8 << 20))
    sentence = refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet")
    assert "1 MiB without the end of a tag" in sentence


LINES = {
    "graphml": (
        '<graphml>\n<key id="w" for="edge" attr.name="weight" attr.type="double">'
        '<default>1</default></key>\n<graph edgedefault="directed">\n{}\n</graph>\n</graphml>\n'
    ),
    "gexf": (
        '<gexf>\n<!-- -->\n<graph defaultedgetype="directed"><nodes>\n{}\n</edges></graph>\n'
        "</gexf>\n"
    ),
}
#: Between nodes and edges, and a wrong weight.
PARTS = {
    "graphml": ("", '<edge source="1" target="2"><data key="w">abc</data></edge>'),
    "gexf": ("</nodes><edges>", '<edge source="1" target="2" weight="abc"/>'),
}
NODES = '<node id="1"/>\n<node id="2"/>\n'


def written(folder: Path, kind: str, elements: str) -> Path:
    path = folder / f"g.{kind}"
    path.write_text(LINES[kind].format(elements))
    return path


@pytest.mark.parametrize("kind", LINES)
def test_messages_name_the_line(tmp_path: Path, kind: str) -> None:
    between, wrong = PARTS[kind]
    out = tmp_path / "g.brimful"

    def refused(elements: str, *options: str) -> str:
        path = written(tmp_path, kind, elements)
        return refuse(INPUT, "import", path, out, "--quiet", *options)

    sentence = refused(f'{NODES}{between}<edge source="1"/>')
    assert f"g.{kind}:6: this <edge> has no target" in sentence
    sentence = refused(f"{NODES}{between}{wrong}")
    assert f'g.{kind}:6: this <edge> has a wrong weight: expected a number, found "abc"' in sentence
    sentence = refused(f'{NODES}{between}\n<edge source="1" target="x2"/>', "--ids", "int")
    assert f'g.{kind}: line 7, column "target"' in sentence
    # The rows are 1, 2 and 3, the lines 4, 5 and 7.
    path = written(tmp_path, kind, f'{NODES}{between}\n<edge source="1" target="x2"/>')
    found = succeed("import", path, out, "--ids", "int", "--on-error", "skip", "--json").figures
    assert [one["first_line"] for one in found["rejections"]] == [7]


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("ids", ["int", "string"])
def test_edges_to_undeclared_nodes_are_refused(tmp_path: Path, kind: str, ids: str) -> None:
    between, out = PARTS[kind][0], tmp_path / "g.brimful"
    edges = '<edge source="1" target="2"/>\n<edge source="2" target="9"/>'
    path = written(tmp_path, kind, f"{NODES}{between}{edges}")
    wanted = "import", path, out, "--quiet", "--ids", ids
    says = f'g.{kind}:7: expected a vertex that a <node> declares, found "9"'
    assert says in refuse(INPUT, *wanted)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    # As many nodes as vertices.
    path = written(tmp_path, kind, f"{NODES}{NODES}{between}{edges}")
    assert f'g.{kind}:6: expected each <node> once, found "1" again' in refuse(INPUT, *wanted)
    if ids == "int":
        written(tmp_path, kind, f"{NODES}{between}{edges}")
        succeed(*wanted, "--vertices", "10")


def test_nodes_may_be_declared_after_their_edges(tmp_path: Path) -> None:
    edge = '<edge source="01" target="2"/>'
    path = written(tmp_path, "graphml", f'{edge}<node id=" 1"/><node id="002"/>')
    with bf.read(path, ids="int", path=tmp_path / "g.brimful") as made:
        assert list(made) == [1, 2] and made.neighbors(1) == [2]


def test_a_changed_file_is_imported_again_whole_or_not_at_all(tmp_path: Path) -> None:
    between, edge = PARTS["gexf"][0], '<edge source="1" target="2"/>'
    path = written(tmp_path, "gexf", f"{NODES}{between}{edge}")
    succeed("info", path, "--quiet")
    written(tmp_path, "gexf", f'{NODES}{between}{edge}<edge source="1" target="3"/>')
    assert 'found "3"' in refuse(INPUT, "info", path, "--quiet")
    assert len(bf.Graph.open(tmp_path / "g.gexf.brimful")) == 2
    written(tmp_path, "gexf", f'{NODES}<node id="3"/>{between}{edge}')
    succeed("info", path, "--quiet")
    assert len(bf.Graph.open(tmp_path / "g.gexf.brimful")) == 3
    assert {one.name for one in tmp_path.iterdir()} == {"g.gexf", "g.gexf.brimful"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<graphml>" * 300, ":1: its elements are nested more than 256 deep"),
        ("<gexf>\n" * 300, ":257: its elements are nested more than 256 deep"),
        (
            "<graphml>" + "".join(f'\n<key id="{at}"/>' for at in range(5000)),
            ":2050: the file declares more than 4,096 attributes",
        ),
        (
            GRAPHML.format("\n<node id='a'>" + '<data key="a">x</data>' * 70_000),
            ":2: this <node> has more than 65,536 values",
        ),
        ("<graphml>" + "".join(f"<n{at}/>" for at in range(90_000)), ":1: more than 65,536 names"),
    ],
)
def test_what_would_fill_the_memory_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(text)
    assert f"g.graphml{says}" in refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet")
