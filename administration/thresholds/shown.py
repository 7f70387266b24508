"""Formats thresholds, their preview and their replay as text, and says whether a simulated change is better. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast  # the values of a JSON document

from domain.formatting import in_words

if TYPE_CHECKING:
    from administration.thresholds.replay import Replayed


Numbers = Mapping[str, Any]  # figures of one side, as JSON
LEAST_CHANGE = 0.03  # of a makespan; smaller differences may be chance
LEAST_POINTS = 0.005  # of the fraction of late instances
LEAST_EXTRA = 0.01  # of instances per job


def thresholds_as_text(rows: Sequence[Mapping[str, object]]) -> str:
    """List all thresholds (keys.thresholds_as_json) with value, effects, and the user who last changed them.

    >>> row = {"key": "deadline.p_tight", "value": 0.8, "default": 0.9, "source": "set", "unit": "percentile"}
    >>> texts = {"meaning": "least percentile", "higher": "fewer hosts", "lower": "more hosts"}
    >>> print(thresholds_as_text([row | texts | {"changed_by": "ada", "why": "they waited"}]))
    deadline.p_tight = 0.8 percentile (default 0.9)
      least percentile
      higher: fewer hosts
      lower: more hosts
      last changed by ada: they waited
    """
    return "\n".join(line for row in rows for line in _threshold(row))


def _threshold(row: Mapping[str, object]) -> Iterator[str]:
    default = "the default" if row["source"] == "default" else f"default {_plain(row['default'])}"
    yield f"{row['key']} = {_plain(row['value'])} {row['unit']} ({default})"
    yield f"  {row['meaning']}"
    yield f"  higher: {row['higher']}"
    yield f"  lower: {row['lower']}"
    if row["changed_by"] is not None:
        yield f"  last changed by {row['changed_by']}: {row['why'] or 'no reason given'}"


def _plain(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def preview_as_text(found: Mapping[str, Any]) -> str:
    """Format a preview (service.py) as text."""
    return "\n".join(_lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    for one in found["changes"]:
        yield _change(one["key"], one["from"], one["to"])
    yield from stale_in_words(found["stale_cut_points"], found["computed_at"])
    yield ""
    age_s = found["computed_at"] - found["hosts_read_at"]
    read = f" (read {in_words(age_s)} ago)" if age_s >= 1.0 else ""
    read += f", estimated from one host in {found['one_in']}" if found["one_in"] > 1 else ""
    yield f"Recently active hosts{read}, and requests per hour from hosts that pass:"
    if not found["hosts"]:
        yield "  no app has a version yet"
    for one in found["hosts"]:
        small = ", too few to rank: P 0.5 without a failure" if one["small_population"] else ""
        yield (
            f"  {one['app']} {one['processor_type']}: {one['havs']} with a record, {one['newcomers']} without{small}"
        )
        for gate in one["gates"]:
            yield f"    {gate['gate']:8} {_of_side(gate['old'])}  ->  {_of_side(gate['new'])}"
    yield ""
    yield "Gated jobs waiting now, and the time to send them at one job per request:"
    if not found["waiting"]:
        yield "  none"
    for wait in found["waiting"]:
        sides = f"{_of_wait(wait['old'])}  ->  {_of_wait(wait['new'])}"
        yield f"  {wait['app']} {wait['gate']:8} {wait['jobs']} jobs: {sides}"


def replayed_in_words(found: Replayed) -> str:
    """Describe what was simulated; shown above the table of figures."""
    sample = found.sample
    simulated = (
        f"{sample.hosts} of {sample.hosts_active} recently active hosts, and {sample.jobs} of the "
        f"{sample.jobs_open} open jobs of {sample.batches} waiting batches, simulated {found.comparison.seeds} times:"
    )
    now, changed = found.as_json()["now"], found.as_json()["changed"]
    sides = cast("Mapping[str, Any]", now), cast("Mapping[str, Any]", changed)
    concluded = conclusion_of(*sides, found.runs).words
    return "\n".join((*(_change(key, before, after) for key, before, after in found.changes), concluded, simulated))


def _change(key: str, before: object, after: object) -> str:
    return f"{key}: {before:g} -> {after:g}" if _are_numbers(before, after) else f"{key}: {before} -> {after}"


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _of_side(side: Mapping[str, Any]) -> str:
    lowered = f" (set: {side['asked']:g}; {side['because']})" if side["because"] else ""
    passed = side["havs"] + side["newcomers"]
    return f">= {side['threshold']:g}{lowered}: {passed} pass, {side['calls_per_hour']:.1f} requests/h"


def _of_wait(wait: Mapping[str, Any]) -> str:
    if wait["send_s"] is None:
        return f">= {wait['threshold']:g}: never, no passing host makes requests"
    return f">= {wait['threshold']:g}: {in_words(wait['send_s'])} ({wait['calls_per_hour']:.1f} requests/h)"


def stale_in_words(stale: Iterable[Mapping[str, Any]], now: float) -> Iterator[str]:
    """Yield one line for each stale set of cut points.

    >>> list(stale_in_words([{"app": "pi", "processor_type": "cpu", "computed_at": 0.0}], 260_000.0))
    ['pi cpu: hosts were last ranked 3 d ago; too old, the bootstrap rule applies']
    """
    for one in stale:
        ago = in_words(now - one["computed_at"])
        yield (
            f"{one['app']} {one['processor_type']}: hosts were last ranked {ago} ago; too old, "
            "the bootstrap rule applies"
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One compared figure, in words. `gain`: 1 better, -1 worse, 0 no clear difference."""

    key: str
    gain: int
    words: str


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict, "better", "worse", "mixed" or "same", its sentence, and what was compared."""

    verdict: str
    words: str
    findings: Sequence[Finding]


COMPARED = ("makespan_s", "cut_short", "deadline_miss_fraction", "instances_per_job", "batches_unfinished")


def conclusion_of(before: Numbers, after: Numbers, runs: Sequence[tuple[Numbers, Numbers]] = ()) -> Conclusion:
    """Return whether the change makes batches end earlier, with fewer late instances and copies.

    `before` and `after` are medians over `runs`, pairs of runs with the same seed (their COMPARED figures). A
    difference that is not in every run may be chance and counts as none; so does every difference of a single run.
    Old results have no runs.

    >>> now = {"makespan_s": {"afap": 7200.0}, "deadline_miss_fraction": 0.02}
    >>> found = conclusion_of(now, now | {"makespan_s": {"afap": 5400.0}})
    >>> found.verdict, found.words
    ('better', 'Better with the change: afap batches end 25 % earlier (2 h → 1 h 30 min).')
    """
    medians, every = _findings(before, after), [{one.key: one.gain for one in _findings(*run)} for run in runs]
    findings = [
        one if _is_sure(one, every) else replace(one, gain=0, words=f"{one.words}, by chance?") for one in medians
    ]
    gains, losses = ([one.words for one in findings if one.gain == gain] for gain in (1, -1))
    if gains and losses:
        return Conclusion("mixed", f"Mixed: {gains[0]}, but {losses[0]}.", findings)
    if gains:
        return Conclusion("better", f"Better with the change: {'; '.join(gains[:2])}.", findings)
    if losses:
        return Conclusion("worse", f"Worse with the change: {'; '.join(losses[:2])}.", findings)
    chance = any(one.gain for one in medians)
    why = ": what differs is not so in every run and may be chance" if chance else ""
    return Conclusion("same", f"No clear difference between the present and the changed values{why}.", findings)


def _findings(before: Numbers, after: Numbers) -> list[Finding]:
    return [*_ends(before, after), *_shares(before, after)]


def _is_sure(found: Finding, every: Sequence[Mapping[str, int]]) -> bool:
    """Return whether at least two runs have the same clear difference, and none lacks it."""
    return not found.gain or (len(every) != 1 and all(one.get(found.key) == found.gain for one in every))


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
        yield Finding("mean", _gain(mean, LEAST_CHANGE), f"batches {_ending(mean)} in the mean")
    for kind, change in changes.items():
        times = f"{in_words(old[kind])} → {in_words(new[kind])}"
        unfinished = ", some unfinished when the simulation ended" if kind in cut else ""
        words = f"{kind.replace('_', ' ')} batches {_ending(change)} ({times}{unfinished})"
        yield Finding(kind, _gain(change, LEAST_CHANGE), words)


def _ending(change: float) -> str:
    if abs(change) < LEAST_CHANGE:
        return "end at about the same time"
    return f"end {abs(change) * 100.0:.0f} % {'earlier' if change < 0.0 else 'later'}"


def _shares(before: Numbers, after: Numbers) -> Iterator[Finding]:
    """Yield the changes of late instances, of instances per job, and of unfinished batches."""
    old, new = before.get("deadline_miss_fraction"), after.get("deadline_miss_fraction")
    if old is not None and new is not None:
        yield Finding("late", _gain(new - old, LEAST_POINTS), f"late instances {_percent(old)} → {_percent(new)}")
    old, new = before.get("instances_per_job"), after.get("instances_per_job")
    if old and new is not None:
        yield Finding("instances", _gain(new / old - 1.0, LEAST_EXTRA), f"instances per job {old:.2f} → {new:.2f}")
    old, new = before.get("batches_unfinished") or 0.0, after.get("batches_unfinished") or 0.0
    if old or new:
        yield Finding("unfinished", _gain(new - old, 0.5), f"unfinished batches {old:g} → {new:g}")


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.1f} %"


def _gain(change: float, least: float) -> int:
    """Return the direction of a change; lower figures are better."""
    return 0 if abs(change) < least else -1 if change > 0.0 else 1
