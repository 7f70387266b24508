"""Reports the figures of each combination of settings, and the Pareto frontier, as tables and text charts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from domain.batches import QoS
from domain.deadline_rules import CLAIRVOYANT
from simulator.metrics import Figure, Figures
from simulator.report import NOT_OVER, RuleComparison, hours, number, percent, quotient
from simulator.report import shown as cell
from simulator.text_charts import bars

Combination = Mapping[str, object]  # values of settings by key


@dataclass(frozen=True, slots=True)
class Tried:
    """A combination of settings and the figures of each rule with it."""

    settings: Combination
    comparison: RuleComparison


@dataclass(frozen=True, slots=True)
class Swept:
    """The results of all combinations, in the order of their values."""

    scenario: str
    seeds: int
    tried: Sequence[Tried]

    @property
    def rules(self) -> list[str]:
        """Return the rules that depend on settings, in the order given."""
        return [rule for rule in self.tried[0].comparison.rules if rule != CLAIRVOYANT]

    def figures(self, rule: str) -> list[Figures]:
        """Return the rule's figures for each combination."""
        return [one.comparison.rules[rule] for one in self.tried]

    def as_json(self) -> dict[str, object]:
        """Return the JSON object that a command prints last. `frontier` is the first rule's."""
        marked = frontier(self.figures(self.rules[0]))
        return {
            "scenario": self.scenario,
            "seeds": self.seeds,
            "sweep": [
                {
                    "settings": dict(one.settings),
                    "rules": one.comparison.as_json()["rules"],
                    "frontier": place in marked,
                }
                for place, one in enumerate(self.tried)
            ],
        }


def frontier(every: Sequence[Figures]) -> set[int]:
    """Return the positions of the combinations on the Pareto frontier of AFAP makespan, instances per job and deadline
    mode. Combinations that lack one of the three figures are omitted. An unfinished batch is slower than any finished
    batch.

    >>> quick, cheap, both, beaten = (1.0, 9.0), (9.0, 1.0), (2.0, 2.0), (2.0, 9.5)
    >>> sorted(frontier([
    ...     Figures(afap_makespan_s=makespan_s, instances_per_job=price, deadline_mode_fraction=0.1)
    ...     for makespan_s, price in (quick, cheap, both, beaten)
    ... ]))
    [0, 1, 2]
    """
    costs = [_costs(one) for one in every]
    known = [one for one in costs if one is not None]
    return {
        place for place, one in enumerate(costs) if one is not None and not any(_beats(other, one) for other in known)
    }


def _costs(figures: Figures) -> tuple[float, ...] | None:
    span_s = math.inf if QoS.AFAP in figures.cut_short else figures.afap_makespan_s
    found = (span_s, figures.instances_per_job, figures.deadline_mode_fraction)
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(found) else None


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(mine <= its for mine, its in zip(one, other, strict=True))


MARK = "*"


@dataclass(frozen=True, slots=True)
class Rows:
    """A table. The first column numbers the combinations as the charts do and marks the frontier."""

    head: Sequence[str]
    cells: Sequence[Sequence[str]]


def _hours(value: float) -> str:
    """Return the hours without their unit, which is in the heading."""
    return hours(value).removesuffix(" h")


def _per_cent(value: float) -> str:
    return percent(value).removesuffix(" %")


Column = tuple[str, Callable[[Figures], Figure], Callable[[float], str]]

SPANS = (
    ("AFAP, h", "afap"),
    ("short, h", "short_deadline"),
    ("long, h", "long_deadline"),
    ("throughput, h", "throughput"),
)
COLUMNS: tuple[Column, ...] = (
    ("instances per job", lambda f: f.instances_per_job, number),
    ("tight, %", lambda f: f.tight_fraction, _per_cent),
    ("in deadline mode, %", lambda f: f.deadline_mode_fraction, _per_cent),
    ("missed, %", lambda f: f.deadline_miss_fraction, _per_cent),
)


def rows_of(swept: Swept, rule: str) -> Rows:
    """Return one row per combination under `rule`. Empty columns are omitted."""
    every = swept.figures(rule)
    marked = frontier(every)
    figures = [
        (name, [cell(one.makespan(kind), _hours, more=kind in one.cut_short) for one in every]) for name, kind in SPANS
    ]
    figures.insert(1, ("over the bound", [_over_the_bound(one, rule) for one in swept.tried]))
    figures += [(name, [cell(of(one), spoken) for one in every]) for name, of, spoken in COLUMNS]
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


def _over_the_bound(one: Tried, rule: str) -> str:
    bound = one.comparison.rules.get(CLAIRVOYANT)
    return "" if bound is None else quotient(one.comparison.rules[rule], bound)


def names(swept: Swept) -> dict[str, str]:
    """Return short names of the keys: without their section where that is unique."""
    keys = list(swept.tried[0].settings)
    last = Counter(key.rpartition(".")[2] for key in keys)
    return {key: short if last[short := key.rpartition(".")[2]] == 1 else key for key in keys}


def as_text(value: object) -> str:
    """Return a setting's value as an operator writes it.

    >>> as_text(0.5), as_text(3600.0), as_text(True), as_text("table")
    ('0.5', '3600', 'true', 'table')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def shown(swept: Swept) -> RenderableType:
    """Return the console output: a table and bars of AFAP makespans for each rule that depends on settings."""
    return Group(*(part for rule in swept.rules for part in _shown(swept, rule)))


def _shown(swept: Swept, rule: str) -> Iterable[RenderableType]:
    rows = rows_of(swept, rule)
    seeds = f"{swept.seeds} seed{'s' if swept.seeds != 1 else ''}"
    table = Table(
        title=f"{swept.scenario}, {rule}: {len(swept.tried)} combinations, medians over {seeds}",
        title_justify="left",
        caption=f"{MARK} frontier: no other is as good in AFAP makespan, instances per job and deadline mode, "
        f"and better in at least one{said(swept, rule)}",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=0,
    )
    for name, *column in zip(rows.head, *rows.cells, strict=True):  # a narrow terminal wraps names, never numbers
        table.add_column(name, justify="right", overflow="fold", min_width=max(map(len, column)))
    for cells in rows.cells:
        table.add_row(*cells)
    yield table
    every = swept.figures(rule)
    marked = frontier(every)
    numbers = [f"{numbered(place, marked):>4}" for place in range(len(every))]
    spans = {told: one.afap_makespan_s for told, one in zip(numbers, every, strict=True)}
    cut_short = {told for told, one in zip(numbers, every, strict=True) if QoS.AFAP in one.cut_short}
    yield from (Text(""), *bars(f"AFAP makespan, {rule}", spans, cut_short=cut_short), Text(""))


def said(swept: Swept, rule: str) -> str:
    """Return the footnote that explains the marks in the cells, or an empty string if there are none."""
    return f"; {NOT_OVER}" if any(one.cut_short for one in swept.figures(rule)) else ""
