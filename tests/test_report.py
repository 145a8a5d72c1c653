"""Reports: complete pages without network, whose figures are there, within the budget."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pictures
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import brimful as bf
from brimful.cli.recorder import Recorder
from brimful.report import facts
from brimful.report.neighborhood import neighborhood
from brimful.wording import escape_controls
from command import INPUT, USAGE, names_below, refuse, succeed
from nightly import with_nightly

RUN_FIGURES = [
    "Memory of the process",
    "Seconds per superstep",
    "Bytes per superstep",
    "Frontier per superstep",
    "Edges per superstep",
    "Where the time went",
    "Distribution of pagerank",
]
GRAPH_FIGURES = ["Degree distribution", "Component sizes"]


class Page(HTMLParser):
    """The figures of a page, its cells, and whatever it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.figures: list[str] = []
        self.cells: list[str] = []
        self.loaded: list[str] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "svg" and given.get("role") == "img":
            self.figures.append(str(given["aria-label"]))
        for name in ("src", "href", "xlink:href"):
            if name in given and not str(given[name]).startswith("#"):
                self.loaded.append(str(given[name]))
        self._in_cell = tag == "td"

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells.append(data)
            self._in_cell = False


@pytest.fixture(scope="module")
def pages(rmat: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The page of a run, and that of the graph."""
    folder = tmp_path_factory.mktemp("pages")
    ran, graph = folder / "run.html", folder / "graph.html"
    out = folder / "ranks.csv"
    succeed("run", "pagerank", rmat, "--report", ran, "--around", 7, "-o", out, "--quiet")
    succeed("info", rmat, "--html", graph, "--around", 7, "--around", 9, "--quiet")
    return ran, graph


def test_the_page_of_a_run_has_its_figures(pages: tuple[Path, Path], rmat: Path) -> None:
    text = pages[0].read_text()
    page = Page(text)
    assert page.figures == [*RUN_FIGURES, "Neighborhood of 7"]
    assert page.loaded == [] and "<script" not in text and "@import" not in text
    assert f"brimful run pagerank {rmat} --report {pages[0]} --around 7" in text
    assert "16,384" in page.cells and "converged within the tolerance" in page.cells
    best = bf.SavedResult(pages[0].parent / "ranks.csv").top(1)[0][0]
    assert page.cells.index(str(best)) > page.cells.index("peak memory")


def test_the_page_of_a_graph_has_its_figures(pages: tuple[Path, Path]) -> None:
    page = Page(pages[1].read_text())
    assert page.figures == [*GRAPH_FIGURES, "Neighborhood of 7", "Neighborhood of 9"]
    assert page.loaded == [] and {"vertices", "components", "largest component"} < set(page.cells)


def test_names_of_figures_do_not_clash(pages: tuple[Path, Path]) -> None:
    for path in pages:
        text = path.read_text()
        names = re.findall(r'\bid="([^"]+)"', text)
        assert len(names) == len(set(names)) > 10
        assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text)) <= set(names)


def test_colors_are_those_of_the_page(pages: tuple[Path, Path]) -> None:
    """A color of matplotlib's own would be unreadable in the dark."""
    for path in pages:
        text = path.read_text()
        figures = re.findall(r"<svg.*?</svg>", text, flags=re.S)
        assert len(figures) >= 4
        for figure in figures:
            colors = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", figure))
            assert colors <= {
                "none",
                "var(--ink)",
                "var(--faint)",
                "var(--first)",
                "var(--second)",
            }, colors
        for variable in ("--ink", "--faint", "--first", "--second"):
            assert len(re.findall(rf"{variable}: #", text)) == 2


def test_a_browser_shows_every_figure(pages: tuple[Path, Path]) -> None:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="SKIPPED: no Playwright (pip install playwright)"
    )
    found = pictures.browser()
    if found is None:
        pytest.skip(f"SKIPPED: no browser; install one of {', '.join(pictures.BROWSERS)}")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for path in pages:
            for scheme, width in (("light", 1280), ("dark", 380)):
                view = {"width": width, "height": 800}
                page = browser.new_page(viewport=view, color_scheme=scheme)
                said: list[str] = []
                page.on("pageerror", lambda error, said=said: said.append(str(error)))
                page.on("console", lambda message, said=said: said.append(message.text))
                page.on("request", lambda asked, said=said: said.append(asked.url))
                page.goto(path.as_uri())
                assert said == [path.as_uri()]
                drawn = page.evaluate(
                    "[...document.querySelectorAll('figure svg')].map(figure =>"
                    " [...figure.querySelectorAll('path, use')].filter(mark => {"
                    " const box = mark.getBoundingClientRect();"
                    " return box.width + box.height > 0 && box.right <= innerWidth"
                    " }).length)"
                )
                assert len(drawn) >= 4 and min(drawn) > 1, drawn
                # Nothing is cut off at the side of a phone.
                assert page.evaluate("document.documentElement.scrollWidth") == width
                page.close()
        browser.close()


def test_supersteps_are_drawn_wherever_the_report_comes_from(rmat: Path, tmp_path: Path) -> None:
    drawn = {name for name in RUN_FIGURES if name.endswith("per superstep")}
    run = ("run", "bfs", rmat, "--source", 0, "--quiet", "--report", tmp_path / "page.html")
    for log in ((), ("--log", "-")):
        succeed(*run, *log, "--overwrite")
        assert drawn < set(Page((tmp_path / "page.html").read_text()).figures)
    with bf.Graph.open(rmat) as graph:
        assert drawn < set(Page(bf.bfs(graph, source=0).report().html).figures)
        # A scan has no frontier.
        labels = set(Page(bf.connected_components(graph).report().html).figures)
    assert drawn - labels == {"Frontier per superstep"}


def test_a_report_says_how_many_supersteps_it_draws(tmp_path: Path) -> None:
    graph, page = tmp_path / "g.brimful", tmp_path / "page.html"
    succeed("generate", "chain", graph, "--vertices", 1500, "--quiet")
    succeed("run", "bfs", graph, "--source", 0, "--quiet", "--report", page)
    assert page.read_text().count("The first 1,000 of 1,500 supersteps.") == 4


def test_a_report_is_refused_before_the_run(rmat: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.touch()
    run = ("run", "pagerank", rmat, "--quiet")
    assert "already exists" in refuse(USAGE, *run, "--report", page)
    assert "already exists" in refuse(USAGE, "info", rmat, "--html", page)
    assert "give --report FILE" in refuse(USAGE, *run, "--around", 7)
    assert "give --html FILE" in refuse(USAGE, "info", rmat, "--around", 7)
    other = tmp_path / "other.html"
    out = tmp_path / "out.csv"
    assert "no vertex -1" in refuse(INPUT, *run, "--report", other, "--around", -1, "-o", out)
    assert "--around takes the id" in refuse(USAGE, *run, "--report", other, "--around", "x")
    assert names_below(tmp_path) == {"page.html"}


def test_a_report_stays_within_the_budget(rmat: Path, tmp_path: Path) -> None:
    """The process itself says so, as matplotlib is loaded after the figures of the run."""
    code = (
        "import sys, brimful.cli, brimful._native\n"
        f"sys.argv[1:] = ['run', 'pagerank', {str(rmat)!r}, '--budget', '220M', "
        f"'--report', {str(tmp_path / 'page.html')!r}, '--quiet']\n"
        "assert brimful.cli.main() == 0\n"
        "print(brimful._native.peak_rss_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 220 << 20


def test_text_of_the_user_is_no_markup() -> None:
    ids = ["<b>", "a&b", "$x^", '"', "x" * 200]
    table = pa.table({"source": ids, "target": ids[1:] + ids[:1]})
    with bf.Graph.from_arrow(table, ids="string") as graph:
        report = graph.report(around=ids)
        ranks = bf.connected_components(graph).report(graph=graph)
    for text in (report.html, ranks.html):
        assert "<b>" not in text and "&lt;b&gt;" in text
        assert len(Page(text).figures) >= 2
    assert "Neighborhood of <b>" in Page(report.html).figures


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "name", ["CORP\\jdoe", "\\1", "\\g<0>", "\x00\x1b[31m", "\t", "\U0001f600", "\ufffe"]
)
def test_a_report_shows_any_name(name: str) -> None:
    with bf.Graph.from_arrow(pa.table({"source": [name], "target": ["b"]})) as graph:
        text = graph.report(around=name).html
    shown = escape_controls(name)
    assert f"Neighborhood of {shown}" in Page(text).figures
    assert f'aria-label="Neighborhood of {html.escape(shown)}"' in text
    assert "\x1b" not in text and "\x00" not in text


@pytest.mark.parametrize(
    "algorithm",
    with_nightly(
        ["hits", "kcore", "label_propagation"], ["scc", "clustering", "degrees", "triangles"]
    ),
)
def test_every_result_has_a_report_and_a_plot(rmat: Path, algorithm: str) -> None:
    with bf.Graph.open(rmat) as graph:
        result = getattr(bf, algorithm)(graph)
        figures = Page(result.report(graph=graph).html).figures
    assert "Where the time went" in figures and f"Distribution of {result.column}" in figures
    axes = Figure().subplots()
    assert result.plot(axes) is axes and len(axes.patches) > 0
    assert axes.get_xlabel() == result.column


def test_results_of_programs_and_saved_results_have_reports(tmp_path: Path) -> None:
    class Degree(bf.Program):
        def initial_state(self, vertex: bf.Vertex) -> int:
            return vertex.degree

        def signal(self, source: bf.Vertex, target: Any, weight: float) -> None:
            return None

        def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
            return vertex.state

    with bf.Graph.from_arrow(pa.table({"source": [1, 1], "target": [2, 3]})) as graph:
        states = bf.run(graph, Degree())
    assert "Distribution of state" in Page(states.report().html).figures
    states.write(tmp_path / "states.csv")
    saved = bf.SavedResult(tmp_path / "states.csv")
    assert Page(saved.report().html).figures == ["Distribution of state"]


def test_plots_make_axes_of_their_own(rmat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "backend", "agg")
    import matplotlib.pyplot as plt

    with bf.Graph.open(rmat) as graph:
        drawn = [graph.plot_degrees(), bf.degrees(graph).plot()]
    assert [axes.get_figure() for axes in drawn] == [plt.figure(n) for n in plt.get_fignums()]
    assert drawn[0].get_xscale() == drawn[0].get_yscale() == "log"
    points = drawn[0].lines[0]
    assert len(points.get_xdata()) == len(set(bf.degrees(rmat).values())) - 1
    plt.close("all")


def test_counts_agree_with_numpy(rmat: Path) -> None:
    with bf.Graph.open(rmat) as graph:
        degrees, labels = bf.degrees(graph), bf.connected_components(graph)
        assert facts.degree_counts(degrees) == dict(sorted(Counter(degrees.values()).items()))
        sizes = Counter(Counter(labels.values()).values())
        assert facts.component_sizes(labels, 1 << 30) == dict(sorted(sizes.items()))
        found = facts.distribution(bf.pagerank(graph))
        ranks = np.array(list(bf.pagerank(graph).values()))
    assert found is not None and not found.single and sum(found.counts) == len(ranks)
    assert (found.edges[0], found.edges[-1]) == (ranks.min(), ranks.max())


def test_components_that_do_not_fit_are_not_counted() -> None:
    count = 300_000
    alone = pa.table({"vertex": range(count), "component": range(count)})
    assert facts.component_sizes(alone, 1 << 30) == {1: count}  # type: ignore[arg-type]
    assert facts.component_sizes(alone, 1 << 20) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "single", "logarithmic", "without"),
    [
        ([1, 1, 2, None], True, False, 1),
        ([float(n) for n in range(100)], False, False, 0),
        ([float(2**n) for n in range(100)], False, True, 0),
        ([float(2**n) for n in range(100)] + [-1.0], False, False, 0),
        ([float("inf"), float("nan"), 1.0], True, False, 2),
    ],
)
def test_distributions(values: list[Any], single: bool, logarithmic: bool, without: int) -> None:
    table: Any = pa.table({"vertex": range(len(values)), "x": values})
    found = facts.distribution(table)
    assert found is not None
    assert (found.single, found.logarithmic, found.without) == (single, logarithmic, without)
    assert sum(found.counts) == len(values) - without


def test_what_has_no_numbers_has_no_distribution() -> None:
    for values in (["a"], pa.array([None], pa.int64())):
        table: Any = pa.table({"vertex": [1], "x": values})
        assert facts.distribution(table) is None
    with bf.Graph.from_arrow(pa.table({"source": ["a"], "target": ["b"]})) as graph:
        labels = bf.connected_components(graph)
    with pytest.raises(bf.UsageError, match="component has no numbers to draw"):
        labels.plot()


def test_info_counts_what_it_plots(rmat: Path) -> None:
    shown = succeed("info", rmat, "--plots").out
    assert "vertices by out-degree" in shown and "components by vertices" in shown
    census = succeed("info", rmat, "--plots", "--json").figures["census"]
    with bf.Graph.open(rmat) as graph:
        degrees = list(bf.degrees(graph).values())
        components = set(bf.connected_components(graph).values())
    assert sum(census["out_degrees"].values()) == len(degrees)
    assert census["out_degrees"]["4"] == sum(4 <= degree < 8 for degree in degrees)
    assert census["components"] == len(components) == sum(census["component_sizes"].values())
    assert "census" not in succeed("info", rmat, "--json").figures


def test_notebooks_show_small_figures(rmat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with bf.Graph.open(rmat) as graph:
        shown = {"Degree distribution": graph, "Distribution of pagerank": bf.pagerank(graph)}
        for name, one in shown.items():
            assert Page(one._repr_html_()).figures == [name]
            # A notebook has no variables of a page.
            assert "--first: #" in one._repr_html_()
        # Of many edges or rows nothing is drawn unasked, and nothing is without matplotlib.
        monkeypatch.setattr("brimful.graph_queries._DRAWN_ARCS", graph.arcs - 1)
        monkeypatch.setattr("brimful.joins_and_plots._DRAWN_ROWS", len(graph) - 1)
        assert not any("<svg" in one._repr_html_() for one in shown.values())
        monkeypatch.undo()
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        for one in shown.values():
            assert "<svg" not in one._repr_html_() and "<table>" in one._repr_html_()
        with pytest.raises(bf.MissingPackageError, match="matplotlib"):
            bf.degrees(graph).report()


def test_labels_have_no_small_figure() -> None:
    with bf.Graph.from_arrow(pa.table({"source": ["a"], "target": ["b"]})) as graph:
        assert "<svg" not in bf.connected_components(graph)._repr_html_()


def test_samples_of_memory_are_few_and_spread_over_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("brimful.cli.recorder.time.monotonic", lambda: now[0])
    recorder, heard = Recorder(), []
    report = recorder.beside(lambda *given: heard.append(given))
    for second in range(1, 20_001):
        now[0] = float(second)
        report("superstep 1", second, 20_000, 1.0)
    times = [time for time, _ in recorder.samples]
    assert len(heard) == 20_000 and 500 <= len(times) <= 1000
    gaps = np.diff(times)
    assert times[0] == 0 and times[-1] > 19_900 and gaps.min() > 0 and gaps.max() <= 64
    assert all(size > 1 << 20 for _, size in recorder.samples)


def test_a_graph_without_edges_has_a_report(tmp_path: Path) -> None:
    """All degrees are 0, which has no place on a logarithmic axis."""
    (tmp_path / "none.txt").write_text("# nothing\n")
    graph, page = tmp_path / "g.brimful", tmp_path / "page.html"
    imported = succeed("import", tmp_path / "none.txt", graph, "--vertices", 3)
    assert "bytes per edge" not in imported.out
    succeed("info", graph, "--html", page, "--quiet")
    assert Page(page.read_text()).figures[:2] == GRAPH_FIGURES
    assert "3 of degree 0" in page.read_text()
    with bf.Graph.open(graph) as opened:
        assert Page(opened._repr_html_()).figures == ["Degree distribution"]
        ranks = bf.pagerank(opened)
        assert "Distribution of pagerank" in Page(ranks.report(graph=opened).html).figures


def test_reports_of_ids_beyond_signed_integers(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text(f"5 {2**64 - 1}\n{2**64 - 1} {2**63}\n")
    page = tmp_path / "page.html"
    succeed("run", "pagerank", tmp_path / "big.txt", "--report", page, "--quiet")
    drawn = Page(page.read_text()).figures[-2:]
    assert drawn == [f"Neighborhood of {2**63}", f"Neighborhood of {2**64 - 1}"]


def test_one_vertex_stands_for_a_list_of_it() -> None:
    with bf.Graph.from_arrow(pa.table({"source": ["ann"], "target": ["bob"]})) as graph:
        assert Page(graph.report(around="ann").html).figures[2:] == ["Neighborhood of ann"]
        ranks = bf.pagerank(graph)
        assert "Neighborhood of bob" in Page(ranks.report(graph=graph, around="bob").html).figures


@pytest.mark.parametrize(
    "around",
    [np.int64(0), np.array([0]), {0}, "0", pa.scalar(0), pa.array([0])],
    ids=lambda around: type(around).__name__,
)
def test_a_vertex_of_a_report_may_come_from_an_array(around: Any) -> None:
    name = "0" if isinstance(around, str) else 0
    with bf.Graph.from_arrow(pa.table({"source": [name], "target": [name]})) as graph:
        for report in (graph.report(around=around), bf.degrees(graph).report(graph=graph)):
            assert "Neighborhood of 0" in Page(report.html).figures
        with pytest.raises(bf.UsageError, match=r"around must be .*, not a mapping"):
            graph.report(around={0: 1.0})


def test_a_vertex_that_is_a_tuple_is_drawn_once() -> None:
    center, other = (0, "a"), (1, "b")
    ends = {"source": [center, center, other], "target": [center, other, center]}
    edges = {name: [bf.id_name(one) for one in column] for name, column in ends.items()}
    with bf.Graph.from_arrow(pa.table(edges)) as graph:
        for vertex in (center, bf.id_name(center)):
            drawn = neighborhood(graph, vertex)
            assert drawn == (center, [other], [(center, other)], "")
        assert f"Neighborhood of {center}" in Page(graph.report().html).figures


def test_a_report_is_shown_by_its_title() -> None:
    report = bf.Report("degrees of 2 vertices", "<!DOCTYPE html>")
    assert repr(report) == "Report(title='degrees of 2 vertices')"


def test_a_report_is_html(rmat: Path, tmp_path: Path) -> None:
    for name in ("-", str(tmp_path / "page.txt")):
        assert "does not end in .html" in refuse(USAGE, "info", rmat, "--html", name)
        assert "does not end in .html" in refuse(USAGE, "run", "degrees", rmat, "--report", name)
    with bf.Graph.open(rmat) as graph, pytest.raises(bf.UsageError, match=r"end in \.html"):
        bf.degrees(graph).report().write(tmp_path / "page.txt")
