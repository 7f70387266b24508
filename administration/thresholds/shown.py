"""Formats thresholds, their preview and their replay as text, and says whether a simulated change is better. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, cast  # the values of a JSON document

from domain.batches import QoS, kind_in_words
from domain.formatting import in_words

if TYPE_CHECKING:
    from administration.thresholds.replay import Replayed


Numbers = Mapping[str, Any]  # figures of one side, as JSON
LEAST_CHANGE = 0.03  # of a makespan or tail; smaller differences do not matter
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
    yield from filter(None, [after_in_words(found["changes"])])
    yield from stale_in_words(found["stale_cut_points"], found["computed_at"])
    yield ""
    age_s = found["computed_at"] - found["hosts_read_at"]
    read = f" (read {in_words(age_s)} ago)" if age_s >= 1.0 else ""
    read += f", estimated from one host in {found['one_in']}" if found["one_in"] > 1 else ""
    yield f"Recently active hosts{read}, and requests per hour from hosts that pass:"
    if not found["hosts"]:
        yield "  no app has a version yet"
    for one in found["hosts"]:
        counts = f"{one['havs']} with a record, {one['newcomers']} without"
        yield f"  {one['app']} {one['processor_type']}: {'; '.join(filter(None, (counts, population_in_words(one))))}"
        for gate in one["gates"]:
            yield f"    {gate['gate']:8} {_of_side(gate['old'])}  ->  {_of_side(gate['new'])}"
    yield ""
    yield "Gated jobs waiting now, and the time to send them at one job per request:"
    if not found["waiting"]:
        yield "  none"
    for wait in found["waiting"]:
        sides = f"{_of_wait(wait['old'])}  ->  {_of_wait(wait['new'])}"
        yield f"  {wait['app']} {wait['gate']:8} {wait['jobs']} jobs: {sides}"


def after_in_words(changes: Sequence[Mapping[str, Any]]) -> str:
    """Say to which moment the figures after a previewed change apply; "" if that is at once.

    >>> after_in_words([{"key": "deadline.p_tight"}])
    ''
    """
    if all(one["key"] != "ranking.min_samples" for one in changes):
        return ""
    return (
        "The changed side is that after the next ranking (ranking.refresh_interval_s); until then, hosts with "
        "fewer results than the changed ranking.min_samples pass no gate."
    )


def population_in_words(one: Mapping[str, Any]) -> str:
    """Return the P of hosts of a previewed type if too few are ranked, before or after the change; "" for neither.

    >>> few = {"small_population": True, "measured": 3}
    >>> population_in_words(few | {"would_be_small": True, "would_be_measured": 3})
    'too few to rank: P 0.5, 0.9 for the fastest, 0 after a failure'
    >>> population_in_words(few | {"would_be_small": False, "would_be_measured": 20}).partition(":")[0]
    'now too few to rank'
    """
    now = _small_in_words(one["measured"]) if one["small_population"] else ""
    after = _small_in_words(one["would_be_measured"]) if one["would_be_small"] else ""
    if now == after:
        return now
    return "; ".join(f"{when} {words}" for when, words in (("now", now), ("after the change", after)) if words)


def _small_in_words(measured: int) -> str:
    """Return P under the bootstrap rule: without a measured host, gates are capped at its highest value."""
    return f"too few to rank: P 0.5{', 0.9 for the fastest' if measured else ''}, 0 after a failure"


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
    numbers = isinstance(before, (int, float)) and isinstance(after, (int, float))
    return f"{key}: {before:g} -> {after:g}" if numbers else f"{key}: {before} -> {after}"


def _of_side(side: Mapping[str, Any]) -> str:
    lowered = f" (lowered from {side['asked']:g}: {side['because']})" if side["because"] else ""
    passed = side["havs"] + side["newcomers"]
    fast = f" of {side['fast']} fast enough" if side["fast"] != side["havs"] else ""
    return f">= {side['threshold']:g}{lowered}: {passed}{fast} pass, {side['calls_per_hour']:.1f} requests/h"


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
    """One compared figure: its change, the least change that counts, its words, and its values with both settings.

    `gain`: 1 better, -1 worse, 0 no difference beyond chance. `kind`: that of the batches, "" for all.
    """

    key: str
    change: float
    least: float
    subject: str
    verb: str
    before: str
    after: str
    gain: int = 0
    kind: str = ""

    @property
    def words(self) -> str:
        return f"{self.subject}: {self.verb} ({self.before} → {self.after})"

    @property
    def verdict(self) -> str:
        """Return the verdict: a change that is large enough, but within the runs' spread, may be chance."""
        if self.gain:
            return "better" if self.gain > 0 else "worse"
        return "may be chance" if abs(self.change) >= self.least else "same"

    @property
    def is_urgent(self) -> bool:
        """Return whether this is a figure of AFAP or short-deadline batches."""
        return self.kind in (QoS.AFAP, QoS.SHORT_DEADLINE)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict, its words, and the compared figures.

    The verdict is better, worse, mixed, same, unsure, or unclear: of one run, or if other figures are better and a loss
    of urgent batches may be chance.
    """

    verdict: str
    words: str
    findings: Sequence[Finding]

    @property
    def judged(self) -> Sequence[Finding]:
        """Return the figures that are better or worse."""
        return [one for one in self.findings if one.gain]

    @property
    def brief(self) -> str:
        """Return the verdict for pages that list the findings."""
        if not self.judged:
            return self.words
        gains = [one.gain for one in self.findings]
        unsure = f"; {self.unsure} may be chance" if self.unsure else ""
        counted = f"{gains.count(1)} better and {gains.count(-1)} worse"
        verdict = URGENT_UNCLEAR if self.verdict == "unclear" else self.verdict.capitalize()
        return f"{verdict}: of {len(gains)} figures, {counted}{unsure}."

    @property
    def unsure(self) -> int:
        """Return the number of figures whose difference may be chance: more runs may tell."""
        return sum(one.verdict == "may be chance" for one in self.findings)


COMPARED = ("makespan_s", "cut_short", "tail_s", "deadline_miss_fraction", "instances_per_job", "batches_unfinished")
MOST_CHANCE = 0.1  # probability that any figure is called better or worse although all differences are chance
CHANCE = "no difference beyond chance"
URGENT_UNCLEAR = "Unclear for urgent batches"


def conclusion_of(before: Numbers, after: Numbers, runs: Sequence[tuple[Numbers, Numbers]] = ()) -> Conclusion:
    """Return, for each kind of batch, whether the change makes them end earlier, with fewer late instances and copies.

    `before` and `after` are medians over `runs`, pairs of runs with the same seed (their COMPARED figures). A
    difference counts if it is large enough and not due to the spread of the runs, with 90 % confidence for all figures
    together (Holm 1979, A simple sequentially rejective multiple test procedure); no difference of a single run counts.
    Old results have no runs. Single batches vary between runs, and are not judged.

    >>> now = {"makespan_s": {"afap": 7200.0}, "deadline_miss_fraction": 0.02}
    >>> found = conclusion_of(now, now | {"makespan_s": {"afap": 5400.0}})
    >>> found.verdict, found.words.partition(". ")[0]
    ('better', 'Better with the change: median AFAP batch: ends 25 % earlier (2 h → 1 h 30 min)')
    >>> found.brief
    'Better: of 2 figures, 1 better and 0 worse.'
    """
    every = [{one.key: one.change for one in _findings(*run)} for run in runs]
    found = _findings(before, after)
    changes = {one.key: [run[one.key] for run in every if one.key in run] for one in found}
    complete = {key: of_runs for key, of_runs in changes.items() if len(of_runs) == len(runs) > 1}
    sure = not_chance({key: chance_of(of_runs) for key, of_runs in complete.items()}, len(found))
    findings = [_judged(one, changes[one.key], is_sure=not runs or one.key in sure) for one in found]
    return Conclusion(*_verdict(findings, len(runs)), findings)


def not_chance(chances: Mapping[str, float], figures: int) -> set[str]:
    """Return the figures whose differences are not chance, by Holm's test of all `figures` together.

    >>> sorted(not_chance({"a": 0.01, "b": 0.03, "c": 0.06}, 5)), not_chance({"a": 0.03}, 10)
    (['a'], set())
    """
    sure = set[str]()
    for tested, (key, chance) in enumerate(sorted(chances.items(), key=lambda one: one[1])):
        if chance >= MOST_CHANCE / (figures - tested):
            break
        sure.add(key)
    return sure


def _verdict(findings: Sequence[Finding], runs: int) -> tuple[str, str]:
    gains, losses = ("; ".join(one.words for one in findings if one.gain == gain) for gain in (1, -1))
    rest = f" The rest: {CHANCE}." if any(one.gain == 0 for one in findings) else ""
    if gains and losses:
        return "mixed", f"Mixed. Better: {gains}. Worse: {losses}.{rest}"
    if gains and _is_unclear([one for one in findings if one.is_urgent]):
        return "unclear", f"{URGENT_UNCLEAR}: a loss of them may be chance. Better: {gains}.{rest}"
    if gains:
        return "better", f"Better with the change: {gains}.{rest}"
    if losses:
        return "worse", f"Worse with the change: {losses}.{rest}"
    if not any(one.change for one in findings):
        return "same", "No difference: all compared figures are equal with both values."
    if runs == 1:
        return (
            "unclear",
            "One run cannot tell an effect of the change from chance. Simulate five or more before you decide.",
        )
    if unsure := sum(one.verdict == "may be chance" for one in findings):
        return (
            "unsure",
            (
                f"No clear difference: {unsure} of {len(findings)} figures differ, no more than chance explains. Keep "
                f"the present values, or simulate more than {runs} runs."
            ),
        )
    return "same", f"{CHANCE.capitalize()} between the present and the changed values."


def _is_unclear(findings: Sequence[Finding]) -> bool:
    """Return whether none of the figures is better or worse, and a loss of one may be chance."""
    losses = any(one.change > 0.0 and one.verdict == "may be chance" for one in findings)
    return losses and not any(one.gain for one in findings)


def _judged(found: Finding, changes: Sequence[float], *, is_sure: bool) -> Finding:
    """Return the finding with its gain, if it is large enough, not chance, and has one sign in all runs."""
    if abs(found.change) >= found.least and is_sure and all(mean(changes or [1]) * one >= 0.0 for one in changes):
        return replace(found, gain=-1 if found.change > 0.0 else 1)
    return found


def chance_of(changes: Sequence[float]) -> float:
    """Return the probability that the spread of the runs alone gives a mean at least as far from 0 (Student's t).

    >>> round(chance_of([0.02, 0.05, 0.08]), 4), chance_of([0.1, 0.1]), chance_of([0.0, 0.0])
    (0.102, 0.0, 1.0)
    """
    from scipy.special import stdtr  # noqa: PLC0415  slow to import: only for results of several runs

    middle, spread = abs(mean(changes)), stdev(changes) / math.sqrt(len(changes))
    if spread == 0.0:
        return 0.0 if middle else 1.0
    return 2.0 * float(stdtr(len(changes) - 1, -middle / spread))


def _findings(before: Numbers, after: Numbers) -> list[Finding]:
    return [
        *_times(before, after, "makespan_s", "median {} batch", ("ends {} earlier", "ends {} later")),
        *_times(
            before,
            after,
            "tail_s",
            "last tenth of {} jobs",
            ("takes {} less time", "takes {} more time"),
        ),
        *_shares(before, after),
    ]


def _times(before: Numbers, after: Numbers, figure: str, subject: str, verbs: tuple[str, str]) -> Iterator[Finding]:
    """Yield the change of a time for each kind of batch; ">" if the simulation ended before its batches did."""
    old, new = before.get(figure) or {}, after.get(figure) or {}

    def shown(side: Numbers, kind: str) -> str:
        is_cut = figure == "makespan_s" and kind in side.get("cut_short", ())
        return f"{'> ' if is_cut else ''}{in_words(side[figure][kind])}"

    for kind in sorted(old):
        if not old[kind] or new.get(kind) is None:
            continue
        change = new[kind] / old[kind] - 1.0
        verb = verbs[change > 0.0].format(f"{abs(change) * 100.0:.0f} %")
        name = subject.format(kind_in_words(kind))
        sides = shown(before, kind), shown(after, kind)
        yield Finding(f"{figure} {kind}", change, LEAST_CHANGE, name, verb, *sides, kind=kind)


def _shares(before: Numbers, after: Numbers) -> Iterator[Finding]:
    """Yield the changes of late instances, of instances per job, and of unfinished batches."""
    old, new = before.get("deadline_miss_fraction"), after.get("deadline_miss_fraction")
    if old is not None and new is not None:
        yield Finding(
            "late",
            new - old,
            LEAST_POINTS,
            "late instances",
            "more" if new > old else "fewer",
            _percent(old),
            _percent(new),
        )
    old, new = before.get("instances_per_job"), after.get("instances_per_job")
    if old and new is not None:
        yield Finding(
            "instances",
            new / old - 1.0,
            LEAST_EXTRA,
            "instances per job",
            "more" if new > old else "fewer",
            f"{old:.2f}",
            f"{new:.2f}",
        )
    old, new = before.get("batches_unfinished") or 0.0, after.get("batches_unfinished") or 0.0
    if old or new:
        verb = "more" if new > old else "fewer"
        yield Finding("unfinished", new - old, 0.5, "unfinished batches", verb, f"{old:g}", f"{new:g}")


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.1f} %"
