"""How text stands in a table of a page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MADE = "Made by `make reference` from {source}; a test fails when this page is stale."


def cell(text: str) -> str:
    """Text that may hold bars, line ends and signs of markup, in one cell.

    >>> cell("a | b <c>")
    'a \\\\| b \\\\<c\\\\>'
    """
    line = " ".join(text.split())
    for sign in "|<>*":
        line = line.replace(sign, "\\" + sign)
    return line


def code(text: str) -> str:
    """A word of the machine; nothing where there is none.

    >>> code("p|q"), code("")
    ('`p\\\\|q`', '')
    """
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are ready.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
