"""Records a run by wrapping the ports to which the services write, without changing results.

It also tracks the shares of submitters while they compete, and daily processor utilization while work waits. Every
SAMPLE_S, a sample records whether work is waiting; an interval counts if unsent instances for CPUs were waiting at both
of its ends. GPUs are excluded.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from batch_estimator.ports import Forecasts
from domain.batches import QoS
from domain.dispatch import Assignment, AssignmentFate, InstanceStep, RequestWrites, TrickleFate, WriteOutcome
from domain.forecasts import ForecastAge, ForecastRecord
from domain.jobs import InstanceState, JobClass, JobState
from domain.refusals import RefusalCode, codes_where
from domain.settlement import ALL_JOBS, JobFacts, JobSettlement, JobShare
from domain.units import DAY_S, HOUR_S, BatchId, Instant, JobClassId, JobId, Seconds
from jobs.ports import OverdueWork, UnsettledJobs
from scheduler.ports import Ledger
from simulator.ports import Participant


class Shares:
    """Tracks, while jobs of two or more submitters wait, the work each one received in first dispatches and was due."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._waiting: dict[str, int] = {}  # jobs without a sent instance
        self._got: defaultdict[str, float] = defaultdict(float)
        self._due: defaultdict[str, float] = defaultdict(float)
        self._sent_flop = 0.0  # including periods with a single submitter

    def submitted(self, submitter: str, jobs: int, *, shares: float) -> None:
        self._shares[submitter] = shares
        self._waiting[submitter] = self._waiting.get(submitter, 0) + jobs

    def sent_first(self, submitter: str, flop: float) -> None:
        """Record the first dispatch of a job."""
        self._sent_flop += flop
        if len(self._waiting) > 1:
            self._got[submitter] += flop
            together = sum(self._shares[other] for other in self._waiting)
            for other in self._waiting:
                self._due[other] += flop * self._shares[other] / together
        self._waiting[submitter] -= 1
        if not self._waiting[submitter]:
            del self._waiting[submitter]

    @property
    def gap_fraction(self) -> float | None:
        """Return the fraction of contended work that another submitter should have received, None without contention.

        It is half the sum of |got - due| over the work sent while two submitters waited: 0.5 if one of two got it all.

        >>> shares = Shares()
        >>> for name in ("ada", "bob"):
        ...     shares.submitted(name, 4, shares=1.0)
        >>> for name in ("ada", "ada", "ada", "bob"):
        ...     shares.sent_first(name, 1e12)
        >>> shares.gap_fraction
        0.25
        """
        contended = sum(self._got[name] for name in sorted(self._got))
        return self._gap_flop / contended if contended > 0.0 else None

    @property
    def gap_of_all_fraction(self) -> float | None:
        """Return the same gap as a fraction of all work sent, with or without contention, to show long-term shares.

        >>> shares = Shares()
        >>> shares.submitted("ada", 6, shares=1.0)
        >>> for _ in range(4):
        ...     shares.sent_first("ada", 1e12)
        >>> shares.submitted("bob", 2, shares=1.0)
        >>> for name in ("ada", "ada", "bob", "bob"):
        ...     shares.sent_first(name, 1e12)
        >>> shares.gap_fraction, shares.gap_of_all_fraction
        (0.5, 0.125)
        """
        return self._gap_flop / self._sent_flop if self._got else None

    @property
    def _gap_flop(self) -> float:
        names = sorted(self._due.keys() | self._got.keys())
        return sum(abs(self._got[name] - self._due[name]) for name in names) / 2.0


SAMPLE_S = HOUR_S


@dataclass(frozen=True, slots=True)
class WorkSample:
    """Whether unsent instances were waiting at this instant."""

    at: Instant
    waits: bool


@dataclass(frozen=True, slots=True)
class ProcessorUse:
    """The used fraction of the project's share of running processors, None for a day without waiting work."""

    by_day: tuple[float | None, ...] = ()
    fraction: float | None = None


def processor_use(samples: Sequence[WorkSample], volunteers: Iterable[Participant], ended_at: Instant) -> ProcessorUse:
    """Return the utilization of all volunteers' CPUs. `by_day` counts from the first of `samples`."""
    if not samples or not any(sample.waits for sample in samples):
        return ProcessorUse()
    edges = np.array([*(sample.at for sample in samples), max(ended_at, samples[-1].at)])
    waits = np.array([*(sample.waits for sample in samples), samples[-1].waits])
    waiting = waits[:-1] & waits[1:]
    available_s = np.zeros(len(edges) - 1)
    used_s = np.zeros(len(edges) - 1)
    for volunteer in volunteers:
        available_until_s, used_until_s = volunteer.processor_use_s(edges)
        available_s += np.diff(available_until_s)
        used_s += np.diff(used_until_s)
    days = ((edges[:-1] - edges[0]) // DAY_S).astype(int)
    available_by_day = np.bincount(days, available_s * waiting)
    used_by_day = np.bincount(days, used_s * waiting)
    return ProcessorUse(
        tuple(_part(used, available) for used, available in zip(used_by_day, available_by_day, strict=True)),
        _part(used_by_day.sum(), available_by_day.sum()),
    )


def _part(used_s: float, available_s: float) -> float | None:
    return float(used_s / available_s) if available_s > 0.0 else None


POLICY_REFUSALS = codes_where(lambda traits: traits.by_gate_or_share)
NOT_ASKING = codes_where(lambda traits: traits.known_to_client)


def doubles() -> array[float]:
    return array("d")


@dataclass(frozen=True, slots=True)
class PublishedForecast:
    """The quantiles of a batch's end that submitters see, beginning at `made_at`."""

    made_at: Instant
    q10_at: Instant
    q50_at: Instant
    q90_at: Instant


@dataclass(slots=True, eq=False)
class Followed:
    """A batch's record since its submission. `ended_at` has one entry per ended job; `validated` of them are valid.

    `promised_at` is the C(B) published when half of its jobs had ended. `forecasts` are in order of publication; None
    means that the forecast was withdrawn. `on_cpus`: CPUs can run its jobs.
    """

    batch_id: BatchId
    name: str
    qos: QoS
    submitter: str
    submitted_at: Instant
    jobs: int
    instances: int = 0
    tight: int = 0
    validated: int = 0
    ended_at: array[float] = field(default_factory=doubles)
    promised_at: Instant | None = None
    forecasts: list[tuple[Instant, PublishedForecast | None]] = field(default_factory=list)
    on_cpus: bool = True

    @property
    def is_over(self) -> bool:
        return len(self.ended_at) >= self.jobs


@dataclass(slots=True, eq=False)
class RunRecord:
    """The record of one run. Waits are the times from submission to a job's first dispatch, by job class."""

    batches: dict[BatchId, Followed] = field(default_factory=dict)
    classes: dict[JobClassId, JobClass] = field(default_factory=dict)
    waits_s: dict[JobClassId, array[float]] = field(default_factory=dict)
    validation_delays_s: array[float] = field(default_factory=doubles)
    requests: int = 0
    asking: int = 0  # requests for work
    without_work: int = 0  # requests for work that got none
    refused_feasible: int = 0  # requests without work although a feasible job was waiting
    refusals: Counter[RefusalCode] = field(default_factory=Counter)
    shares: Shares = field(default_factory=Shares)
    sequence: list[Assignment] | None = None  # every assignment in order, if enabled
    jobs_open: int = 0
    to_settle: bool = False  # the validator has something to process
    half_done: list[Followed] = field(default_factory=list)  # half done, `promised_at` not read yet
    work_samples: list[WorkSample] = field(default_factory=list)
    all_sent_at: Instant | None = None  # when every CPU job had been sent once for the first time
    _never_sent: int = 0  # CPU jobs only
    _sent_before: set[JobId] = field(default_factory=set)

    def submitted(self, batch: Followed, classes: Sequence[JobClass], *, shares: float) -> None:
        self.batches[batch.batch_id] = batch
        self.jobs_open += batch.jobs
        self._never_sent += batch.jobs * batch.on_cpus
        self.classes.update((one.job_class_id, one) for one in classes)
        self.shares.submitted(batch.submitter, batch.jobs, shares=shares)

    def sent(self, given: Assignment) -> None:
        batch = self.batches[given.batch_id]
        batch.instances += 1
        batch.tight += given.tight
        if self.sequence is not None:
            self.sequence.append(given)
        if given.job_id in self._sent_before:
            return
        self._sent_before.add(given.job_id)
        self._never_sent -= batch.on_cpus
        if not self._never_sent and self.all_sent_at is None:
            self.all_sent_at = given.sent_at
        job_class = self.classes[given.job_class_id]
        waits_s = self.waits_s.setdefault(given.job_class_id, doubles())
        waits_s.append(given.sent_at - batch.submitted_at)
        self.shares.sent_first(batch.submitter, job_class.fpops_est_flop)

    def settled(self, job: JobFacts, settlement: JobSettlement) -> None:
        if job.state is JobState.OPEN and settlement.state is not JobState.OPEN:
            batch = self.batches[job.batch_id]
            batch.ended_at.append(settlement.settled_at)
            self.jobs_open -= 1
            batch.validated += settlement.state is JobState.VALID
            if len(batch.ended_at) == (batch.jobs + 1) // 2:
                self.half_done.append(batch)
        reported_at = {one.instance_id: one.reported_at for one in job.instances}
        for step in settlement.steps:
            at = reported_at[step.instance_id] if step.to_state is InstanceState.VALID else None
            if at is not None:
                self.validation_delays_s.append(settlement.settled_at - at)

    # ------------------------------------------------------------ as the scheduler's RequestObserver

    def request_answered(
        self,
        *,
        sent: int,
        resent: int,
        reports: int,  # noqa: ARG002  the port's parameters
        refusals: Mapping[RefusalCode, int],
        took_s: Seconds,  # noqa: ARG002
    ) -> None:
        self.requests += 1
        asking = sent > 0 or not refusals.keys() <= NOT_ASKING
        self.asking += asking
        if sent or resent or not asking:
            return
        self.without_work += 1
        self.refused_feasible += not POLICY_REFUSALS.isdisjoint(refusals)
        self.refusals.update(refusals.keys())

    def trickles_taken(self, fates: Mapping[TrickleFate, int]) -> None:
        raise RuntimeError(f"simulated clients send no trickle messages, but some were recorded ({fates})")

    def request_failed(self, status: int) -> None:
        raise RuntimeError(f"a request failed with status {status}, but a simulation has no HTTP")


class RecordedLedger:
    """Implements the scheduler's Ledger and records assignments."""

    def __init__(self, ledger: Ledger, record: RunRecord) -> None:
        self._ledger = ledger
        self._record = record
        self.read = ledger.read
        self.sent_jobs = ledger.sent_jobs
        self.job_classes = ledger.job_classes
        self.create_host = ledger.create_host
        self.keep_trickles = ledger.keep_trickles
        self.reserve_quota = ledger.reserve_quota
        self.release_quota = ledger.release_quota

    async def write(self, writes: RequestWrites) -> WriteOutcome:
        outcome = await self._ledger.write(writes)
        self._record.to_settle |= bool(writes.reports) or writes.detach
        for assignment in writes.assignments:
            self._record.to_settle |= assignment.copies > 1
            if outcome.fates.get(assignment.instance_id) is AssignmentFate.SENT:
                self._record.sent(assignment)
        return outcome


class RecordedForecasts:
    """Implements the estimator's Forecasts and records what submitters see."""

    def __init__(self, forecasts: Forecasts, record: RunRecord) -> None:
        self._forecasts = forecasts
        self._record = record
        self.ages = forecasts.ages
        self.claim = forecasts.claim
        self.standing = forecasts.standing
        self.ended = forecasts.ended
        self.scores = forecasts.scores
        self.finish = forecasts.finish
        self.accuracies = forecasts.accuracies

    async def publish(self, record: ForecastRecord, *, told: bool = True, since: ForecastAge | None = None) -> bool:
        published = await self._forecasts.publish(record, told=told, since=since)
        if published:
            shown = PublishedForecast(record.made_at, record.q10_at, record.q50_at, record.q90_at) if told else None
            self._record.batches[record.batch_id].forecasts.append((record.made_at, shown))
        return published


class RecordedOverdue:
    """Implements the sweeper's OverdueWork and records that there is something to settle."""

    def __init__(self, overdue: OverdueWork, record: RunRecord) -> None:
        self._overdue = overdue
        self._record = record
        self.overdue = overdue.overdue
        self.count_due = overdue.count_due

    async def time_out(self, steps: Sequence[InstanceStep], *, now: Instant) -> int:
        self._record.to_settle |= bool(steps)
        return await self._overdue.time_out(steps, now=now)


class RecordedUnsettled:
    """Implements the validator's UnsettledJobs and records settlements."""

    def __init__(self, unsettled: UnsettledJobs, record: RunRecord) -> None:
        self._unsettled = unsettled
        self._record = record
        self._read: dict[JobId, JobFacts] = {}
        self.begin_comparisons = unsettled.begin_comparisons

    async def unsettled(
        self, limit: int, *, now: Instant, share: JobShare = ALL_JOBS, with_content: bool = True
    ) -> Sequence[JobFacts]:
        found = await self._unsettled.unsettled(limit, now=now, share=share, with_content=with_content)
        self._read = {job.job_id: job for job in found}
        return found

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        """Settle jobs. In virtual time nothing changes them after they were read, so all are current."""
        current = await self._unsettled.settle(settlements)
        assert current == len(settlements), "a job changed while it was settled, but a simulation has one thread"
        for settlement in settlements:
            self._record.settled(self._read[settlement.job_id], settlement)
        return current
