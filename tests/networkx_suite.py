"""NetworkX's own tests, with every function of the backend run by brimful: `make test-networkx`.

NetworkX converts the graphs that a test gives to a function of the backend; without a fallback.
Functions that the backend does not claim run as they are: they make inputs, or have tests of their
own. A test that the backend refuses fails here, unless `networkx_excluded.txt` says why; so does a
run in which fewer tests reach the backend than did before, and a line about a test that is not
there.

Run as a script it starts pytest, of which it is a plugin then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from networkx.utils.backends import _registered_algorithms

HERE = Path(__file__).resolve().parent
ROOT = Path(nx.__file__).resolve().parent
#: Files whose tests call functions of the backend, directly or through other functions.
TESTS = (
    "algorithms/centrality/tests/test_closeness_centrality.py",
    "algorithms/centrality/tests/test_degree_centrality.py",
    "algorithms/centrality/tests/test_harmonic_centrality.py",
    "algorithms/community/tests/test_asyn_fluid.py",
    "algorithms/community/tests/test_centrality.py",
    "algorithms/community/tests/test_kclique.py",
    "algorithms/components/tests/test_attracting.py",
    "algorithms/components/tests/test_biconnected.py::test_articulation_points_repetitions",
    "algorithms/components/tests/test_biconnected.py::test_articulation_points_cycle",
    "algorithms/components/tests/test_connected.py",
    "algorithms/components/tests/test_semiconnected.py",
    "algorithms/components/tests/test_strongly_connected.py",
    "algorithms/components/tests/test_weakly_connected.py",
    "algorithms/link_analysis/tests",
    "algorithms/shortest_paths/tests/test_astar.py",
    "algorithms/shortest_paths/tests/test_generic.py",
    "algorithms/shortest_paths/tests/test_unweighted.py",
    "algorithms/shortest_paths/tests/test_weighted.py",
    "algorithms/tests/test_bridges.py",
    "algorithms/tests/test_cluster.py",
    "algorithms/tests/test_core.py",
    "algorithms/tests/test_dag.py::TestDAG::test_descendants",
    "algorithms/tests/test_dag.py::test_ancestors_descendants_undirected",
    *(
        f"algorithms/tests/test_distance_measures.py::Test{name}"
        for name in (
            "Distance::test_bound_diameter",
            "Distance::test_diameter",
            "Distance::test_eccentricity",
            "Distance::test_eccentricity_infinite",
            "Distance::test_eccentricity_undirected_not_connected",
            "Distance::test_eccentricity_directed_weakly_connected",
            "Distance::test_periphery",
            "Distance::test_radius",
            "WeightedDistance::test_diameter_weight_attr",
            "WeightedDistance::test_eccentricity_weight_None",
            "WeightedDistance::test_eccentricity_weight_attr",
        )
    ),
    "algorithms/tests/test_isolate.py",
    "algorithms/tests/test_link_prediction.py",
    "algorithms/tests/test_walks.py",
    "algorithms/traversal/tests/test_bfs.py",
    "classes/tests/test_function.py",
    "generators/tests/test_ego.py",
)
#: The number of these tests that reach the backend.
REACH_IT = 296
#: Functions whose tests in NetworkX are all refused by the backend.
UNREACHED = {"single_target_shortest_path_length"}
REACHED = "reached brimful"


def excluded() -> dict[str, str]:
    """Return the reasons why tests do not apply, by their id."""
    lines = (HERE / "networkx_excluded.txt").read_text().splitlines()
    pairs = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {test: reason for test, reason in pairs}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that do not apply, and leave to NetworkX the functions that brimful lacks."""
    from brimful.networkx.info import FUNCTIONS

    reasons = excluded()
    for item in items:
        if item.nodeid in reasons:
            item.add_marker(pytest.mark.skip(reason=f"brimful refuses {reasons[item.nodeid]}"))
    for name in _registered_algorithms.keys() - FUNCTIONS.keys():
        setattr(nx.config.backend_priority, name, [])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note whether a test reaches the backend."""
    from brimful.networkx.interface import BACKEND

    can_run = BACKEND.can_run

    def noting(name: str, args: Any, kwargs: Any) -> bool | str:
        answer = can_run(name, args, kwargs)
        if answer is True and (REACHED, name) not in item.user_properties:
            item.user_properties.append((REACHED, name))
        return answer

    vars(BACKEND)["can_run"] = noting
    try:
        return (yield)
    finally:
        del vars(BACKEND)["can_run"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    """Make a failure of a refused call, which NetworkX reports as expected."""
    report = yield
    reason = getattr(report, "wasxfail", None)
    if reason is not None and item.get_closest_marker("xfail") is None:
        del report.wasxfail
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: {reason}"
    return report


class Summary:
    """Counts the tests that reach the backend, in the process that collects reports."""

    def __init__(self) -> None:
        self.reached: dict[str, set[str]] = {}
        self.seen: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the report of a test."""
        self.seen.add(report.nodeid)
        if report.when == "call" and report.passed:
            names = {str(name) for key, name in report.user_properties if key == REACHED}
            self.reached[report.nodeid] = names

    def problems(self) -> list[str]:
        """Return the faults that remain although all tests passed."""
        from brimful.networkx.info import FUNCTIONS

        found = []
        count = sum(map(bool, self.reached.values()))
        print(f"{count} of NetworkX's tests reach brimful")
        if count != REACH_IT:
            found.append(f"{count} tests reach the backend, expected {REACH_IT}; see REACH_IT")
        if missing := excluded().keys() - self.seen:
            found.append(f"networkx_excluded.txt names tests that are not there: {missing}")
        idle = FUNCTIONS.keys() - set().union(*self.reached.values())
        if idle != UNREACHED:
            found.append(f"tests that pass do not reach {sorted(idle)}, expected {UNREACHED}")
        return found


def main() -> int:
    """Run the tests; return the exit code."""
    os.environ["NETWORKX_TEST_BACKEND"] = "brimful"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    os.environ.pop("NETWORKX_FALLBACK_TO_NX", None)
    sys.path.insert(0, str(HERE))
    summary = Summary()
    code = pytest.main(
        [
            # Neither the options of this repository nor a folder of NetworkX's to write to.
            *("-c", os.devnull, f"--rootdir={ROOT}", "-p", "no:cacheprovider"),
            *("-p", "networkx_suite", "--quiet", "--tb=short", "--numprocesses=2", *sys.argv[1:]),
            *(str(ROOT / test) for test in TESTS),
        ],
        plugins=[summary],
    )
    # With options of the command line, such as -k, it may not be all tests.
    whole = code == pytest.ExitCode.OK and len(sys.argv) == 1
    problems = summary.problems() if whole else []
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(code) or bool(problems)


if __name__ == "__main__":
    sys.exit(main())
