"""Say how many numbers of one file occur in another."""

import sys

import numpy as np


def main(known: str, asked: str) -> None:
    """Read two files of 64-bit numbers, as NumPy's `tofile` writes them."""
    members: set[int] = set()
    with open(known, "rb") as file:
        while len(numbers := np.fromfile(file, "u8", 1 << 20)):
            members.update(numbers.tolist())
    found = 0
    with open(asked, "rb") as file:
        while len(numbers := np.fromfile(file, "u8", 1 << 20)):
            found += sum(number in members for number in numbers.tolist())
    print(len(members), found)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} KNOWN ASKED")
    main(*sys.argv[1:])
