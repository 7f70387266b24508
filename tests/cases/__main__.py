"""`python -m tests.cases PATH…`: prints a line per case; the exit status is nonzero unless all pass."""

from __future__ import annotations

import sys

from tests.cases.runner import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
