"""Charts and progress bars as values, for drawings and for tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from markupsafe import Markup

from console.drawing import Drawing, Plot
from web.moments import number, percent

HUES = 8  # colours of series: the CSS classes c1 to c8


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `summary` describes it in one sentence; `rows` has its numbers, formatted, under `columns`."""

    key: str  # unique on a page
    title: str
    summary: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    drawing: Drawing

    @property
    def svg(self) -> Markup:
        return Markup(self.drawing.markup())  # noqa: S704  drawings escape all text

    @property
    def points(self) -> str:
        """Return what scripts show beside the pointer, as JSON; "" if the bars of the drawing have titles."""
        found = self.drawing.points() if isinstance(self.drawing, Plot) else {}
        return msgspec.json.encode(found).decode() if found else ""


def hue(place: int) -> str:
    """Return the colour of the series with this number.

    >>> hue(0), hue(8)
    ('c1', 'c1')
    """
    return f"c{1 + place % HUES}"


@dataclass(frozen=True, slots=True)
class Bar:
    """The parts of a bar, out of 100. `out` are jobs in progress; `words` describe the bar."""

    valid: float
    failed: float
    out: float
    percent: str
    words: str


def bar_of(total: int, valid: int, failed: int, in_progress: int) -> Bar:
    """Return valid, failed and in-progress jobs as parts of the total.

    >>> bar_of(200, 50, 10, 30)
    Bar(valid=25.0, failed=5.0, out=15.0, percent='25 %', words='50 of 200 jobs valid, 10 failed, 30 with hosts')
    """
    whole = max(total, 1)
    left = max(0, total - valid - failed)
    words = f"{number(valid)} of {number(total)} jobs valid, {number(failed)} failed"
    words += f", {number(in_progress)} with hosts" if in_progress else ""
    done = valid / whole
    shown = percent(min(done, 0.99)) if valid < total else percent(done)
    return Bar(100.0 * valid / whole, 100.0 * failed / whole, 100.0 * min(in_progress, left) / whole, shown, words)
