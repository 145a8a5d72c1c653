"""The tables of options of clusters."""

import re
from typing import Annotated, Any, TypedDict

from brimful.errors import UsageError
from brimful.options import checks
from brimful.options.table import Option
from brimful.wording import did_you_mean, shortened


def cluster_address(address: Any, name: str = "cluster") -> str | None:
    """Return the address of a cluster, or None.

    Raises:
        UsageError: `address` has none of the forms of an address.
    """
    text = checks.text(address, name)
    if text is None or (_CLUSTER.fullmatch(text) and not _misspells_local(text)):
        return text
    hint = did_you_mean(text.partition(":")[0], ["local", "auto"]).replace("local", "local:N")
    raise UsageError(
        f"{name} must be local:N, auto, HOST:PORT or ray://HOST:PORT, not {shortened(text)}{hint}"
    )


def _misspells_local(address: str) -> bool:
    """Return whether `address` is a word like `local` with a number of workers, such as `locl:2`.

    No cluster has so small a port.
    """
    host, _, number = address.partition(":")
    is_like_local = len(host) <= len("locals") and did_you_mean(host, ["local"]) != ""
    return is_like_local and host != "local" and number.isdecimal() and int(number) <= MAX_WORKERS


#: The most workers of a cluster.
MAX_WORKERS = 1000

_CLUSTER = re.compile(r"local:[1-9][0-9]{0,2}|auto|(?!local:)(ray://)?[^/:\s]+:[0-9]+")


class ClusterOptions(TypedDict, total=False):
    """The cluster of a run."""

    cluster: Annotated[
        str | None,
        Option(
            'Divide the run among the workers of a Ray cluster: "local:N" (N processes on this '
            'machine), "auto" (the cluster that runs here), or its address, "HOST:PORT" or '
            '"ray://HOST:PORT". All nodes must see the graph at the same path, or it is at a URL. '
            "`threads` and `budget` apply to each worker (None: the workers of a node share the "
            "cores and the default budget), and `budget` does not cover Ray's own memory. Needs "
            "`pip install 'brimful[ray]'`. None: this process.",
            help="divide the run among the workers of a Ray cluster: local:N (N processes on this "
            "machine), auto (the cluster that runs here), HOST:PORT or ray://HOST:PORT. All nodes "
            "must see GRAPH at the same path, or it is a URL; --threads and --budget apply to each "
            "worker; --budget does not cover Ray's own memory",
            metavar="ADDRESS",
            check=cluster_address,
        ),
    ]
    workers: Annotated[
        int | None,
        Option(
            'Workers of the cluster; None: one for each node, or N of "local:N".',
            help="workers of the cluster (default: one for each node, or N of local:N)",
            least=1,
            most=MAX_WORKERS,
        ),
    ]


class ImportClusterOptions(TypedDict, total=False):
    """The cluster of an import."""

    cluster: Annotated[
        str | None,
        Option(
            "Read the files, text or Parquet, by tasks of a Ray cluster, one for each file: "
            '"local:N", "auto" or the address of the cluster, as in a run. All nodes must see the '
            "files at the same paths. `budget` applies to this process and to each task. Needs "
            "`pip install 'brimful[ray]'`. None: this process reads them.",
            help="read the files, text or Parquet, by tasks of a Ray cluster, one for each file: "
            "local:N (N at a time on this machine), auto (the cluster that runs here), HOST:PORT "
            "or ray://HOST:PORT. All nodes must see the files at the same paths; --budget applies "
            "to this process and to each task, and does not cover Ray's own memory",
            metavar="ADDRESS",
            check=cluster_address,
        ),
    ]
    workers: Annotated[
        int | None,
        Option(
            'Files that are read at a time; None: one for each CPU, or N of "local:N".',
            help="files that are read at a time (default: one for each CPU, or N of local:N)",
            least=1,
            most=MAX_WORKERS,
        ),
    ]
