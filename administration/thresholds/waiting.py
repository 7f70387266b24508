"""Which waiting jobs are behind which gate, with thresholds as they are and as they would be? Pure.

The gate in front of a job depends on the host that asks (DESIGN section 5, rows 2 to 5). Here it is the one that an
idle host of the app's median speed would meet; what such a host is sent in its turn is behind none (decision 36). The
rule itself is the scheduler's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.apps import ProcessorType
from domain.catalogue import Catalogue
from domain.insight import WaitingBatch
from domain.jobs import JobClass
from domain.ranking import CutPoints, Gate, Percentile
from domain.settings import DeadlineSettings
from domain.units import AppId, Flop, Instant, JobClassId, Seconds
from scheduler.deadline import Due, Moment, due_inputs, rule_of
from scheduler.gates import reachable
from scheduler.runtime import runtime_behind_s

NEWCOMER, BEST = Percentile(None), Percentile(math.inf)  # one opens no gate, the other every one
TypeOf = tuple[AppId, ProcessorType]


@dataclass(frozen=True, slots=True)
class BehindGate:
    """Jobs of one app behind one gate; `thresholds` are what hosts must reach on each processor type, old and new."""

    app_id: AppId
    gate: Gate
    thresholds: tuple[tuple[ProcessorType, float, float], ...]


def behind_gates(
    waiting: Iterable[WaitingBatch], catalogue: Catalogue, old: DeadlineSettings, new: DeadlineSettings, *, now: Instant
) -> dict[BehindGate, int]:
    """How many unsent instances wait behind each gate; those no gate keeps are left out."""
    counts: dict[BehindGate, int] = {}
    for one in waiting:
        firsts = one.batch.counts.unsent - one.retries_unsent
        for retry, jobs in ((False, firsts), (True, one.retries_unsent)):
            place = _place(one, catalogue, old, new, retry=retry, now=now) if jobs > 0 else None
            if place is not None:
                counts[place] = counts.get(place, 0) + jobs
    return counts


def _place(
    one: WaitingBatch,
    catalogue: Catalogue,
    old: DeadlineSettings,
    new: DeadlineSettings,
    *,
    retry: bool,
    now: Instant,
) -> BehindGate | None:
    app_id = one.batch.app_id
    found = []
    gate = Gate.NONE
    is_accelerated = catalogue.acceleration is not None and catalogue.acceleration.covers(one.batch.batch_id, app_id)
    for kind in sorted(catalogue.processor_types(app_id)):
        cuts = catalogue.cut_points.get((app_id, kind))
        before, after = (
            _typical(
                one,
                cuts,
                catalogue.median_safe_runtime_s(app_id),
                settings,
                retry=retry,
                is_accelerated=is_accelerated,
                now=now,
            )
            for settings in (old, new)
        )
        if before is None or after is None or before.gate is Gate.NONE:
            continue
        gate = Gate.RETRY if retry and before.gate is not Gate.LOW_TURNAROUND else before.gate
        found.append((kind, before.threshold, after.threshold))
    return BehindGate(app_id, gate, tuple(found)) if found else None


def _typical(
    one: WaitingBatch,
    cuts: CutPoints | None,
    safe_runtime_s: Seconds | None,
    settings: DeadlineSettings,
    *,
    retry: bool,
    is_accelerated: bool,
    now: Instant,
) -> Due | None:
    """The due date of an idle host of median speed that has the least percentile it is given one with."""
    safe_s = Seconds(min(safe_runtime_s or 0.0, one.delay_bound_s))
    held = reachable(settings, cuts)
    for percentile in (NEWCOMER, Percentile(held.p_retry), BEST):
        job = due_inputs(
            one.batch,
            _job_class(one),
            cuts,
            runtime_s=runtime_behind_s(safe_s, cuts, settings),
            safe_runtime_s=safe_s,
            retry=retry,
            low_turnaround=True if is_accelerated else None,
        )
        due = rule_of(settings)(Moment(now, Seconds(0.0), Seconds(0.0), percentile), job, held)
        if isinstance(due, Due):
            return due
    return None


def _job_class(one: WaitingBatch) -> JobClass:
    """What a due date depends on of a class: its delay bound."""
    return JobClass(JobClassId(0), one.batch.batch_id, Flop(1.0), Flop(1.0), 0.0, 0.0, one.delay_bound_s)


def gates_of(settings: DeadlineSettings) -> Mapping[Gate, float]:
    """The threshold of each gate.

    >>> gates_of(DeadlineSettings())[Gate.TIGHT]
    0.9
    """
    return {
        Gate.AFAP: settings.p_afap,
        Gate.LATE: settings.p_late,
        Gate.RETRY: settings.p_retry,
        Gate.TIGHT: settings.p_tight,
    }


def types_of(catalogue: Catalogue) -> Sequence[TypeOf]:
    """Every (app, processor type) with a current version, in order."""
    return [
        (app_id, kind) for app_id in sorted(catalogue.current) for kind in sorted(catalogue.processor_types(app_id))
    ]
