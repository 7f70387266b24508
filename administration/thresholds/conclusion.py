"""Says in words whether a simulated change is better, from the figures of both sides. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.formatting import in_words

Numbers = Mapping[str, Any]  # figures of one side, as JSON
LEAST_CHANGE = 0.03  # of a makespan; smaller differences may be chance
LEAST_POINTS = 0.005  # of the fraction of late instances
LEAST_EXTRA = 0.01  # of instances per job


@dataclass(frozen=True, slots=True)
class Finding:
    """One compared figure, in words. `gain`: 1 better, -1 worse, 0 no clear difference."""

    gain: int
    words: str


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict, "better", "worse", "mixed" or "same", its sentence, and what was compared."""

    verdict: str
    words: str
    findings: Sequence[Finding]


def conclusion_of(before: Numbers, after: Numbers) -> Conclusion:
    """Return whether the change makes batches end earlier, with fewer late instances and copies.

    >>> now = {"makespan_s": {"afap": 7200.0}, "deadline_miss_fraction": 0.02}
    >>> found = conclusion_of(now, now | {"makespan_s": {"afap": 5400.0}})
    >>> found.verdict, found.words
    ('better', 'Better with the change: afap batches end 25 % earlier (2 h → 1 h 30 min).')
    """
    findings = [*_ends(before, after), *_shares(before, after)]
    gains, losses = ([one.words for one in findings if one.gain == gain] for gain in (1, -1))
    if gains and losses:
        return Conclusion("mixed", f"Mixed: {gains[0]}, but {losses[0]}.", findings)
    if gains:
        return Conclusion("better", f"Better with the change: {'; '.join(gains[:2])}.", findings)
    if losses:
        return Conclusion("worse", f"Worse with the change: {'; '.join(losses[:2])}.", findings)
    return Conclusion("same", "No clear difference between the present and the changed values.", findings)


def _ends(before: Numbers, after: Numbers) -> Iterator[Finding]:
    """Yield the mean change of the makespans, and the change of each kind of batch."""
    old, new = before.get("makespan_s") or {}, after.get("makespan_s") or {}
    changes = {kind: new[kind] / old[kind] - 1.0 for kind in sorted(old) if old[kind] and new.get(kind) is not None}
    cut = {*before.get("cut_short", ()), *after.get("cut_short", ())}
    if not changes:
        return
    known = [change for kind, change in changes.items() if kind not in cut]
    if len(known) > 1:
        mean = sum(known) / len(known)
        yield Finding(_gain(mean, LEAST_CHANGE), f"batches {_ending(mean)} in the mean")
    for kind, change in changes.items():
        times = f"{in_words(old[kind])} → {in_words(new[kind])}"
        unfinished = ", some unfinished when the simulation ended" if kind in cut else ""
        words = f"{kind.replace('_', ' ')} batches {_ending(change)} ({times}{unfinished})"
        yield Finding(_gain(change, LEAST_CHANGE), words)


def _ending(change: float) -> str:
    if abs(change) < LEAST_CHANGE:
        return "end at about the same time"
    return f"end {abs(change) * 100.0:.0f} % {'earlier' if change < 0.0 else 'later'}"


def _shares(before: Numbers, after: Numbers) -> Iterator[Finding]:
    """Yield the changes of late instances, of instances per job, and of unfinished batches."""
    old, new = before.get("deadline_miss_fraction"), after.get("deadline_miss_fraction")
    if old is not None and new is not None:
        yield Finding(_gain(new - old, LEAST_POINTS), f"late instances {_percent(old)} → {_percent(new)}")
    old, new = before.get("instances_per_job"), after.get("instances_per_job")
    if old and new is not None:
        yield Finding(_gain(new / old - 1.0, LEAST_EXTRA), f"instances per job {old:.2f} → {new:.2f}")
    old, new = before.get("batches_unfinished") or 0.0, after.get("batches_unfinished") or 0.0
    if old or new:
        yield Finding(_gain(new - old, 0.5), f"unfinished batches {old:g} → {new:g}")


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.1f} %"


def _gain(change: float, least: float) -> int:
    """Return the direction of a change; lower figures are better."""
    return 0 if abs(change) < least else -1 if change > 0.0 else 1
