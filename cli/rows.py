"""Rows of cells as text that keeps its columns, at any width of the terminal."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The rows as lines: columns of figures to the right, of words to the left. Shorter rows are filled up.

    >>> print(aligned([["user", "usage"], ["ann", "7"], ["bob", "12.5"]]))
    user  usage
    ann       7
    bob    12.5
    """
    width = max((len(row) for row in rows), default=0)
    filled = [[*row, *[""] * (width - len(row))] for row in rows]
    columns = [list(column) for column in zip(*filled, strict=True)]
    right = [all(_is_figure(cell) for cell in column[1:]) for column in columns]
    widths = [max(map(len, column)) for column in columns]
    cells = (
        [
            cell.rjust(size) if to_right else cell.ljust(size)
            for cell, size, to_right in zip(row, widths, right, strict=True)
        ]
        for row in filled
    )
    return "\n".join("  ".join(row).rstrip() for row in cells)


def _is_figure(cell: str) -> bool:
    return not cell or cell[-1].isdigit() or cell in ("-", "inf") or cell.endswith("%")
