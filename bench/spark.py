"""PageRank by GraphX, the graph library of Spark, in one process: `EDGES SUPERSTEPS MEMORY`.

`EDGES` is a file of lines `source target`. Prints JSON: seconds to load the graph, and of the
supersteps alone.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import time
from typing import Any

#: Threads of the executor, and the parts of the edges.
_THREADS, _PARTS = 2, 8
_RESET = 0.15


def main(edges: str, supersteps: int, memory: str) -> dict[str, Any]:
    """Rank the vertices, and return the figures."""
    if importlib.util.find_spec("pyspark") is None:
        return {"not_measured": "no Spark (pip install pyspark==4.3.0)"}
    if shutil.which("java") is None:
        return {"not_measured": "no Java, which Spark needs"}
    from pyspark.sql import SparkSession

    settings = SparkSession.builder.master(f"local[{_THREADS}]").config(
        "spark.driver.memory", memory
    )
    spark = settings.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # GraphX has no interface in Python: its classes are called through the gateway to Java.
    java = spark.sparkContext._jvm
    context = spark.sparkContext._jsc.sc()
    level = java.org.apache.spark.storage.StorageLevel.MEMORY_AND_DISK()
    number = java.scala.reflect.ClassTag.Int()
    begin = time.perf_counter()
    loader = java.org.apache.spark.graphx.GraphLoader
    graph = loader.edgeListFile(context, edges, False, _PARTS, level, level)
    vertices, arcs = graph.vertices().count(), graph.edges().count()
    loaded = time.perf_counter()
    ranks = java.org.apache.spark.graphx.lib.PageRank.run(graph, supersteps, _RESET, number, number)
    ranked = ranks.vertices().count()
    end = time.perf_counter()
    assert ranked == vertices, (ranked, vertices)
    spark.stop()
    return {
        "vertices": vertices,
        "edges": arcs,
        "load_seconds": loaded - begin,
        "seconds": (end - loaded) / supersteps,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
