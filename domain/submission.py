"""A submitted batch that has been validated and is ready to be stored. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from domain.batches import Batch, BatchCounts, BatchState, QoS
from domain.jobs import Input
from domain.ordering import ServiceLevel
from domain.units import DAY_S, AccountId, AppId, BatchId, Flop, Instant, JobClassId, Seconds, SubmitterId

MAX_JOBS = 1_000_000  # per batch
INDEX = "{i}"  # placeholder for a job's number in its batch, counted from 0
ACTIVE_SUBMITTER_S = 30 * DAY_S  # submitters who submitted within this time count as active
LEAST_SHARES = 1e-9  # for a submitter without shares, so that its logical time advances


def fraction_of_shares(shares: float, others: float) -> float:
    """Return a submitter's fraction of all shares. `others` are the shares of the other active submitters.

    >>> fraction_of_shares(1.0, 3.0), fraction_of_shares(0.0, 0.0)
    (0.25, 1.0)
    """
    shares = max(shares, LEAST_SHARES)
    return shares / (shares + others)


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch row to be written. `charged_s` advances its submitter's logical time to `submitter_logical_at`.

    `batch_flop` is the work of the `quorum_total` instances that the quorums of its jobs need.
    """

    submitter_id: SubmitterId
    account_id: AccountId
    app_id: AppId
    name: str
    qos: QoS
    jobs_total: int
    created_at: Instant
    order_tier: int
    order_key: float
    logical_start_at: Instant
    logical_end_at: Instant
    submitter_logical_at: Instant
    charged_s: Seconds
    batch_flop: Flop
    deadline_at: Instant | None = None
    user_priority: int = 0
    state: BatchState = BatchState.ACTIVE
    queue: str = "normal"
    level: ServiceLevel = ServiceLevel.NORMAL
    unpaid: bool = False
    job_pe: float = 1.0
    hold: str | None = None
    after_ok: tuple[BatchId, ...] = ()
    after_any: tuple[BatchId, ...] = ()
    quorum_total: int | None = None

    def as_batch(self, batch_id: BatchId) -> Batch:
        """Return the batch as it would be read right after it is written, with all first instances unsent."""
        shared = {one.name: getattr(self, one.name) for one in fields(Batch) if hasattr(self, one.name)}
        return Batch(batch_id=batch_id, counts=BatchCounts(self.jobs_total, unsent=self.jobs_total), **shared)


@dataclass(frozen=True, slots=True, eq=False)
class JobTemplate:
    """The data that many jobs of a batch share, stored once: input files and a command line that contains `{i}`."""

    command_line: str
    inputs: tuple[Input, ...] | None = None

    def command_line_of(self, number: int) -> str:
        """Return the command line for job `number` of the batch.

        >>> JobTemplate("--part {i}").command_line_of(7)
        '--part 7'
        """
        return self.command_line.replace(INDEX, str(number))


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be written, with `copies` unsent instances.

    A job with a `template` uses the template's command line, with `number` filled in, and its inputs.
    """

    job_class_id: JobClassId
    command_line: str = ""
    inputs: tuple[Input, ...] | None = None  # of this job alone
    copies: int = 1
    template: JobTemplate | None = None
    number: int = 0

    def without_template(self) -> NewJob:
        """Return the same job with the template's command line and inputs copied into it."""
        if self.template is None:
            return self
        line = self.template.command_line_of(self.number)
        return NewJob(self.job_class_id, line, self.template.inputs, self.copies)


@dataclass(frozen=True, slots=True)
class SubmissionKey:
    """The idempotency key of a submission: the `owner`, its `key`, and the SHA-256 of the content (`said`)."""

    owner: str
    key: str
    said: bytes
    kept_s: Seconds = Seconds(7 * 86400.0)


@dataclass(frozen=True, slots=True)
class SubmittedBefore:
    """The stored result of an earlier submission with this key. `answer` None: committed, but the reply was lost."""

    said: bytes
    batch_id: BatchId
    answer: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class SubmitterLimits:
    """The data for placing a new batch in the order, read under the submitter's row lock."""

    logical_at: Instant
    share_fraction: float  # sum of shares of submitters active in the last 30 days, including this one
    pool_flop_per_s: float  # 0 if no host is known yet
