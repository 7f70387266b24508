"""`python -m cli.manual [FOLDER]`: writes the pages of docs/reference that are made from the code."""

from __future__ import annotations

import sys
from pathlib import Path

from cli.manual.pages import PAGES

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")
        print(folder / name)
