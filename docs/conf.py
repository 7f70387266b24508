"""Configuration of Sphinx, which builds the site of the manuals from docs/: `make docs`."""

from __future__ import annotations

import tomllib
from pathlib import Path

project = "Muster"
author = "the maintainers of Muster"
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
release = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Muster {release}"
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4  # the same anchors as where the pages are read as files
nitpicky = True
# Drawings are SVG files that tests compare with the code. They look the same on the site and in the files, and need no
# script. A Mermaid block would need one, and is an error here.
