"""The exchange between two workers on one node alone: `python -m bench.actors BYTES TURNS`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from brimful.cluster.driver import connected
from brimful.cluster.worker import Connection, Worker


class Actor(Worker):
    """A worker that only passes on and takes in."""

    def exchange(self, index: int, peers: Sequence[Any], byte_count: int, turns: int) -> float:
        """Exchange so many bytes in each of some turns; return the seconds without the first."""
        connection = Connection(index, peers, self._board)
        connection.share_memory(byte_count)
        own, taken = os.urandom(byte_count), bytearray(byte_count)
        begin = 0.0
        for turn in range(turns + 1):
            if turn == 1:
                begin = time.perf_counter()
            answers = connection.all_gather(memoryview(b""), memoryview(own)).wait(60.0)
            assert answers is not None
            taken[:] = answers[1 - index][1]
        return time.perf_counter() - begin


def main(byte_count: int, turns: int) -> dict[str, float]:
    """Return the seconds of the slower actor, and the bytes that each took in."""
    import ray

    with connected("local:2"):
        actors: list[Any] = [
            ray.remote(Actor).options(num_cpus=1, max_concurrency=8).remote() for _ in range(2)
        ]
        runs = [
            actor.exchange.remote(index, actors, byte_count, turns)
            for index, actor in enumerate(actors)
        ]
        for turn in range(turns + 1):
            # As the driver, which follows the run.
            ray.get([actor.contribution.remote(turn, (0,)) for actor in actors])
        return {"seconds": max(ray.get(runs)), "bytes": byte_count * turns}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
