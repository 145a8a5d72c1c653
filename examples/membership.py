"""Say how many numbers of one file occur in another."""

import sys

import numpy as np

import brimful as bf


def main(known: str, asked: str) -> None:
    """Read two files of 64-bit numbers, as NumPy's `tofile` writes them."""
    members = bf.MembershipSet(known + ".members", budget="64M")
    with open(known, "rb") as file:
        while len(numbers := np.fromfile(file, "u8", 1 << 20)):
            members.add_many(numbers)
    found = 0
    with open(asked, "rb") as file:
        while len(numbers := np.fromfile(file, "u8", 1 << 20)):
            found += int(members.contains_many(numbers).sum())
    print(len(members), found)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} KNOWN ASKED")
    main(*sys.argv[1:])
