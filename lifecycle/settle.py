"""Settles a job: more instances, a canonical result, or the end; and how many copies a job needs. Pure.

Two steps, because comparing outputs reads files: `needs_comparison` names the instances to compare, the
caller groups their outputs (lifecycle/compare.py), `settle` decides.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping

from domain.errors import InvalidInputError
from domain.jobs import InstanceState, JobState
from domain.quick import quick_dataclass
from domain.units import InstanceId
from lifecycle.states import JOB_ERRORS, LOST, NOT_COUNTED, OUTSTANDING, RETRY_CAUSES, UNDECIDED, USABLE, Event, advance

UNREADABLE = -1  # the group of an instance whose output cannot be read
UNSENT = frozenset({InstanceState.UNSENT})


@quick_dataclass(frozen=True, slots=True)
class InstanceView:
    """One instance of a job that is being settled."""

    instance_id: InstanceId
    state: InstanceState


@quick_dataclass(frozen=True, slots=True)
class JobView:
    """A job that is being settled: its limits (domain.jobs.JobClass), where it is, its instances.

    `copies` is what adaptive replication asks for, 0 = the quorum. `max_errors` job errors end the job.
    `max_instances` counts all instances but the cancelled, which no host ever had, and the lost. `max_lost` is the
    number of lost instances at which the job fails instead of getting another one.
    """

    quorum: int
    max_errors: int
    max_instances: int
    instances: tuple[InstanceView, ...]
    copies: int = 0
    state: JobState = JobState.OPEN
    canonical_instance_id: InstanceId | None = None
    batch_aborted: bool = False
    extra: int = 0  # instances it may have beyond what it needs: copies made for the tail of its batch
    max_lost: int = 20

    @property
    def agreeing_needed(self) -> int:
        """How many results must agree: max(quorum, copies), at most max_instances."""
        return min(self.max_instances, max(self.quorum, self.copies))


@quick_dataclass(frozen=True, slots=True)
class Settlement:
    """What settling changes. `events` are steps of lifecycle/states.py, by instance id.

    `failure` says why the job fails now; empty for one that was over before. `new_instances` are to be
    made because of `new_because`; they start with `retries`, the job's instances that are over and
    unusable after the events. `hasten`: a sibling is back, so what is unsent (new ones included) is urgent.
    """

    state: JobState
    canonical_instance_id: InstanceId | None
    events: tuple[tuple[InstanceId, Event], ...] = ()
    failure: str = ""
    new_instances: int = 0
    new_because: str = ""
    retries: int = 0
    hasten: bool = False


def needs_comparison(job: JobView) -> tuple[InstanceId, ...]:
    """The instances whose outputs must be compared before the job can be settled, by id; often none.

    While the job is open: all usable ones, once there are enough for the quorum. When it is valid: the
    canonical one and those that came later.
    """
    if job.state is JobState.VALID:
        later = _ids(job, UNDECIDED)
        return tuple(sorted((_canonical(job), *later))) if later else ()
    usable = _ids(job, USABLE)
    if job.state is not JobState.OPEN or job.batch_aborted or len(usable) < job.agreeing_needed:
        return ()
    return usable


def settle(job: JobView, groups: Mapping[InstanceId, int]) -> Settlement:
    """Decide. `groups` gives each instance that `needs_comparison` names its group of equal outputs.

    Group UNREADABLE (-1) is rejected. A quorum makes the job valid, the smallest id of the largest group
    canonical; what disagrees is rejected, what is unsent cancelled. Without one, as many instances are
    made as the quorum lacks, counting the outstanding; unsent ones it no longer lacks are cancelled
    (a late result takes back its retry). The job fails when its errors reach max_errors, or when it
    would need more than max_instances, or another instance after max_lost were lost.
    Raises InvalidInputError when `groups` names other instances.
    """
    if groups.keys() != set(needs_comparison(job)):
        raise InvalidInputError("groups", f"a group for each of {list(needs_comparison(job))}", dict(groups))
    if job.state is JobState.VALID:
        return _settle_latecomers(job, groups)
    if job.state is not JobState.OPEN:
        return _ended(job, job.state)
    if job.batch_aborted:
        return _ended(job, JobState.CANCELLED)
    agreeing = _largest_group(groups)
    if len(agreeing) >= job.agreeing_needed:
        return _valid(job, groups, agreeing)
    return _settle_without_quorum(job, groups, agreeing)


def give_up(job: JobView, failure: str) -> Settlement:
    """Decide without a comparison, for one that cannot be made: nobody is blamed.

    An open job fails; a valid one keeps its canonical instance, and later results count for nothing.
    """
    if job.state is not JobState.VALID:
        return _ended(job, JobState.FAILED, failure)
    late = dict.fromkeys(_ids(job, UNDECIDED), Event.TOO_LATE)
    return _settlement(job, JobState.VALID, {**_cancelled(job), **late}, canonical=_canonical(job))


def _settle_latecomers(job: JobView, groups: Mapping[InstanceId, int]) -> Settlement:
    canonical = _canonical(job)
    events = _cancelled(job)
    for instance_id in _ids(job, UNDECIDED):
        if groups[instance_id] == UNREADABLE:
            events[instance_id] = Event.REJECTED
        elif groups[canonical] == UNREADABLE:  # its files are gone: nothing to compare with
            events[instance_id] = Event.TOO_LATE
        else:
            same = groups[instance_id] == groups[canonical]
            events[instance_id] = Event.VALIDATED if same else Event.REJECTED
    return _settlement(job, JobState.VALID, events, canonical=canonical)


def _ended(job: JobView, state: JobState, failure: str = "", rejected: Iterable[InstanceId] = ()) -> Settlement:
    """The job is over without a canonical result: nothing is sent or awaited any more."""
    events = _cancelled(job)
    events.update((instance_id, Event.TOO_LATE) for instance_id in _ids(job, UNDECIDED))
    events.update((instance_id, Event.REJECTED) for instance_id in rejected)
    return _settlement(job, state, events, failure=failure)


def _valid(job: JobView, groups: Mapping[InstanceId, int], agreeing: tuple[InstanceId, ...]) -> Settlement:
    events = _cancelled(job)
    for instance_id in groups:
        events[instance_id] = Event.VALIDATED if instance_id in agreeing else Event.REJECTED
    return _settlement(job, JobState.VALID, events, canonical=agreeing[0])


def _settle_without_quorum(
    job: JobView, groups: Mapping[InstanceId, int], agreeing: tuple[InstanceId, ...]
) -> Settlement:
    rejected = dict.fromkeys((id_ for id_, group in groups.items() if group == UNREADABLE), Event.REJECTED)
    errors = [state for state in _after(job, rejected) if state in JOB_ERRORS]
    if len(errors) >= job.max_errors:
        return _ended(job, JobState.FAILED, _too_many_errors(errors, job.max_errors), rejected)
    shortage = _shortage(job, tuple(id_ for id_ in _ids(job, USABLE) if id_ not in rejected), agreeing)
    room = job.max_instances - sum(view.state not in NOT_COUNTED for view in job.instances)
    if shortage.missing > max(0, room):  # lost instances that come back after all may take more than there is
        failure = f"no instances left: {shortage.because}, {job.max_instances} instances allowed in all"
        return _ended(job, JobState.FAILED, failure, rejected)
    lost = [view.state for view in job.instances if view.state in LOST]
    if shortage.missing > 0 and len(lost) >= job.max_lost:
        failure = f"too many instances lost: {_counted(lost)}, {job.max_lost} end the job"
        return _ended(job, JobState.FAILED, failure, rejected)
    return _still_open(job, shortage, rejected)


@quick_dataclass(frozen=True, slots=True)
class _Shortage:
    """What an open job lacks. `missing` counts instances to be made; negative: that many too many."""

    readable: tuple[InstanceId, ...]
    compared: bool
    missing: int
    because: str


def _shortage(job: JobView, readable: tuple[InstanceId, ...], agreeing: tuple[InstanceId, ...]) -> _Shortage:
    """missing = results that must agree - results in hand - outstanding instances.

    Results that were compared count as the largest group that agrees; others may yet all agree.
    """
    compared = len(readable) >= job.agreeing_needed
    in_hand = len(agreeing) if compared else len(readable)
    outstanding = len(_ids(job, OUTSTANDING))
    because = (
        f"{job.agreeing_needed} results must agree, "
        f"{in_hand} {'agree' if compared else 'usable'}, {outstanding} outstanding"
    )
    return _Shortage(readable, compared, job.agreeing_needed - in_hand - outstanding, because)


def _still_open(job: JobView, shortage: _Shortage, rejected: Mapping[InstanceId, Event]) -> Settlement:
    events = dict(rejected)
    if shortage.compared:
        reported = _ids(job, {InstanceState.REPORTED})
        events.update((id_, Event.UNDECIDED) for id_ in reported if id_ in shortage.readable)
    unsent = _ids(job, UNSENT)
    kept = max(0, len(unsent) + min(0, shortage.missing + job.extra))
    events.update((id_, Event.NOT_NEEDED) for id_ in unsent[kept:])
    new_instances = max(0, shortage.missing)
    return _settlement(
        job,
        JobState.OPEN,
        events,
        new_instances=new_instances,
        new_because=shortage.because if new_instances else "",
        hasten=bool(shortage.readable) and kept + new_instances > 0,
    )


def _settlement(
    job: JobView,
    state: JobState,
    events: Mapping[InstanceId, Event],
    *,
    canonical: InstanceId | None = None,
    failure: str = "",
    new_instances: int = 0,
    new_because: str = "",
    hasten: bool = False,
) -> Settlement:
    return Settlement(
        state,
        canonical,
        events=tuple(sorted(events.items())),
        failure=failure,
        new_instances=new_instances,
        new_because=new_because,
        retries=len([after for after in _after(job, events) if after in RETRY_CAUSES]),
        hasten=hasten,
    )


def _after(job: JobView, events: Mapping[InstanceId, Event]) -> list[InstanceState]:
    """The states of the instances once the events have happened."""
    return [
        advance(view.state, events[view.instance_id], instance_id=view.instance_id).state
        if view.instance_id in events
        else view.state
        for view in job.instances
    ]


def _largest_group(groups: Mapping[InstanceId, int]) -> tuple[InstanceId, ...]:
    """The members of the largest readable group by id; of equally large ones that with the smallest id."""
    members: dict[int, list[InstanceId]] = {}
    for instance_id in sorted(groups):
        if groups[instance_id] != UNREADABLE:
            members.setdefault(groups[instance_id], []).append(instance_id)
    largest: list[InstanceId] = []
    for group in members.values():  # in the order of their smallest ids
        largest = group if len(group) > len(largest) else largest
    return tuple(largest)


def _too_many_errors(errors: list[InstanceState], max_errors: int) -> str:
    return f"too many errors: {_counted(errors)}, {max_errors} end the job"


def _counted(states: list[InstanceState]) -> str:
    """How many there are, and how many of each.

    >>> _counted([InstanceState.TIMED_OUT, InstanceState.ABORTED, InstanceState.TIMED_OUT])
    '3 (2 timed out, 1 aborted)'
    """
    named = (f"{states.count(state)} {state.replace('_', ' ')}" for state in InstanceState if state in states)
    return f"{len(states)} ({', '.join(named)})"


def _cancelled(job: JobView) -> dict[InstanceId, Event]:
    return dict.fromkeys(_ids(job, UNSENT), Event.NOT_NEEDED)


def _ids(job: JobView, states: Collection[InstanceState]) -> tuple[InstanceId, ...]:
    return tuple(sorted([view.instance_id for view in job.instances if view.state in states]))


def _canonical(job: JobView) -> InstanceId:
    if job.canonical_instance_id is None:
        raise InvalidInputError("canonical_instance_id", "an instance id, because the job is valid", None)
    return job.canonical_instance_id


# ---- adaptive replication


def copies_for(
    consecutive_valid: int, adaptive_copies: int, *, rng: random.Random, consecutive_valid_infinite: int = 10
) -> int:
    """How many copies a job needs because this host gets an instance; 0 = leave it as it is.

    A host with more than `consecutive_valid_infinite` valid results in a row is trusted with probability
    1 - 1 / consecutive_valid, so one job in `consecutive_valid` is still checked; every
    other host's job needs `adaptive_copies`. An app with fewer than 2 adaptive copies checks nothing.
    A host with 20 valid results in a row has 1 job in 20 checked.

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
