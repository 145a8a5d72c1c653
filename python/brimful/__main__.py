"""`python -m brimful`: the command line."""

import sys

from brimful.cli import main

if __name__ == "__main__":
    sys.exit(main())
