"""Count how often each number occurs and print the most frequent ones."""

import sys

import numpy as np


def main(path: str, most: int = 10) -> None:
    """Count the 64-bit numbers of a file, as NumPy's `tofile` writes them."""
    counts: dict[int, int] = {}
    with open(path, "rb") as file:
        while len(numbers := np.fromfile(file, "u8", 1 << 20)):
            for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
                counts[int(number)] = counts.get(int(number), 0) + int(count)
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    print(len(counts), top)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH [MOST]")
    main(*sys.argv[1:])
