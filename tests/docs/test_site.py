"""The site of the manuals includes every page. `make docs` builds it, with warnings as errors."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def placed() -> list[str]:
    """Return the pages in the site's tables of contents, in order."""
    found: list[str] = []
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", (DOCS / "index.md").read_text(), flags=re.M | re.S):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                paths = [f"{line}.md"] if "*" not in line else sorted(p for p in glob(f"{line}.md"))
                found += paths
    return found


def glob(pattern: str) -> list[str]:
    return [str(path.relative_to(DOCS)) for path in DOCS.glob(pattern)]


def test_every_page_has_one_place_in_the_site() -> None:
    pages = [name for name in glob("**/*.md") if not name.startswith("_build/") and name != "index.md"]

    assert sorted(placed()) == sorted(pages)
