"""Defines the jobs chosen for a request, and why other jobs were refused. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from domain.apps import App, AppVersion, ProcessorType
from domain.batches import Batch, QoS
from domain.dispatch import Assignment
from domain.due_terms import DueTerms
from domain.jobs import JobClass, Ready
from domain.quick import quick_dataclass
from domain.refusals import Refusal, RefusalCode, spanned
from domain.reservations import Lease
from domain.settings import DeadlineRule
from domain.units import AppId, BatchId, FlopPerSecond, JobClassId, Seconds
from lifecycle.settle import copies_for
from lifecycle.tail import in_tail
from lifecycle.turnaround import timeout_at
from scheduler.context import SchedulingContext
from scheduler.evaluation import Evaluation
from scheduler.feasibility import hr_class_of
from scheduler.ports import SlotGroup


@quick_dataclass(frozen=True, slots=True)
class Chosen:
    """A job chosen for the host: what to write, and the data for the reply.

    `slot` is returned to the array if the assignment is not committed. The client estimates the runtime as fpops_est
    divided by `flop_per_s`. `hurry`: the result is needed as soon as the job ends.
    """

    assignment: Assignment
    slot: Ready
    batch: Batch
    job_class: JobClass
    version: AppVersion
    flop_per_s: FlopPerSecond
    hurry: bool = False


@quick_dataclass(frozen=True, slots=True)
class Refused:
    """A refusal, and what was refused. Fields that do not apply are None.

    It applies to the whole request, an app on a processor type, or a job class of a batch.
    """

    refusal: Refusal
    processor_type: ProcessorType | None = None
    app_id: AppId | None = None
    batch_id: BatchId | None = None
    job_class_id: JobClassId | None = None


# A group from which the host got no more on one processor type, and why. Most are only counted.
NotGiven = tuple[SlotGroup, ProcessorType, Refusal]


@quick_dataclass(frozen=True, slots=True)
class Choice:
    """The decision about one request. `examined` counts the groups evaluated.

    `refused_at_large` are refusals of the whole request, a processor type or an app; `not_given` are refusals of
    groups. `lease` is the lease created with this choice.
    """

    chosen: tuple[Chosen, ...]
    refused_at_large: tuple[Refused, ...]
    examined: int
    not_given: tuple[NotGiven, ...] = ()
    lease: Lease | None = None

    @property
    def refused(self) -> tuple[Refused, ...]:
        """Return all refusals, the most general first."""
        return (*self.refused_at_large, *map(_spelled_out, self.not_given))

    def reasons(self, apps: Mapping[AppId, App]) -> Mapping[RefusalCode, tuple[int, str]]:
        """Return, for each code, the count and one sentence (`spanned`). That of groups names the first one's app."""
        at_large: list[tuple[AppId | None, Refusal]] = [(None, one.refusal) for one in self.refused_at_large]
        by_code: dict[RefusalCode, list[tuple[AppId | None, Refusal]]] = {}
        for one in (*at_large, *((group.batch.app_id, refusal) for group, _, refusal in self.not_given)):
            by_code.setdefault(one[1].code, []).append(one)
        return {code: (len(found), _of_first_app(found, apps)) for code, found in by_code.items()}

    def counts(self) -> dict[RefusalCode, int]:
        """Return the count per code, in order of first occurrence."""
        return _counted(self._refusals())

    def _refusals(self) -> list[Refusal]:
        return [one.refusal for one in self.refused_at_large] + [refusal for _, _, refusal in self.not_given]


def _of_first_app(found: Sequence[tuple[AppId | None, Refusal]], apps: Mapping[AppId, App]) -> str:
    first = found[0][0]
    why = spanned([refusal for app_id, refusal in found if app_id == first])
    return f"{apps[first].name}: {why}" if first is not None and first in apps else why


def _counted(refusals: Iterable[Refusal]) -> dict[RefusalCode, int]:
    counts: dict[RefusalCode, int] = {}
    for refusal in refusals:
        counts[refusal.code] = counts.get(refusal.code, 0) + 1
    return counts


def refused_by_all(refused: Mapping[tuple[int, ProcessorType], Refusal], kinds: int) -> Iterator[tuple[int, Refusal]]:
    """Yield the groups that were refused for all `kinds` processor types, with the last reason.

    >>> why = Refusal(RefusalCode.MEMORY, "too little")
    >>> [place for place, _ in refused_by_all({(7, "cpu"): why, (8, "cpu"): why, (7, "gpu"): why}, 2)]
    [7]
    """
    met: dict[int, int] = {}  # number of refusals seen per group
    for (place, _), why in refused.items():
        if kinds > 1:
            met[place] = met.get(place, 0) + 1
        if kinds <= 1 or met[place] == kinds:
            yield place, why


def not_refused_by_app(
    refused: Mapping[tuple[int, ProcessorType], Refusal],
    groups: Sequence[SlotGroup],
    refused_apps: Mapping[tuple[AppId, ProcessorType], Refusal],
) -> tuple[NotGiven, ...]:
    """Return the refusals of groups whose app was not refused as a whole."""
    return tuple(
        [
            (groups[place], kind, why)
            for (place, kind), why in refused.items()
            if not refused_apps or (groups[place].batch.app_id, kind) not in refused_apps
        ]
    )


def _spelled_out(one: NotGiven) -> Refused:
    group, kind, refusal = one
    return Refused(refusal, kind, group.batch.app_id, group.batch.batch_id, group.job_class.job_class_id)


def chosen_of(
    context: SchedulingContext,
    group: SlotGroup,
    slot: Ready,
    evaluation: Evaluation,
    *,
    rng: Callable[[], random.Random],
) -> Chosen:
    """Assign a slot's job as evaluated for its class; `rng` is called only if a draw is needed."""
    due, batch, job_class, host = evaluation.due, group.batch, group.job_class, context.host
    version, settings = evaluation.usable.version, context.catalogue.settings
    assignment = Assignment(
        instance_id=slot.instance_id,
        job_id=slot.job_id,
        batch_id=batch.batch_id,
        job_class_id=job_class.job_class_id,
        app_version_id=version.app_version_id,
        host_id=host.host_id,
        volunteer_id=context.volunteer.volunteer_id,
        sent_at=context.now,
        due_at=due.due_at,
        timeout_at=timeout_at(context.now, due.due_at, settings.lifecycle),
        est_runtime_s=evaluation.runtime_s,
        tight=due.tight,
        due_terms=_due_terms(evaluation, settings.deadline.rule),
        hr_class=hr_class_of(host, job_class.hr_type),
        copies=_copies(context, group, evaluation, rng),
        gated=evaluation.gated,
    )
    hurry = batch.qos is QoS.AFAP or due.tight or evaluation.gated or in_tail(batch, settings.feeder)
    return Chosen(assignment, slot, batch, job_class, version, evaluation.usable.speed.flop_per_s, hurry)


def _due_terms(evaluation: Evaluation, rule: DeadlineRule) -> DueTerms:
    due, moment = evaluation.due, evaluation.moment
    p = moment.percentile.p
    return DueTerms(
        rule,
        due.row,
        due.numbers,
        due.retry,
        Seconds(round(moment.start_s)),
        Seconds(round(moment.queue_s)),
        Seconds(round(evaluation.runtime_s)),
        Seconds(round(evaluation.safe_runtime_s)),
        None if p is None else round(p, 3),
        due.gate,
        due.threshold,
    )


def _copies(
    context: SchedulingContext, group: SlotGroup, evaluation: Evaluation, rng: Callable[[], random.Random]
) -> int:
    """Return how many copies verify this host's result, if the app uses adaptive replication."""
    app = context.catalogue.apps[group.batch.app_id]
    if app.adaptive_copies == 0 or group.job_class.quorum != 1:
        return 0
    hav = context.havs.get(evaluation.usable.version.app_version_id)
    return copies_for(
        hav.consecutive_valid if hav is not None else 0,
        app.adaptive_copies,
        rng=rng(),
        consecutive_valid_infinite=context.catalogue.settings.ranking.consecutive_valid_infinite,
    )
