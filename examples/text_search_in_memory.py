"""Find the lines of a text that contain a word."""

import sys


def main(path: str, word: str) -> None:
    """Read the lines once, search them, print how many there are and the first ones found."""
    lines = []
    with open(path, encoding="utf-8") as file:
        lines.extend(file)
    found = [number for number, line in enumerate(lines) if word in line]
    print(len(lines), len(found), [lines[number].rstrip() for number in found[:3]])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} PATH WORD")
    main(*sys.argv[1:])
