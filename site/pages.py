"""Pages of the site that are generated: algorithms from the registry, the API, documents elsewhere.

MkDocs calls the functions `on_...` (its hooks).
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pictures import inline, screenshots

import brimful as bf
from brimful.catalog import algorithms
from brimful.sizes import format_bytes

ROOT = Path(__file__).resolve().parent.parent
#: Documents outside of docs, by their place on the site.
ELSEWHERE = {
    "index.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "bench/RESULTS.md": "bench/RESULTS.md",
}
#: The graph of the examples, and that of algorithms for graphs without cycles.
EXAMPLE = ["generate", "rmat", "web.brimful", "--scale", "10", "--edge-factor", "8"]
EXAMPLE += ["--weights", "hash", "--quiet"]
ACYCLIC = ["generate", "chain", "chain.brimful", "--vertices", "1000", "--quiet"]
#: Options that a run needs.
SOURCE = ["--source", "0"]
OPTIONS = {
    "bfs": SOURCE,
    "count_paths": SOURCE,
    "distances": SOURCE,
    "eccentricity": SOURCE,
    "katz": ["--alpha", "0.001"],
    "sssp": SOURCE,
}
#: The graph of the forecasts, on a machine of round figures.
VERTICES, EDGES = 1e8, 1e9
MACHINE = {"memory_bandwidth": 20.0, "disk_bandwidth": 2.0}
#: A picture of a report in a page, and the pictures by the name of the report.
PICTURE = re.compile(r"<!-- picture of (\w+)\.html -->")
PICTURES: dict[str, str | list[str]] = {}
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    pages = {place: (ROOT / path).read_text() for place, path in ELSEWHERE.items()}
    with tempfile.TemporaryDirectory() as folder:
        run(EXAMPLE, folder)
        run(ACYCLIC, folder)
        pages |= algorithm_pages(folder)
        made = reports(folder)
    pages |= api_pages() | {"adr/index.md": decisions()}
    for place, text in (pages | made).items():
        files.append(File.generated(config, place, content=text))
    shim = ROOT / "site" / "vendor" / "iframe-worker.js"
    files.append(File.generated(config, "assets/iframe-worker.js", abs_src_path=str(shim)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links between documents lead to their places on the site."""
    here = page.file.src_uri
    source = ELSEWHERE.get(here, f"docs/{here}")
    places = {path: place for place, path in ELSEWHERE.items()}

    def led(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        place = places.get(target, target.removeprefix("docs/"))
        place = "adr/index.md" if place == "adr" else place
        if files.get_file_from_path(place) is None:
            return link[0]
        return link[1] + posixpath.relpath(place, posixpath.dirname(here) or ".") + link[3]

    return PICTURE.sub(lambda found: picture(found[1], here), LINK.sub(led, markdown))


def picture(report: str, here: str) -> str:
    """Return the picture of a report for the page `here`."""
    shown = PICTURES[report]
    if isinstance(shown, str):
        return shown
    folder = posixpath.relpath("reports", posixpath.dirname(here) or ".")
    return "\n".join(f"![The report {report}.html]({folder}/{name})" for name in shown)


def algorithm_pages(folder: str) -> dict[str, str]:
    """Return a page for each algorithm, with a run in `folder`, and one that lists them."""
    known = algorithms()
    rows = "".join(f"| [{name}]({name}.md) | {known[name]['computes']} |\n" for name in known)
    pages = {"algorithms/index.md": f"# Algorithms\n\n| name | computes |\n|---|---|\n{rows}"}
    for name, info in known.items():
        pages[f"algorithms/{name}.md"] = algorithm_page(name, info, folder)
    return pages


def reports(folder: str) -> dict[str, str | bytes]:
    """Return the report of a run and that of a graph, their pictures, and a page with them."""
    ranks = ["run", "pagerank", "web.brimful", "--budget", "200M", "--report", "run.html"]
    run([*ranks, "--quiet"], folder)
    run(["info", "web.brimful", "--html", "graph.html", "--quiet"], folder)
    made: dict[str, str | bytes] = {
        "reports/index.md": "# Reports\n\nMade with this site: [a run of PageRank](run.html) and "
        "[its graph](graph.html). [How to make them](../guide/reports.md).\n\n"
        "<!-- picture of graph.html -->\n"
    }
    for name in ("run", "graph"):
        path = Path(folder) / f"{name}.html"
        taken = screenshots(path)
        PICTURES[name] = list(taken) or inline(path.read_text())
        made[f"reports/{path.name}"] = path.read_text()
        made |= {f"reports/{picture}": image for picture, image in taken.items()}
    return made


def algorithm_page(name: str, info: dict[str, Any], folder: str) -> str:
    """Return the page of an algorithm: definition, parameters, memory, an example, the function."""
    make = ACYCLIC if name == "topological_order" else EXAMPLE
    # Lists have no order, so that none is at the top.
    shows = ["-o", "vectors.parquet"] if name == "fastrp" else ["--top", "3"]
    words = ["run", name, make[2], *shows, *OPTIONS.get(name, [])]
    shown = run([*words, "--quiet"], folder)
    parameters = [
        f"| `--{one['name'].replace('_', '-')}` | {one['default']} | {one['meaning']} |\n"
        for one in info["parameters"]
    ]
    taken = [f"`--{option}`" for option in info["takes"]]
    return "\n".join(
        [
            f"# {name}\n",
            definition(name),
            f"## Run it\n\n```sh\nbrimful {shlex.join(make)}\nbrimful {shlex.join(words)}",
            "```\n",
            f"```text\n{shown}```\n" if shown else "",
            *(
                ["| parameter | default | meaning |\n|---|---|---|\n" + "".join(parameters)]
                if parameters
                else []
            ),
            f"It also takes {', '.join(taken)}.\n" if taken else "",
            f"## Memory\n\n{memory(name)}",
            f"## In Python\n\n::: {getattr(bf, name).__module__}.{name}\n"
            "    options: {heading_level: 3}\n",
        ]
    )


def definition(name: str) -> str:
    """Return the header of an algorithm's source: definition, method, complexity, reference."""
    sources = [
        path.read_text() for path in sorted((ROOT / "crates/brimful-algos/src").rglob("*.rs"))
    ]
    (source,) = [text for text in sources if f'name: "{name}",\n    computes:' in text]
    header = "".join(line for line in source.splitlines(True) if line.startswith("//!"))
    text = re.sub(r"^//! ?", "", header, flags=re.M)
    # Markdown of Python wants a blank line before a list.
    return re.sub(r"^((?!- |  ).+\n)(?=- )", r"\1\n", text, flags=re.M)


def memory(name: str) -> str:
    """Return the forecast for a graph that most machines do not hold, in two budgets."""
    rows = []
    for budget in ("1G", "16G"):
        plan = bf.plan(None, name, vertices=VERTICES, edges=EDGES, budget=budget, **MACHINE)
        rows.append(
            f"| {budget} | {'yes' if plan.fits else 'no'} | "
            f"{format_bytes(plan.minimum_budget_bytes)} | {format_bytes(plan.peak_memory_bytes)} | "
            f"{format_bytes(plan.read_bytes_per_superstep or 0)} | "
            f"{format_bytes(plan.disk_bytes)} |\n"
        )
    return (
        f"The forecast of `brimful plan {name} --vertices {VERTICES:.0e} --edges {EDGES:.0e}`:\n\n"
        "| budget | fits | smallest budget | peak memory | read in a superstep over all edges | "
        "disk next to the graph |\n|---|---|---|---|---|---|\n" + "".join(rows) + "\nWhere the "
        "budget is too small, the other figures are those of the smallest that works.\n"
    )


def api_pages() -> dict[str, str]:
    """Return a page for each public name that is no algorithm, and one that lists them."""
    names = [name for name in bf.__all__ if name not in algorithms() and name != "__version__"]
    rows = ""
    pages = {}
    for name in sorted(names, key=str.lower):
        item = getattr(bf, name)
        first = (item.__doc__ or "").strip().split("\n")[0]
        rows += f"| [{name}]({name}.md) | {first} |\n"
        pages[f"api/{name}.md"] = f"# {name}\n\n::: {item.__module__}.{name}\n"
    return pages | {
        "api/index.md": "# Python\n\nThe algorithms have [pages of their own]"
        f"(../algorithms/index.md).\n\n| name | |\n|---|---|\n{rows}"
    }


def decisions() -> str:
    """Return the list of the decision records."""
    rows = ""
    for path in sorted((ROOT / "docs" / "adr").glob("0*.md")):
        title = path.read_text().split("\n")[0].removeprefix("# ")
        rows += f"- [{title}]({path.name})\n"
    return f"# Decisions\n\n{rows}"


def run(words: list[str], folder: str) -> str:
    """Run brimful in a folder; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "brimful", *words],
        cwd=folder,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
