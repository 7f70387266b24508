"""Charts and progress bars as values, for drawings and for tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from markupsafe import Markup

from console.drawing import Drawing, Plot
from domain.batches import Batch
from web.moments import number, percent, plural

LEAST_PART = 1e-6  # percent: the parts are not exact
NEARLY = 0.99  # share of valid jobs from which on a decimal tells how many are left
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
    def points(self) -> Markup:
        """Return what scripts show beside the pointer, as JSON for an attribute in single quotes; "" if the bars of the
        drawing have titles.
        """
        found = self.drawing.points() if isinstance(self.drawing, Plot) else {}
        text = msgspec.json.encode(found).decode() if found else ""
        return Markup(text.replace("&", "&amp;").replace("'", "&#39;"))  # noqa: S704  as safe as escape(), but " is kept


def hue(place: int) -> str:
    """Return the colour of the series with this number.

    >>> hue(0), hue(8)
    ('c1', 'c1')
    """
    return f"c{1 + place % HUES}"


@dataclass(frozen=True, slots=True)
class Bar:
    """The parts of a bar, out of 100. `out` are jobs in progress, `rest` names the others; `words` describe the bar."""

    valid: float
    failed: float
    out: float
    percent: str
    words: str
    rest: str

    @property
    def parts(self) -> Sequence[str]:
        """Return the names of the parts that the bar has, from left to right.

        >>> bar_of(10, 4, 1, 2).parts, bar_of(10, 9, 1, 0).parts
        (('valid', 'failed', 'in progress', 'otherwise open'), ('valid', 'failed'))
        """
        sizes = {"valid": self.valid, "failed": self.failed, "in progress": self.out}
        rest = {f"otherwise {self.rest}" if self.out else self.rest: 100.0 - sum(sizes.values())}
        return tuple(name for name, size in {**sizes, **rest}.items() if size > LEAST_PART)


def bar_of(total: int, valid: int, failed: int, in_progress: int, *, rest: str = "open") -> Bar:
    """Return valid, failed and in-progress jobs as parts of the total. `in_progress` counts instances; `rest` is the
    state of the other jobs.

    >>> bar_of(200, 50, 10, 30).words
    '50 of 200 jobs valid, 10 failed, 140 open; 30 instances in progress'
    >>> bar_of(4000, 3995, 5, 0).percent, bar_of(4000, 4000, 0, 0).percent
    ('99.9 %', '100 %')
    """
    whole = max(total, 1)
    left = max(0, total - valid - failed)
    words = f"{number(valid)} of {number(total)} jobs valid, {number(failed)} failed"
    words += f", {number(left)} {rest}" if left else ""
    words += f"; {plural(in_progress, 'instance')} in progress" if in_progress else ""
    if in_progress > left:
        kinds = "copies, quorums, ended jobs" if left < total else "copies, quorums"
        words += f", {number(in_progress - left)} more than open jobs ({kinds})"
    out = 100.0 * min(in_progress, left) / whole
    share = valid / whole
    return Bar(100.0 * share, 100.0 * failed / whole, out, percent(share, int(NEARLY <= share < 1.0)), words, rest)


def bar_of_batch(batch: Batch) -> Bar:
    counts, rest = batch.counts, "open" if batch.ended_at is None else "cancelled"
    return bar_of(counts.jobs_total, counts.jobs_validated, counts.jobs_failed, counts.in_progress, rest=rest)
