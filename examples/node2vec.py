"""Embed vertices by node2vec: walks of brimful are the sentences of gensim's skip-gram."""

import sys
from collections.abc import Iterator

import pyarrow.parquet as pq

import brimful as bf


class Walks:
    """The walks of a Parquet file, read from its start in each pass."""

    def __init__(self, path: str) -> None:
        """Take the file that `random_walks` wrote."""
        self.path = path

    def __iter__(self) -> Iterator[list[str]]:
        """Yield each walk as the ids of its vertices."""
        walk, latest = [], 0
        for batch in pq.ParquetFile(self.path).iter_batches(columns=["walk", "vertex"]):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for number, vertex in rows:
                if number != latest:
                    yield walk
                    walk, latest = [], number
                walk.append(str(vertex))
        yield walk


def main(graph: str, out: str, dimensions: int = 64, seed: int = 0) -> None:
    """Embed the vertices of a graph; write the vectors in the text format of word2vec."""
    from gensim.models import Word2Vec  # pip install gensim

    walks = bf.random_walks(graph, walks=10, length=40, p=1, q=0.5, seed=seed)
    walks.write(out + ".walks.parquet", overwrite=True)
    model = Word2Vec(
        Walks(out + ".walks.parquet"), vector_size=dimensions, sg=1, workers=1, seed=seed
    )
    model.wv.save_word2vec_format(out)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} GRAPH OUT [DIMENSIONS]")
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
