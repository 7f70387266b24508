"""How the site of the manuals is made of docs/: `make docs`."""

from __future__ import annotations

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

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
lexers["mermaid"] = TextLexer()  # drawn where the pages are read as files, shown as text here
