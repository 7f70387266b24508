"""`python -m tests.cases PATH…`: a line per case, and an error code unless all pass."""

from __future__ import annotations

import sys

from tests.cases.runner import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
