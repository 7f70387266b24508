"""What was chosen for a request, and why the rest was not. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from domain.apps import AppVersion, ProcessorType
from domain.batches import Batch
from domain.dispatch import Assignment
from domain.due_terms import DueTerms
from domain.jobs import JobClass, Ready
from domain.quick import quick_dataclass
from domain.refusals import Refusal, RefusalCode
from domain.reservations import Lease
from domain.settings import DeadlineRule
from domain.units import AppId, BatchId, FlopPerSecond, JobClassId, Seconds
from lifecycle.settle import copies_for
from lifecycle.turnaround import timeout_at
from scheduler.context import SchedulingContext
from scheduler.evaluation import Evaluation
from scheduler.feasibility import hr_class_of
from scheduler.ports import SlotGroup


@quick_dataclass(frozen=True, slots=True)
class Chosen:
    """One job for the host: what to write, and what the reply needs to describe it.

    `slot` is to be given back to the array when the assignment is not committed.
    `flop_per_s` is the speed the client is told: its estimate is fpops_est over it.
    """

    assignment: Assignment
    slot: Ready
    batch: Batch
    job_class: JobClass
    version: AppVersion
    flop_per_s: FlopPerSecond


@quick_dataclass(frozen=True, slots=True)
class Refused:
    """Why something was not given. Fields that do not apply are None.

    About the whole request, an app on a processor type, or a class of jobs of a batch.
    """

    refusal: Refusal
    processor_type: ProcessorType | None = None
    app_id: AppId | None = None
    batch_id: BatchId | None = None
    job_class_id: JobClassId | None = None


# A group that the host was given nothing more of on one processor type, and why. Most are only counted.
NotGiven = tuple[SlotGroup, ProcessorType, Refusal]


@quick_dataclass(frozen=True, slots=True)
class Choice:
    """The decision about one request. `examined` counts the groups that were looked at.

    `refused_at_large` are refusals of the whole request, of a processor type or an app; `not_given` those of groups.
    `lease` is the promise of the host's future that was made with it.
    """

    chosen: tuple[Chosen, ...]
    refused_at_large: tuple[Refused, ...]
    examined: int
    not_given: tuple[NotGiven, ...] = ()
    lease: Lease | None = None

    @property
    def refused(self) -> tuple[Refused, ...]:
        """Every refusal, the most general first."""
        return (*self.refused_at_large, *map(_spelled_out, self.not_given))

    def reasons(self) -> Mapping[RefusalCode, tuple[int, str]]:
        """Per code: how often it was met and its first sentence, for the message to the volunteer."""
        refusals = self._refusals()
        firsts = {refusal.code: refusal for refusal in reversed(refusals)}
        return {code: (count, firsts[code].detail) for code, count in _counted(refusals).items()}

    def counts(self) -> dict[RefusalCode, int]:
        """Per code, how often it was met, in the order they were met first."""
        return _counted(self._refusals())

    def _refusals(self) -> list[Refusal]:
        return [one.refusal for one in self.refused_at_large] + [refusal for _, _, refusal in self.not_given]


def _counted(refusals: Iterable[Refusal]) -> dict[RefusalCode, int]:
    counts: dict[RefusalCode, int] = {}
    for refusal in refusals:
        counts[refusal.code] = counts.get(refusal.code, 0) + 1
    return counts


def refused_by_all(refused: Mapping[tuple[int, ProcessorType], Refusal], kinds: int) -> Iterator[tuple[int, Refusal]]:
    """Places that each of so many types of processors was refused, with the last reason.

    >>> why = Refusal(RefusalCode.MEMORY, "too little")
    >>> [place for place, _ in refused_by_all({(7, "cpu"): why, (8, "cpu"): why, (7, "gpu"): why}, 2)]
    [7]
    """
    met: dict[int, int] = {}  # how many refusals of each place were passed
    for (place, _), why in refused.items():
        if kinds > 1:
            met[place] = met.get(place, 0) + 1
        if kinds <= 1 or met[place] == kinds:
            yield place, why


def not_told_by_app(
    refused: Mapping[tuple[int, ProcessorType], Refusal],
    groups: Sequence[SlotGroup],
    told: Mapping[tuple[AppId, ProcessorType], Refusal],
) -> tuple[NotGiven, ...]:
    """The refusals of groups whose app as a whole was not refused."""
    return tuple(
        [
            (groups[place], kind, why)
            for (place, kind), why in refused.items()
            if not told or (groups[place].batch.app_id, kind) not in told
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
    """The slot's job for the host, as the evaluation of its class says; `rng` is called only to draw."""
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
    return Chosen(assignment, slot, batch, job_class, version, evaluation.usable.speed.flop_per_s)


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
    """How many copies check this host's result, where the app replicates by trust."""
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
