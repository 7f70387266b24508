"""Jobs done over time, and the forecast as a fan, as lines of text. Pure.

    100% |             ░▒▒▒░░░░░░░
         |          ░▒▒▒▒░░░░
         |      ▁▂▃▒▒▒░░░
      0% |  ▂▄▆████
         +------------------------
                   n    1  5     9

The fan opens from the last forecast to q10, q50 and q90 along straight lines, which are for the eye alone: what is
forecast is the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.units import Instant

BLOCKS = " ▁▂▃▄▅▆▇█"  # eighths of a cell
FAN, MEDIAN = "░", "▒"
LABEL = 6  # columns left of the axis


@dataclass(frozen=True, slots=True)
class Point:
    """So many of the jobs were over then."""

    at: Instant
    over_fraction: float


@dataclass(frozen=True, slots=True)
class Fan:
    """A forecast, from where the batch stood when it was made."""

    origin: Point
    q10_at: Instant
    q50_at: Instant
    q90_at: Instant


@dataclass(frozen=True, slots=True)
class Mark:
    """A letter below the axis; of two at one place the later in the list is drawn."""

    letter: str
    at: Instant


def chart(
    points: Sequence[Point], fan: Fan | None, marks: Sequence[Mark], *, width: int = 66, height: int = 8
) -> list[str]:
    """The lines of the chart, `height` of them for the jobs; `points` in order of time, at least one.

    Half of the jobs in half an hour, and an end half an hour later:

    >>> for line in chart([Point(Instant(0.0), 0.0), Point(Instant(1800.0), 0.5)], None,
    ...                   [Mark("E", Instant(3600.0))], width=9, height=2):
    ...     print(line.rstrip())
     100% |
       0% | ▂▄▆█
          +---------
                   E
    """
    begin_at = min(points[0].at, *(mark.at for mark in marks), points[0].at)
    end_at = max(points[-1].at, *(mark.at for mark in marks), fan.q90_at if fan else points[-1].at)
    step_s = max(end_at - begin_at, 1.0) / (width - 1)
    columns = [_column(Instant(begin_at + step_s * column), points, fan, height) for column in range(width)]
    lines = []
    for row in range(height):
        label = "100%" if row == 0 else ("0%" if row == height - 1 else "")
        lines.append(f"{label:>{LABEL - 1}} |" + "".join(column[row] for column in columns))
    letters = [" "] * width
    for mark in marks:
        letters[round((mark.at - begin_at) / step_s)] = mark.letter
    return [*lines, " " * LABEL + "+" + "-" * width, " " * (LABEL + 1) + "".join(letters)]


def _column(at: Instant, points: Sequence[Point], fan: Fan | None, height: int) -> list[str]:
    """The cells of an instant, from the top."""
    if at <= points[-1].at:
        return _bar(over_at(at, points), height)
    if fan is None or at < fan.origin.at:
        return [" "] * height
    return _slice(at, fan, height)


def over_at(at: Instant, points: Sequence[Point]) -> float:
    """Along straight lines between the points; nothing before the first, and after the last what it was then.

    >>> over_at(Instant(5.0), [Point(Instant(0.0), 0.0), Point(Instant(10.0), 0.5)])
    0.25
    """
    before = points[0]
    if at < before.at:
        return 0.0
    for point in points:
        if point.at > at:
            part = (at - before.at) / (point.at - before.at)
            return before.over_fraction + part * (point.over_fraction - before.over_fraction)
        before = point
    return before.over_fraction


def _bar(over_fraction: float, height: int) -> list[str]:
    eighths = round(over_fraction * height * 8)
    return [BLOCKS[min(max(eighths - 8 * (height - 1 - row), 0), 8)] for row in range(height)]


def _slice(at: Instant, fan: Fan, height: int) -> list[str]:
    """Which cells the fan covers: above the line to q90, below the line to q10, and the one with the line to q50."""
    low, median, high = (_on_line(at, fan, end_at) for end_at in (fan.q90_at, fan.q50_at, fan.q10_at))
    cells = []
    for row in range(height):
        bottom, top = (height - 1 - row) / height, (height - row) / height
        if bottom <= median < top or (row == 0 and median == 1.0 and low < 1.0 and at <= fan.q50_at):
            cells.append(MEDIAN)
        else:
            cells.append(FAN if low < top and high > bottom and low < 1.0 else " ")
    return cells


def _on_line(at: Instant, fan: Fan, end_at: Instant) -> float:
    """The jobs that are over then if they went on evenly from the forecast to `end_at`."""
    left_s = end_at - fan.origin.at
    part = 1.0 if left_s <= 0.0 else min(1.0, (at - fan.origin.at) / left_s)
    return fan.origin.over_fraction + part * (1.0 - fan.origin.over_fraction)
