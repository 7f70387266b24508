"""Orders the labels of vertical lines so that each stands beside its own line and crosses no other. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A line at `x` with a label of some width beside it, both as fractions of the plot's width."""

    x: float
    width: float

    def span(self, *, left: bool) -> tuple[float, float]:
        return (self.x - self.width, self.x) if left else (self.x, self.x + self.width)

    @property
    def sides(self) -> Sequence[bool]:
        """Return on which sides the label is inside the plot, or the side with more room. True: left of the line."""
        fits = {False: self.x + self.width <= 1.0, True: self.x >= self.width}
        return [left for left in fits if fits[left]] or [self.x > 0.5]


Rows = tuple[tuple[int, bool], ...]  # from the top: the number of a line, whether its label is left of it


def rows_of(lines: Sequence[LabelledLine]) -> Rows:
    """Return the rows of the labels. A line goes from its label down, so a label crosses the lines of rows above it.

    Lines are tried from left to right. If no order avoids all crossings, this is the order.

    >>> rows_of([LabelledLine(0.2, 0.3), LabelledLine(0.5, 0.3)])
    ((0, False), (1, False))
    >>> rows_of([LabelledLine(0.5, 0.3), LabelledLine(0.8, 0.3)])
    ((1, True), (0, True))
    """
    found = _completed((), lines, set())
    return tuple((number, line.sides[0]) for number, line in enumerate(lines)) if found is None else found


def _completed(rows: Rows, lines: Sequence[LabelledLine], dead: set[frozenset[int]]) -> Rows | None:
    """Return these rows and those of all other lines. `dead`: lines after which there are no such rows."""
    drawn = frozenset(number for number, _ in rows)
    if len(drawn) == len(lines):
        return rows
    if drawn in dead:
        return None
    for number, line in enumerate(lines):
        for left in line.sides if number not in drawn else ():
            low, high = line.span(left=left)
            if not any(low <= lines[other].x <= high for other in drawn):
                found = _completed((*rows, (number, left)), lines, dead)
                if found is not None:
                    return found
    dead.add(drawn)
    return None
