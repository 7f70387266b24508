"""Computes the figures of a run: speed, price, effects on volunteers and submitters, and forecast quality. Pure.

C(B) is the q90 of the forecast: 90 % of batches should end by then. Coverage alone would reward a C(B) that is far too
late, so the ratio of promised to true time is reported with it.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from statistics import fmean, median

import numpy as np

from domain.batches import QoS
from domain.jobs import JobClass
from domain.units import DAY_S, Instant, Seconds
from simulator.ports import VolunteerFacts
from simulator.recording import Followed, ProcessorUse, PublishedForecast, RunRecord
from simulator.submitters import BatchPlan

PROGRESS_PERCENT = (0, 10, 25, 50, 75, 90, 99)

ByProgress = Mapping[str, float]


def coverage_fraction(batches: Iterable[Followed], ended_at: Instant) -> float | None:
    """Return the fraction of batches that ended by C(B), among batches for which this is known; None if there are none.

    A batch that was unfinished at the simulation's end (`ended_at`) is late if its C(B) was earlier, otherwise unknown.
    """
    kept = [known for known in (_kept(batch, ended_at) for batch in batches) if known is not None]
    return sum(kept) / len(kept) if kept else None


def _kept(batch: Followed, ended_at: Instant) -> bool | None:
    return None if batch.promised_at is None else _covers(batch, batch.promised_at, ended_at)


def promise_ratio(batches: Iterable[Followed]) -> float | None:
    """Return the median ratio, over finished batches, of promised to true time from half of the jobs to the last.

    >>> from array import array
    >>> from domain.batches import QoS
    >>> batch = Followed(1, "b", QoS.AFAP, "ada", Instant(0.0), 4, ended_at=array("d", [10.0, 20.0, 30.0, 40.0]))
    >>> batch.promised_at = Instant(80.0)
    >>> promise_ratio([batch])
    3.0
    """
    found = []
    for batch in batches:
        if batch.promised_at is None or not batch.is_over:
            continue
        ends = sorted(batch.ended_at)
        half_at = ends[(batch.jobs + 1) // 2 - 1]
        if ends[-1] > half_at:
            found.append((batch.promised_at - half_at) / (ends[-1] - half_at))
    return median(found) if found else None


def forecast_quality(batches: Iterable[Followed], ended_at: Instant) -> dict[str, ByProgress]:
    """Return the quality of the forecasts that submitters saw, by progress. At 0 % it is that of the first forecast, if
    published before 10 % of the jobs had ended.

    The result has the tables of Figures by name, then by progress in percent of a batch's jobs, over the batches with
    a forecast at that progress. `forecast_error` is |q50 - end| / (end - now), `forecast_ratio` (q50 - now) / (end -
    now), both medians over finished batches; coverages are the fractions of batches that ended by the quantile. A batch
    unfinished at `ended_at` counts in coverages if the quantile was earlier than that.
    """
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    every = list(batches)
    for percent in PROGRESS_PERCENT:
        seen = [(batch, *shown) for batch in every if (shown := _shown_at(batch, percent)) is not None]
        ratios = [_ratio_of(batch, now, shown) for batch, now, shown in seen if batch.is_over]
        left = [one for one in ratios if one is not None]
        if left:
            found["forecast_ratio"][str(percent)] = median(left)
            found["forecast_error"][str(percent)] = median(abs(one - 1.0) for one in left)
        for name in ("q10", "q50", "q90"):
            known = [_covers(batch, getattr(shown, f"{name}_at"), ended_at) for batch, _, shown in seen]
            kept = [one for one in known if one is not None]
            if kept:
                found[f"forecast_{name}_coverage"][str(percent)] = fmean(kept)
    return dict(found)


def _shown_at(batch: Followed, percent: int) -> tuple[Instant, PublishedForecast] | None:
    """Return when the batch reached this progress, and the forecast shown at that time."""
    ends = sorted(batch.ended_at)
    if percent == 0:
        first = next((shown for _, shown in batch.forecasts if shown is not None), None)
        jobs = max(1, math.ceil(batch.jobs * PROGRESS_PERCENT[1] / 100))
        is_early = first is not None and (len(ends) < jobs or first.made_at < ends[jobs - 1])
        return (first.made_at, first) if first is not None and is_early else None
    jobs = max(1, math.ceil(batch.jobs * percent / 100))
    if len(ends) < jobs:
        return None
    now = Instant(ends[jobs - 1])
    shown = next((shown for made_at, shown in reversed(batch.forecasts) if made_at <= now), None)
    return (now, shown) if shown is not None else None


def _ratio_of(batch: Followed, now: Instant, shown: PublishedForecast) -> float | None:
    """Return the ratio of forecast to true remaining time, None if no time remained."""
    left_s = max(batch.ended_at) - now
    return (shown.q50_at - now) / left_s if left_s > 0.0 else None


def _covers(batch: Followed, quantile_at: Instant, ended_at: Instant) -> bool | None:
    if batch.is_over:
        return max(batch.ended_at) <= quantile_at
    return False if quantile_at < ended_at else None


OTHER = (QoS.LONG_DEADLINE, QoS.THROUGHPUT)  # kinds of batches that can wait but must not starve
OTHERS = "other"  # their common name
MAKESPANS = (*(str(qos) for qos in QoS), OTHERS)
TAIL_FROM = 0.9
SATURATED_S = DAY_S  # shorter saturated periods are too short to measure

Figure = float | None
ByName = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run, or medians over several. None: cannot be measured.

    Makespans run from submission to the last job's end and are medians over the batches of a kind; `other` combines
    long-deadline and throughput batches. An unfinished batch counts with its time so far. `tail_s` runs from 90 % of
    its jobs to all. Fractions are of instances, except `fairness_gap_fraction` (of the work sent while two submitters
    waited, the part that another submitter should have received; `fairness_gap_of_all_fraction` is the same gap as a
    fraction of all work), `forecast_coverage_fraction` (batches that ended by the published q90), and
    `refused_feasible_fraction` (requests for work that got none although a waiting job was feasible).

    `use_by_day` and `use_fraction` cover the time during which work waited (simulator/recording.py). `jobs_per_day`
    counts the jobs that ended between the first submission and the run's end, `saturated_jobs_per_day` CPU jobs that
    ended before every job had been sent once (None if that took less than SATURATED_S). The tables of forecasts are by
    progress in percent (`forecast_quality`); coverages over several runs are means.

    `cut_short` names the makespans, by kind or `other`, that are too short because of an unfinished batch: the true
    value is larger.
    """

    afap_makespan_s: Figure = None
    afap_makespan_in_share_s: Figure = None  # clairvoyant bound without deadline mode
    other_makespan_s: Figure = None
    makespan_s: ByName | None = None  # by kind of batch
    tail_s: ByName | None = None
    instances_per_job: Figure = None
    tight_fraction: Figure = None
    deadline_mode_fraction: Figure = None
    deadline_miss_fraction: Figure = None
    never_returned_fraction: Figure = None
    preempted_s_per_job: Figure = None
    validation_delay_s: Figure = None
    validation_delay_p90_s: Figure = None
    fairness_gap_fraction: Figure = None
    fairness_gap_of_all_fraction: Figure = None
    wait_s: ByName | None = None  # by number of processors per job
    wait_by_length_s: ByName | None = None  # by the power of ten of the job's estimated work
    forecast_coverage_fraction: Figure = None
    forecast_promise_ratio: Figure = None
    refused_feasible_fraction: Figure = None
    batches: Figure = None
    batches_unfinished: Figure = None
    jobs_failed: Figure = None
    cut_short: tuple[str, ...] = ()
    use_by_day: tuple[Figure, ...] = ()
    use_fraction: Figure = None
    jobs_per_day: Figure = None
    saturated_jobs_per_day: Figure = None
    forecast_error: ByName | None = None
    forecast_ratio: ByName | None = None
    forecast_q10_coverage: ByName | None = None
    forecast_q50_coverage: ByName | None = None
    forecast_q90_coverage: ByName | None = None

    def makespan(self, name: str) -> Figure:
        """Return the makespan of a kind of batch, or of the `other` kinds combined."""
        if name == OTHERS:
            return self.other_makespan_s
        return (self.makespan_s or {}).get(name, self.afap_makespan_s if name == QoS.AFAP else None)


def figures_of(
    record: RunRecord,
    facts: Iterable[VolunteerFacts],
    *,
    ended_at: Instant,
    deadlines_missed: int,
    use: ProcessorUse | None = None,
) -> Figures:
    """Return the figures of a run that ended at `ended_at`."""
    batches = list(record.batches.values())
    lived = list(facts)
    instances = sum(batch.instances for batch in batches)
    jobs = sum(batch.jobs for batch in batches)
    spans = [(batch.qos, makespan_s(batch, ended_at)) for batch in batches]
    kinds = {str(batch.qos): [one for one in batches if one.qos is batch.qos] for batch in batches}
    kinds[OTHERS] = [batch for batch in batches if batch.qos in OTHER]
    tails = [(batch.qos, tail_s(batch)) for batch in batches]
    delays = np.array(record.validation_delays_s)
    use = use or ProcessorUse()
    return Figures(
        afap_makespan_s=_median(s for qos, s in spans if qos is QoS.AFAP),
        other_makespan_s=_median(s for qos, s in spans if qos in OTHER),
        makespan_s=_by_kind(spans),
        tail_s=_by_kind((qos, s) for qos, s in tails if s is not None),
        instances_per_job=_ratio(instances, jobs),
        tight_fraction=_ratio(sum(batch.tight for batch in batches), instances),
        deadline_mode_fraction=_ratio(sum(one.deadline_mode for one in lived), sum(one.run for one in lived)),
        deadline_miss_fraction=_ratio(deadlines_missed, instances),
        never_returned_fraction=_ratio(
            sum(one.lost for one in lived), sum(batch.instances for batch in record.batches.values())
        ),
        preempted_s_per_job=_ratio(sum(one.preempted_s for one in lived), sum(b.jobs for b in record.batches.values())),
        validation_delay_s=float(np.median(delays)) if delays.size else None,
        validation_delay_p90_s=float(np.quantile(delays, 0.9)) if delays.size else None,
        fairness_gap_fraction=record.shares.gap_fraction,
        fairness_gap_of_all_fraction=record.shares.gap_of_all_fraction,
        wait_s=_waits(record, lambda one: one.ncpus, "{:g}"),
        wait_by_length_s=_waits(record, lambda one: 10.0 ** math.floor(math.log10(one.fpops_est_flop)), "{:.0e}"),
        forecast_coverage_fraction=coverage_fraction(batches, ended_at),
        forecast_promise_ratio=promise_ratio(batches),
        refused_feasible_fraction=_ratio(record.refused_feasible, record.asking),
        batches=float(len(batches)),
        batches_unfinished=float(sum(len(batch.ended_at) < batch.jobs for batch in batches)),
        jobs_failed=float(sum(len(batch.ended_at) - batch.validated for batch in batches)),
        cut_short=tuple(
            sorted(
                kind
                for kind, some in kinds.items()
                if is_cut_short([(makespan_s(batch, ended_at), batch.is_over) for batch in some])
            )
        ),
        use_by_day=use.by_day,
        use_fraction=use.fraction,
        jobs_per_day=_jobs_per_day(batches, ended_at),
        saturated_jobs_per_day=_saturated_jobs_per_day(record, ended_at),
        **forecast_quality(batches, ended_at),  # type: ignore[arg-type]  # each of its own field's kind
    )


def _jobs_per_day(batches: Sequence[Followed], ended_at: Instant) -> Figure:
    if not batches:
        return None
    first_at = min(batch.submitted_at for batch in batches)
    return _ratio(sum(len(batch.ended_at) for batch in batches) * DAY_S, ended_at - first_at)


def _saturated_jobs_per_day(record: RunRecord, ended_at: Instant) -> Figure:
    """Return the rate until every CPU job has been sent once, because retries alone do not keep processors busy."""
    batches = [batch for batch in record.batches.values() if batch.on_cpus]
    until = ended_at if record.all_sent_at is None else record.all_sent_at
    first_at = min((batch.submitted_at for batch in batches), default=until)
    if until - first_at < SATURATED_S:
        return None
    return sum(at <= until for batch in batches for at in batch.ended_at) * DAY_S / (until - first_at)


def bound_figures(
    bounds: Mapping[str, Seconds], plans: Sequence[BatchPlan], *, in_share_s: Mapping[str, Seconds]
) -> Figures:
    """Return the clairvoyant bound as Figures. Only the figures that it defines have a value."""
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
    """Return the time from submission to the end of the last job, or to `ended_at` if the batch is unfinished."""
    return Seconds((max(batch.ended_at) if batch.is_over else ended_at) - batch.submitted_at)


def is_cut_short(spans: Sequence[tuple[float, bool]]) -> bool:
    """Return whether the median would be larger if the unfinished batches (False) had been allowed to finish.

    >>> is_cut_short([(5.0, True), (7.0, True), (9.0, False)]), is_cut_short([(5.0, True), (7.0, False)])
    (False, True)
    """
    longest = [span if over else math.inf for span, over in spans]
    return bool(spans) and median(longest) > median(span for span, _ in spans)


def tail_s(batch: Followed) -> Seconds | None:
    """Return the time from the end of 90 % of the jobs to the end of all, None if the batch is unfinished.

    >>> from array import array
    >>> tail_s(Followed(1, "b", QoS.AFAP, "ada", Instant(0.0), 10, ended_at=array("d", range(10, 110, 10))))
    10.0
    """
    if not batch.is_over or not batch.jobs:
        return None
    ends = sorted(batch.ended_at)
    return Seconds(ends[-1] - ends[math.ceil(TAIL_FROM * batch.jobs) - 1])


def medians(runs: Sequence[Figures]) -> Figures:
    """Return each figure's median over the runs that have it, or its mean for coverages.

    >>> medians([Figures(tight_fraction=0.1), Figures(tight_fraction=0.9), Figures()]).tight_fraction
    0.5
    """
    found: dict[str, Figure | ByName | tuple[Figure, ...] | None] = {}
    for one in (field for field in fields(Figures) if field.name != "cut_short"):
        values = [getattr(run, one.name) for run in runs]
        tables = [value for value in values if isinstance(value, Mapping)]
        if one.name == "use_by_day":
            found[one.name] = tuple(_median(_known(days)) for days in zip_longest(*values))
        elif tables:
            names = sorted({name for table in tables for name in table})
            middle = _mean if one.name.endswith("_coverage") else _median
            found[one.name] = {name: middle(_known(table.get(name) for table in tables)) for name in names}
        else:
            found[one.name] = _median(_known(values))
    cut_short = [name for name in sorted(MAKESPANS) if is_cut_short(_spans(runs, name))]
    return Figures(**found, cut_short=tuple(cut_short))  # type: ignore[arg-type]  # each of its own field's kind


def _spans(runs: Sequence[Figures], name: str) -> list[tuple[float, bool]]:
    """Return the makespan of each run that has one, and whether it is complete."""
    known = [(run.makespan(name), name not in run.cut_short) for run in runs]
    return [(span, whole) for span, whole in known if span is not None]


def as_json(figures: Figures) -> dict[str, object]:
    """Return the figures that have a value, rounded to six significant digits."""
    found: dict[str, object] = {}
    for one in fields(Figures):
        value = getattr(figures, one.name)
        if isinstance(value, Mapping):
            found[one.name] = {name: _rounded(each) for name, each in value.items()}
        elif isinstance(value, tuple):
            if value:
                found[one.name] = [each if isinstance(each, str) else _rounded(each) for each in value]
        elif value is not None:
            found[one.name] = _rounded(value)
    return found


def _rounded(value: Figure) -> Figure:
    return None if value is None else float(f"{value:.6g}")


def _waits(record: RunRecord, key: Callable[[JobClass], float], written: str) -> ByName:
    """Return the median wait of each group of jobs with the same `key`."""
    alike: dict[float, list[array[float]]] = {}
    for job_class_id, waits_s in record.waits_s.items():
        alike.setdefault(key(record.classes[job_class_id]), []).append(waits_s)
    return {written.format(one): float(np.median(np.concatenate(alike[one]))) for one in sorted(alike)}


def _by_kind(values: Iterable[tuple[QoS, float]]) -> ByName:
    kinds: dict[str, list[float]] = {}
    for qos, value in values:
        kinds.setdefault(str(qos), []).append(value)
    return {qos: _median(kinds[qos]) for qos in sorted(kinds)}


def _median(values: Iterable[float]) -> Figure:
    found = list(values)
    return float(median(found)) if found else None


def _mean(values: Iterable[float]) -> Figure:
    found = list(values)
    return sum(found) / len(found) if found else None


def _known(values: Iterable[Figure]) -> list[float]:
    return [value for value in values if value is not None]


def _ratio(part: float, whole: float) -> Figure:
    return part / whole if whole > 0 else None
