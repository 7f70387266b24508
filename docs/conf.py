"""How the site of the manuals is made of docs/: `make docs`."""

from __future__ import annotations

project = "Muster"
author = "the maintainers of Muster"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Muster"
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4  # links name headings as they do where the pages are read as files
nitpicky = True
# Drawings are SVG files that tests compare with the code they are made from: shown alike here and where the pages are
# read as files, with no program to load, which a drawing in Mermaid's language needs (its block here is an error).
