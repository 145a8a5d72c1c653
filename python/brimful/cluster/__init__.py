"""Runs on a Ray cluster: the same program, the same graph directory, the same bits.

Ray places the workers, moves bytes between them and notices their loss. Each worker is the native
engine over a part of the intervals of the graph (`run/distributed.rs` of brimful-engine). The
driver, which calls the algorithm, decides nothing: it follows the partial results, makes the
checkpoints and receives the states.
"""

from __future__ import annotations

from typing import Any

from brimful.errors import MissingPackageError


def imported_ray() -> Any:
    """Return the package Ray.

    Raises:
        MissingPackageError: Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError(
            "a run on a cluster needs Ray; install it with: pip install 'brimful[ray]'"
        ) from error
    return ray
