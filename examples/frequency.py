"""Count how often each number occurs and print the most frequent ones."""

import sys

import numpy as np

import brimful as bf


def main(path: str, most: int = 10) -> None:
    """Count the 64-bit numbers of a file, as NumPy's `tofile` writes them."""
    counts = bf.FrequencyCounter(path + ".counts", budget="64M")
    with open(path, "rb") as file:
        while len(numbers := np.fromfile(file, "u8", 1 << 20)):
            counts.add_many(numbers)
    top = counts.top(most)
    print(len(counts), top)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH [MOST]")
    main(*sys.argv[1:])
