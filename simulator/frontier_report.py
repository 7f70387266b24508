"""What combinations of settings came to, as tables and charts of characters: a row for each, the frontier marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.frontier import Swept, Tried, frontier
from simulator.metrics import Figure, Figures
from simulator.report import CLAIRVOYANT, hours, number, percent
from simulator.text_charts import bars

MARK = "*"


@dataclass(frozen=True, slots=True)
class Rows:
    """A table. The first column numbers the combinations, as charts do, and marks the frontier."""

    head: Sequence[str]
    cells: Sequence[Sequence[str]]


def _of_kind(kind: str) -> Callable[[Figures], Figure]:
    return lambda figures: (figures.makespan_s or {}).get(kind)


def _hours(value: float) -> str:
    """Without the unit, which stands once at the top."""
    return hours(value).removesuffix(" h")


def _per_cent(value: float) -> str:
    return percent(value).removesuffix(" %")


Column = tuple[str, Callable[[Figures], Figure], Callable[[float], str]]

COLUMNS: tuple[Column, ...] = (
    ("AFAP, h", lambda f: f.afap_makespan_s, _hours),
    ("short, h", _of_kind("short_deadline"), _hours),
    ("long, h", _of_kind("long_deadline"), _hours),
    ("throughput, h", _of_kind("throughput"), _hours),
    ("instances per job", lambda f: f.instances_per_job, number),
    ("tight, %", lambda f: f.tight_fraction, _per_cent),
    ("in deadline mode, %", lambda f: f.deadline_mode_fraction, _per_cent),
    ("missed, %", lambda f: f.deadline_miss_fraction, _per_cent),
)


def rows_of(swept: Swept, rule: str) -> Rows:
    """A row per combination under `rule`. Columns in which nothing stands are left out."""
    every = swept.figures(rule)
    marked = frontier(every)
    figures = [(name, [_cell(of(one), spoken) for one in every]) for name, of, spoken in COLUMNS]
    figures.insert(1, ("over the bound", [_cell(over_the_bound(one, rule), number) for one in swept.tried]))
    columns = [
        ("", [numbered(place, marked) for place in range(len(every))]),
        *((name, [as_text(one.settings[key]) for one in swept.tried]) for key, name in names(swept).items()),
        *((name, cells) for name, cells in figures if any(cells)),
    ]
    return Rows([name for name, _ in columns], list(zip(*(cells for _, cells in columns), strict=True)))


def numbered(place: int, marked: Set[int]) -> str:
    """
    >>> numbered(2, {2}), numbered(3, {2})
    ('3*', '4 ')
    """
    return f"{place + 1}{MARK if place in marked else ' '}"


def _cell(value: Figure, spoken: Callable[[float], str]) -> str:
    return "" if value is None else spoken(value)


def over_the_bound(one: Tried, rule: str) -> Figure:
    """AFAP makespan over the clairvoyant bound's; None where one is not known."""
    bound = one.comparison.rules.get(CLAIRVOYANT)
    reached_s = one.comparison.rules[rule].afap_makespan_s
    if bound is None or not bound.afap_makespan_s or reached_s is None:
        return None
    return reached_s / bound.afap_makespan_s


def names(swept: Swept) -> dict[str, str]:
    """How the keys are called: without their section, where no two are called the same."""
    keys = list(swept.tried[0].settings)
    last = Counter(key.rpartition(".")[2] for key in keys)
    return {key: short if last[short := key.rpartition(".")[2]] == 1 else key for key in keys}


def as_text(value: object) -> str:
    """A value of a setting as people write it.

    >>> as_text(0.5), as_text(3600.0), as_text(True), as_text("table")
    ('0.5', '3600', 'true', 'table')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def shown(swept: Swept) -> RenderableType:
    """For the console: of each rule that goes by settings a table, and bars of its AFAP makespans."""
    return Group(*(part for rule in swept.rules for part in _shown(swept, rule)))


def _shown(swept: Swept, rule: str) -> Iterable[RenderableType]:
    rows = rows_of(swept, rule)
    seeds = f"{swept.seeds} seed{'s' if swept.seeds != 1 else ''}"
    table = Table(
        title=f"{swept.scenario}, {rule}: {len(swept.tried)} combinations, medians over {seeds}",
        title_justify="left",
        caption=f"{MARK} frontier: no other is as good in AFAP makespan, instances per job and deadline mode, "
        "and better in one",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=0,
    )
    for name, *column in zip(rows.head, *rows.cells, strict=True):  # a narrow terminal folds names, never numbers
        table.add_column(name, justify="right", overflow="fold", min_width=max(map(len, column)))
    for cells in rows.cells:
        table.add_row(*cells)
    yield table
    marked = frontier(swept.figures(rule))
    spans = {f"{numbered(place, marked):>4}": one.afap_makespan_s for place, one in enumerate(swept.figures(rule))}
    yield from (Text(""), *bars(f"AFAP makespan, {rule}", spans), Text(""))


def markdown_of(swept: Swept, rule: str) -> str:
    """The table for a document."""
    rows = rows_of(swept, rule)
    lines = [f"| {' | '.join(rows.head)} |", f"|{'---:|' * len(rows.head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in rows.cells)]) + "\n"
