"""What a replay came to, as it is shown and as it travels: the same whether it ran here or behind a server. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import msgspec

from administration.thresholds.recent import SCENARIO, Sample
from simulator.metrics import Figures, as_json
from simulator.report import BatchEnds, RuleComparison

NOW, CHANGED = "as it is", "as changed"
MOST_ENDS = 20_000  # of a side: what a chart shows is less

Change = tuple[str, object, object]  # key, from, to


class _Document(msgspec.Struct):
    """As it travels: a side that tells nothing of urgent batches has no `ends`."""

    changes: list[dict[str, Any]]
    population: Sample
    seeds: int
    now: Figures
    changed: Figures
    ends: dict[str, BatchEnds]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Both sides' figures, medians over seeds, with the digits that a run can tell."""

    sample: Sample
    changes: Sequence[Change]
    comparison: RuleComparison

    @classmethod
    def of(cls, sample: Sample, changes: Sequence[Change], comparison: RuleComparison) -> Replayed:
        """What was compared, no finer than it travels."""
        return cls.read(cls(sample, changes, comparison).as_document())

    @classmethod
    def read(cls, document: Mapping[str, object]) -> Replayed:
        """What `as_document` wrote, in whatever order its keys come back."""
        found = msgspec.convert(document, _Document)
        figures = {NOW: _in_order(found.now), CHANGED: _in_order(found.changed)}
        ends = {name: found.ends[name] for name in figures if name in found.ends}
        return cls(
            found.population,
            tuple((one["key"], one["from"], one["to"]) for one in found.changes),
            RuleComparison(SCENARIO, found.seeds, figures, ends),
        )

    def as_json(self) -> dict[str, object]:
        """`now` and `changed` have the figures of `muster simulate`."""
        rules = self.comparison.rules
        return {
            "changes": [{"key": key, "from": before, "to": after} for key, before, after in self.changes],
            "population": asdict(self.sample),
            "seeds": self.comparison.seeds,
            "now": as_json(rules[NOW]),
            "changed": as_json(rules[CHANGED]),
        }

    def as_document(self) -> dict[str, object]:
        """The same with what charts are drawn from: how urgent batches came to their end, by side."""
        ends = {name: asdict(thinned(one, MOST_ENDS)) for name, one in self.comparison.ends.items()}
        return {**self.as_json(), "ends": ends}


def thinned(ends: BatchEnds, most: int) -> BatchEnds:
    """At most so many of them, evenly; all are over only where all were.

    >>> thinned(BatchEnds((4.0, 1.0, 3.0, 2.0), 6), 2)
    BatchEnds(ends_s=(2.0, 4.0), jobs=3)
    """
    step = max(1, -(-len(ends.ends_s) // most))
    kept = tuple(sorted(ends.ends_s)[step - 1 :: step])
    return BatchEnds(kept, len(kept) + -(-(ends.jobs - len(ends.ends_s)) // step))


def _in_order(figures: Figures) -> Figures:
    """With its tables by name."""
    tables = {one.name: getattr(figures, one.name) for one in fields(figures)}
    in_order = {name: dict(sorted(table.items())) for name, table in tables.items() if isinstance(table, Mapping)}
    return replace(figures, **in_order)  # type: ignore[arg-type]  # each of its own field's kind
