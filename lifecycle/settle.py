"""Settles a job: creates instances, chooses the canonical result, ends the job, computes the copies it needs. Pure.

There are two steps, because comparing outputs reads files: `needs_comparison` returns the instances to compare, the
caller groups their outputs (lifecycle/compare.py), and `settle` decides.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from domain.credit import credit_of
from domain.dispatch import InstanceStep
from domain.errors import InvalidInputError
from domain.havs import HavEvent, HavEventKind
from domain.jobs import InstanceState, JobState
from domain.quick import quick_dataclass
from domain.settlement import InstanceFacts, JobFacts, JobSettlement
from domain.units import Flop, InstanceId, Instant, Seconds
from lifecycle.states import (
    JOB_ERRORS,
    LOST,
    NOT_COUNTED,
    OUTSTANDING,
    RETRY_CAUSES,
    UNDECIDED,
    USABLE,
    Event,
    advance,
    host_record,
)
from lifecycle.turnaround import LEAST_S, returned_sample, yardstick_s

UNREADABLE = -1  # the group of an instance with unreadable output
UNSENT = frozenset({InstanceState.UNSENT})
NO_REASONS: Mapping[InstanceId, str] = MappingProxyType({})


def needs_comparison(job: JobFacts) -> tuple[InstanceId, ...]:
    """Return the instances to compare before the job can be settled, in order of id. Often there are none.

    For an open job, these are all usable instances once there are enough for the quorum; for a valid job, the canonical
    instance and later results.
    """
    if job.state is JobState.VALID:
        later = _ids(job, UNDECIDED)
        return tuple(sorted((_canonical(job), *later))) if later else ()
    usable = _ids(job, USABLE)
    if job.state is not JobState.OPEN or job.batch_aborted or len(usable) < job.agreeing_needed:
        return ()
    return usable


def settle(
    job: JobFacts,
    groups: Mapping[InstanceId, int],
    *,
    now: Instant,
    max_lost: int,
    because: Mapping[InstanceId, str] = NO_REASONS,
) -> JobSettlement:
    """Settle the job. `groups` has the group of equal outputs of each instance returned by `needs_comparison`.

    Instances in group UNREADABLE (-1) are rejected, with the reasons in `because`. A quorum makes the job valid: the
    smallest id of the largest group becomes canonical, results that disagree are rejected, and unsent instances are
    cancelled. Without a quorum, missing instances are created, counting outstanding ones; superfluous unsent instances
    are cancelled (a late result makes its retry superfluous). The job fails when its errors reach max_errors, when it
    would need more than max_instances, or when it needs another instance after max_lost (lifecycle.max_lost_instances)
    were lost. Instances before a retry of the job count towards none of these limits. Raises InvalidInputError if
    `groups` has other instances.
    """
    if groups.keys() != set(needs_comparison(job)):
        raise InvalidInputError("groups", f"a group for each of {list(needs_comparison(job))}", dict(groups))
    settling = _Settling(job, groups, now, max_lost, because)
    if job.state is JobState.VALID:
        return settling.latecomers()
    if job.state is not JobState.OPEN:
        return settling.ended(job.state)
    if job.batch_aborted:
        return settling.ended(JobState.CANCELLED)
    agreeing = _largest_group(groups)
    if len(agreeing) >= job.agreeing_needed:
        return settling.valid(agreeing)
    return settling.without_quorum(agreeing)


def give_up(job: JobFacts, failure: str, *, now: Instant) -> JobSettlement:
    """Settle a job whose outputs cannot be compared, without counting this against hosts.

    An open job fails; a valid job keeps its canonical instance and ignores later results.
    """
    settling = _Settling(job, {}, now, 0, NO_REASONS)
    return settling.uncompared() if job.state is JobState.VALID else settling.ended(JobState.FAILED, failure)


class _Settling:
    """One job and the groups of its outputs. Each method settles the job in one way."""

    def __init__(
        self,
        job: JobFacts,
        groups: Mapping[InstanceId, int],
        now: Instant,
        max_lost: int,
        because: Mapping[InstanceId, str],
    ) -> None:
        self._job = job
        self._groups = groups
        self._now = now
        self._max_lost = max_lost
        self._because = because
        self._cancelled = dict.fromkeys(_ids(job, UNSENT), Event.NOT_NEEDED)

    def latecomers(self) -> JobSettlement:
        groups, canonical = self._groups, _canonical(self._job)
        events = self._cancelled
        for instance_id in _ids(self._job, UNDECIDED):
            if groups[instance_id] == UNREADABLE:
                events[instance_id] = Event.REJECTED
            elif groups[canonical] == UNREADABLE:  # the canonical files were deleted: nothing to compare with
                events[instance_id] = Event.TOO_LATE
            else:
                same = groups[instance_id] == groups[canonical]
                events[instance_id] = Event.VALIDATED if same else Event.REJECTED
        return self._settled(JobState.VALID, events, canonical=canonical)

    def uncompared(self) -> JobSettlement:
        late = dict.fromkeys(_ids(self._job, UNDECIDED), Event.TOO_LATE)
        return self._settled(JobState.VALID, {**self._cancelled, **late}, canonical=_canonical(self._job))

    def ended(self, state: JobState, failure: str = "", rejected: Iterable[InstanceId] = ()) -> JobSettlement:
        """Settle a job that has ended without a canonical result: no further instances are sent or expected."""
        late = dict.fromkeys(_ids(self._job, UNDECIDED), Event.TOO_LATE)
        events = {**self._cancelled, **late, **dict.fromkeys(rejected, Event.REJECTED)}
        return self._settled(state, events, failure=failure)

    def valid(self, agreeing: tuple[InstanceId, ...]) -> JobSettlement:
        verdicts = {id_: Event.VALIDATED if id_ in agreeing else Event.REJECTED for id_ in self._groups}
        return self._settled(JobState.VALID, {**self._cancelled, **verdicts}, canonical=agreeing[0])

    def without_quorum(self, agreeing: tuple[InstanceId, ...]) -> JobSettlement:
        job = self._job
        rejected = dict.fromkeys((id_ for id_, group in self._groups.items() if group == UNREADABLE), Event.REJECTED)
        counted = [one for one in job.instances if one.instance_id > job.retried_after]
        errors = [one.state for one in counted if one.state in JOB_ERRORS]
        errors += [InstanceState.INVALID] * len(rejected)
        if len(errors) >= job.job_class.max_errors:
            failure = f"too many errors: {_counted(errors)}; limit {job.job_class.max_errors}"
            return self.ended(JobState.FAILED, failure, rejected)
        shortage = _shortage(job, tuple(id_ for id_ in _ids(job, USABLE) if id_ not in rejected), agreeing)
        room = job.max_instances - sum(one.state not in NOT_COUNTED for one in counted)
        if shortage.missing > max(0, room):  # lost instances that are returned late may exceed the limit
            failure = f"no instances left: {shortage.because}; limit {job.max_instances} instances"
            return self.ended(JobState.FAILED, failure, rejected)
        lost = [one.state for one in counted if one.state in LOST]
        if shortage.missing > 0 and len(lost) >= self._max_lost:
            failure = f"too many instances lost: {_counted(lost)}; limit {self._max_lost}"
            return self.ended(JobState.FAILED, failure, rejected)
        return self._still_open(shortage, rejected)

    def _still_open(self, shortage: _Shortage, rejected: Mapping[InstanceId, Event]) -> JobSettlement:
        job, events = self._job, dict(rejected)
        if shortage.compared:
            reported = _ids(job, {InstanceState.REPORTED})
            events.update((id_, Event.UNDECIDED) for id_ in reported if id_ in shortage.readable)
        unsent = _ids(job, UNSENT)
        kept = max(0, len(unsent) + min(0, shortage.missing + job.tail_copies))
        events.update((id_, Event.NOT_NEEDED) for id_ in unsent[kept:])
        new_instances = max(0, shortage.missing)
        hasten = bool(shortage.readable) and kept + new_instances > 0
        needed = job.tail_copies > 0 and kept > 0 and shortage.missing >= 0
        return self._settled(JobState.OPEN, events, new_instances=new_instances, hasten=hasten, copies_needed=needed)

    def _settled(
        self,
        state: JobState,
        events: Mapping[InstanceId, Event],
        *,
        canonical: InstanceId | None = None,
        failure: str = "",
        new_instances: int = 0,
        hasten: bool = False,
        copies_needed: bool = False,
    ) -> JobSettlement:
        job, steps = self._job, self._steps(events)
        after = [one.state for one in job.instances if one.instance_id not in events]
        after += [step.to_state for step in steps]
        return JobSettlement(
            job.job_id,
            job.serial,
            state,
            self._now,
            canonical_instance_id=canonical,
            failure=failure,
            steps=steps,
            new_instances=new_instances,
            retries=len([one for one in after if one in RETRY_CAUSES]),
            hasten=hasten,
            copies_needed=copies_needed,
        )

    def _steps(self, events: Mapping[InstanceId, Event]) -> tuple[InstanceStep, ...]:
        """Return the steps in order of instance id, with the events for the hosts' statistics."""
        found = sorted([one for one in self._job.instances if one.instance_id in events], key=_id_of)
        return tuple([self._step(one, events[one.instance_id]) for one in found])

    def _step(self, instance: InstanceFacts, event: Event) -> InstanceStep:
        step = advance(instance.state, event, instance_id=instance.instance_id)
        kind = host_record(step.instructions)
        return InstanceStep(
            instance.instance_id,
            instance.state,
            step.state,
            hav_event=None
            if kind is None
            else _hav_event(instance, kind, self._job.job_class.fpops_est_flop, self._now),
            reason=self._because.get(instance.instance_id, "") if event is Event.REJECTED else "",
            credit=credit_of(self._job.job_class.fpops_est_flop) if event is Event.VALIDATED else None,
        )


@quick_dataclass(frozen=True, slots=True)
class _Shortage:
    """The number of `missing` instances of an open job; negative for a surplus."""

    readable: tuple[InstanceId, ...]
    compared: bool
    missing: int
    because: str


def _shortage(job: JobFacts, readable: tuple[InstanceId, ...], agreeing: tuple[InstanceId, ...]) -> _Shortage:
    """Return missing = results that must agree - usable results - outstanding instances.

    Of compared results, only the largest agreeing group counts; results not compared yet count in full.
    """
    compared = len(readable) >= job.agreeing_needed
    in_hand = len(agreeing) if compared else len(readable)
    outstanding = len(_ids(job, OUTSTANDING))
    because = (
        f"{job.agreeing_needed} results must agree, "
        f"{in_hand} {'agree' if compared else 'usable'}, {outstanding} outstanding"
    )
    return _Shortage(readable, compared, job.agreeing_needed - in_hand - outstanding, because)


def _largest_group(groups: Mapping[InstanceId, int]) -> tuple[InstanceId, ...]:
    """Return the largest readable group. Of equally large groups, the one with the smallest instance id wins."""
    members: dict[int, list[InstanceId]] = {}
    for instance_id in sorted(groups):
        if groups[instance_id] != UNREADABLE:
            members.setdefault(groups[instance_id], []).append(instance_id)
    largest: list[InstanceId] = []
    for group in members.values():  # in order of their smallest ids
        largest = group if len(group) > len(largest) else largest
    return tuple(largest)


def _counted(states: list[InstanceState]) -> str:
    """Format the total number of instances and the number in each state.

    >>> _counted([InstanceState.TIMED_OUT, InstanceState.ABORTED, InstanceState.TIMED_OUT])
    '3 (2 timed out, 1 aborted)'
    """
    named = (f"{states.count(state)} {state.replace('_', ' ')}" for state in InstanceState if state in states)
    return f"{len(states)} ({', '.join(named)})"


def _ids(job: JobFacts, states: Collection[InstanceState]) -> tuple[InstanceId, ...]:
    return tuple(sorted([one.instance_id for one in job.instances if one.state in states]))


def _id_of(instance: InstanceFacts) -> InstanceId:
    return instance.instance_id


def _canonical(job: JobFacts) -> InstanceId:
    if job.canonical_instance_id is None:
        raise InvalidInputError("canonical_instance_id", "an instance id, because the job is valid", None)
    return job.canonical_instance_id


# ---- events for the host's statistics


def _hav_event(instance: InstanceFacts, kind: HavEventKind, fpops_est_flop: Flop, now: Instant) -> HavEvent | None:
    """Return the event for the host's statistics. A valid result removes the sample of an earlier timeout."""
    if instance.host_id is None or instance.app_version_id is None:
        return None
    late, ratio, ln_turnaround, speed = False, None, None, None
    if kind is HavEventKind.VALID and instance.sent_at is not None and instance.reported_at is not None:
        turnaround_s = max(LEAST_S, instance.reported_at - instance.sent_at)
        late = instance.due_at is not None and instance.reported_at > instance.due_at
        ratio, ln_turnaround = _sample(instance, turnaround_s), math.log(turnaround_s)
        speed = speed_s_per_flop(instance.elapsed_s, turnaround_s, fpops_est_flop)
    return HavEvent(
        instance.host_id,
        instance.app_version_id,
        kind,
        now,
        instance.tight,
        ratio,
        instance.turnaround_sample,
        ln_turnaround,
        speed,
        None if instance.turnaround_sample is None else instance.timeout_at,
        late,
    )


def _sample(instance: InstanceFacts, turnaround_s: float) -> float | None:
    runtime_s, usual_s = instance.est_runtime_s, instance.median_turnaround_s
    if runtime_s is None:
        return None
    by_s = yardstick_s(tight=instance.tight, est_runtime_s=runtime_s, median_turnaround_s=usual_s)
    return returned_sample(turnaround_s, yardstick_s=by_s)


def speed_s_per_flop(elapsed_s: Seconds | None, turnaround_s: float, fpops_est_flop: Flop) -> float | None:
    """Return elapsed seconds per estimated flop, None if no elapsed time was reported.

    The elapsed time is capped at the turnaround, because clients can report any value.

    >>> speed_s_per_flop(Seconds(5000.0), 3600.0, Flop(3.6e12))
    1e-09
    """
    if elapsed_s is None or elapsed_s <= 0.0:
        return None
    return min(elapsed_s, turnaround_s) / fpops_est_flop


# ---- adaptive replication


def copies_for(
    consecutive_valid: int, adaptive_copies: int, *, rng: random.Random, consecutive_valid_infinite: int = 10
) -> int:
    """Return how many copies a job needs if one of its instances is sent to this host; 0 = unchanged.

    A host with more than `consecutive_valid_infinite` consecutive valid results is trusted with probability 1 - 1 /
    consecutive_valid, so that one in `consecutive_valid` of its jobs is checked. Jobs on other hosts need
    `adaptive_copies`. For apps with fewer than 2 adaptive copies, no job is checked. A host with 20 consecutive valid
    results has 1 in 20 jobs checked:

    >>> copies_for(3, 2, rng=random.Random(0)), copies_for(3, 0, rng=random.Random(0))
    (2, 0)
    >>> rng = random.Random(7)
    >>> sum(copies_for(20, 2, rng=rng) > 0 for _ in range(100))  # about 5
    4
    """
    if adaptive_copies < 2:
        return 0
    trusted = consecutive_valid > consecutive_valid_infinite and rng.random() >= 1.0 / consecutive_valid
    return 0 if trusted else adaptive_copies
