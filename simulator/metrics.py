"""What a run comes to, in figures: how fast, at what price, and what volunteers and submitters noticed. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from statistics import median

import numpy as np

from domain.batches import QoS
from domain.units import Instant, Seconds
from simulator.ports import VolunteerFacts
from simulator.recording import Followed, Record
from simulator.submitters import BatchPlan

OTHER = (QoS.LONG_DEADLINE, QoS.THROUGHPUT)  # batches that can wait, and must not starve
TAIL_FROM = 0.9

Figure = float | None
ByName = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Figures:
    """One run's, or the medians of several. None: nothing to measure it by.

    Makespans are from submission to the last job's end, medians over the batches of a kind; `other` are long-deadline
    and throughput batches together. A batch that is not over counts with the time it had. `tail_s` is from 90 % of its
    jobs to all. Fractions are of instances, but for `fairness_gap_fraction` (the part of the work that another
    submitter should have had), `forecast_coverage_fraction` (batches over before the q90 that was published), and
    `refused_feasible_fraction` (requests for work that got none although something that waits could have been run).
    """

    afap_makespan_s: Figure = None
    afap_makespan_in_share_s: Figure = None  # of the clairvoyant bound: of those who never make a client hurry
    other_makespan_s: Figure = None
    makespan_s: ByName | None = None  # by kind of batch
    tail_s: ByName | None = None
    instances_per_job: Figure = None
    tight_fraction: Figure = None
    deadline_mode_fraction: Figure = None
    deadline_miss_fraction: Figure = None
    preempted_s_per_job: Figure = None
    validation_delay_s: Figure = None
    validation_delay_p90_s: Figure = None
    fairness_gap_fraction: Figure = None
    wait_s: ByName | None = None  # by processors of a job
    forecast_coverage_fraction: Figure = None
    refused_feasible_fraction: Figure = None
    batches: Figure = None
    batches_unfinished: Figure = None
    jobs_failed: Figure = None


def figures_of(
    record: Record,
    facts: Iterable[VolunteerFacts],
    *,
    ended_at: Instant,
    deadlines_missed: int,
    forecast_coverage: float | None = None,
    learning: Set[str] = frozenset(),
) -> Figures:
    """The figures of one run that ended at `ended_at`, of all batches but those named in `learning`.

    What volunteers live through and how long jobs wait is told of the whole run.
    """
    batches = [batch for batch in record.batches.values() if batch.name not in learning]
    lived = list(facts)
    instances = sum(batch.instances for batch in batches)
    jobs = sum(batch.jobs for batch in batches)
    spans = [(batch.qos, makespan_s(batch, ended_at)) for batch in batches]
    tails = [(batch.qos, tail_s(batch)) for batch in batches]
    delays = np.array(record.validation_delays_s)
    return Figures(
        afap_makespan_s=_median(s for qos, s in spans if qos is QoS.AFAP),
        other_makespan_s=_median(s for qos, s in spans if qos in OTHER),
        makespan_s=_by_kind(spans),
        tail_s=_by_kind((qos, s) for qos, s in tails if s is not None),
        instances_per_job=_ratio(instances, jobs),
        tight_fraction=_ratio(sum(batch.tight for batch in batches), instances),
        deadline_mode_fraction=_ratio(sum(one.deadline_mode for one in lived), sum(one.run for one in lived)),
        deadline_miss_fraction=_ratio(deadlines_missed, instances),
        preempted_s_per_job=_ratio(sum(one.preempted_s for one in lived), sum(b.jobs for b in record.batches.values())),
        validation_delay_s=float(np.median(delays)) if delays.size else None,
        validation_delay_p90_s=float(np.quantile(delays, 0.9)) if delays.size else None,
        fairness_gap_fraction=record.shares.gap_fraction,
        wait_s={f"{ncpus:g}": float(np.median(np.array(waits))) for ncpus, waits in sorted(record.waits_s.items())},
        forecast_coverage_fraction=forecast_coverage,
        refused_feasible_fraction=_ratio(record.in_vain_by_policy, record.requests),
        batches=float(len(batches)),
        batches_unfinished=float(sum(len(batch.ended_at) < batch.jobs for batch in batches)),
        jobs_failed=float(sum(len(batch.ended_at) - batch.validated for batch in batches)),
    )


def bound_figures(
    bounds: Mapping[str, Seconds], plans: Sequence[BatchPlan], *, in_share_s: Mapping[str, Seconds]
) -> Figures:
    """The clairvoyant bound in the same figures, as far as it says something."""
    spans = [(plan.qos, bounds[plan.name]) for plan in plans if plan.name in bounds]
    afap = [plan.name for plan in plans if plan.qos is QoS.AFAP]
    return Figures(
        afap_makespan_s=_median(s for qos, s in spans if qos is QoS.AFAP),
        afap_makespan_in_share_s=_median(in_share_s[name] for name in afap if name in in_share_s),
        other_makespan_s=_median(s for qos, s in spans if qos in OTHER),
        makespan_s=_by_kind(spans),
        instances_per_job=1.0,
        batches=float(len(plans)),
        batches_unfinished=float(len(plans) - len(spans)),
    )


def makespan_s(batch: Followed, ended_at: Instant) -> Seconds:
    """From submission to the end of the last job; to `ended_at` while it is not over."""
    over = len(batch.ended_at) >= batch.jobs
    return Seconds((max(batch.ended_at) if over else ended_at) - batch.submitted_at)


def tail_s(batch: Followed) -> Seconds | None:
    """From the end of the job with which 90 % are over to the end of the last; None while it is not over.

    >>> from array import array
    >>> tail_s(Followed(1, "b", QoS.AFAP, "ada", Instant(0.0), 10, ended_at=array("d", range(10, 110, 10))))
    10.0
    """
    if len(batch.ended_at) < batch.jobs or not batch.jobs:
        return None
    ends = sorted(batch.ended_at)
    return Seconds(ends[-1] - ends[math.ceil(TAIL_FROM * batch.jobs) - 1])


def medians(runs: Sequence[Figures]) -> Figures:
    """Figure by figure the median of those runs that have it.

    >>> medians([Figures(tight_fraction=0.1), Figures(tight_fraction=0.9), Figures()]).tight_fraction
    0.5
    """
    found: dict[str, Figure | ByName | None] = {}
    for one in fields(Figures):
        values = [getattr(run, one.name) for run in runs]
        tables = [value for value in values if isinstance(value, Mapping)]
        if tables:
            names = sorted({name for table in tables for name in table})
            found[one.name] = {name: _median(_known(table.get(name) for table in tables)) for name in names}
        else:
            found[one.name] = _median(_known(values))
    return Figures(**found)  # type: ignore[arg-type]  # each of its own field's kind


def as_json(figures: Figures) -> dict[str, object]:
    """The figures that there are, rounded to what a run can tell: six digits."""
    found: dict[str, object] = {}
    for one in fields(Figures):
        value = getattr(figures, one.name)
        if isinstance(value, Mapping):
            found[one.name] = {name: _rounded(each) for name, each in value.items()}
        elif value is not None:
            found[one.name] = _rounded(value)
    return found


def _rounded(value: Figure) -> Figure:
    return None if value is None else float(f"{value:.6g}")


def _by_kind(values: Iterable[tuple[QoS, float]]) -> ByName:
    kinds: dict[str, list[float]] = {}
    for qos, value in values:
        kinds.setdefault(str(qos), []).append(value)
    return {qos: _median(kinds[qos]) for qos in sorted(kinds)}


def _median(values: Iterable[float]) -> Figure:
    found = list(values)
    return float(median(found)) if found else None


def _known(values: Iterable[Figure]) -> list[float]:
    return [value for value in values if value is not None]


def _ratio(part: float, whole: float) -> Figure:
    return part / whole if whole > 0 else None
