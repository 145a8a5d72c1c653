"""The site: built without a warning, with a page for each algorithm, searched without network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pictures
import pyarrow as pa
import pytest

import brimful as bf
from brimful.catalog import algorithms
from test_report import Page

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    pytest.importorskip(
        "mkdocs", reason="SKIPPED: no MkDocs (pip install -r requirements/docs.txt)"
    )
    folder = tmp_path_factory.mktemp("site")
    build = ["-m", "mkdocs", "build", "--quiet", "--config-file", "site/mkdocs.yml"]
    done = subprocess.run(
        [sys.executable, *build, "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    # A link that leads nowhere is a warning, and a warning ends the build.
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def words_of(page: Path) -> str:
    """Return the text of a page."""
    return " ".join(re.sub(r"<[^>]*>", "", page.read_text()).split())


@pytest.mark.slow
def test_every_algorithm_has_a_page(site: Path) -> None:
    for name, info in algorithms().items():
        text = words_of(site / "algorithms" / f"{name}.html")
        command = rf"brimful run {name} (web|chain)\.brimful (--top 3|-o vectors)"
        assert re.search(command, text), name
        assert "smallest budget" in text and ("Returns" in text or info["column"] in text)
        for one in info["parameters"]:
            assert f"--{one['name'].replace('_', '-')} {one['default']}" in text, name
        # The signature and the errors are those of the function as it runs.
        assert "BudgetError" in text and "budget" in text.partition("In Python")[2]


@pytest.mark.slow
def test_every_public_name_has_a_page(site: Path) -> None:
    listed = words_of(site / "api" / "index.html")
    for name in set(bf.__all__) - set(algorithms()) - {"__version__"}:
        assert f"{name} " in listed
        page = (site / "api" / f"{name}.html").read_text()
        assert "doc-object" in page and "__init_subclass__" not in page, name
    inherited = words_of(site / "api" / "Result.html")
    assert "to_pandas" in inherited and "write_joined" in inherited


@pytest.mark.slow
def test_the_reports_of_a_run_and_a_graph_are_there(site: Path) -> None:
    for name in ("run", "graph"):
        assert f'href="{name}.html"' in (site / "reports" / "index.html").read_text()
        assert len(Page((site / "reports" / f"{name}.html").read_text()).figures) >= 4


@pytest.mark.slow
def test_pages_show_what_reports_look_like(site: Path) -> None:
    for place, name in (("guide/reports.html", "run"), ("reports/index.html", "graph")):
        text = (site / place).read_text()
        assert "<!-- picture" not in text
        if pictures.browser() is None:
            assert len(Page(text).figures) >= 4
            continue
        for scheme in ("light", "dark"):
            picture = site / "reports" / f"{name}-{scheme}.png"
            assert f'{picture.name}"' in text
            # An empty page is a few kilobytes.
            assert picture.read_bytes()[:4] == b"\x89PNG" and picture.stat().st_size > 20_000


def test_figures_of_a_report_stand_in_a_page() -> None:
    with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        report = graph.report(around=[0]).html
    text = pictures.inline(report)
    assert (
        Page(text).figures
        == Page(report).figures
        == [
            "Degree distribution",
            "Component sizes",
            "Neighborhood of 0",
        ]
    )
    assert text.count("<figcaption>") == 3 and "--ink: " in text


@pytest.mark.slow
def test_the_search_needs_no_network(site: Path) -> None:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="SKIPPED: no Playwright (pip install playwright)"
    )
    found = pictures.browser()
    if found is None:
        pytest.skip(f"SKIPPED: no browser; install one of {', '.join(pictures.BROWSERS)}")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text))
        page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith(("file:", "data:", "blob:"))
                else said.append(asked.url)
            ),
        )
        page.goto((site / "index.html").as_uri())
        page.wait_for_load_state()
        page.keyboard.press("/")
        page.keyboard.type("damping")
        page.wait_for_selector(".md-search-result__item")
        assert said == []
        browser.close()
