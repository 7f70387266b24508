"""A submitted batch, checked and ready to be stored. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.batches import BatchState, QoS
from domain.jobs import Input
from domain.ordering import ServiceLevel
from domain.units import DAY_S, AccountId, AppId, BatchId, Flop, Instant, JobClassId, Seconds, SubmitterId

MAX_JOBS = 1_000_000  # of one batch
INDEX = "{i}"  # placeholder for a job's number in its batch, from 0
ACTIVE_SUBMITTER_S = 30 * DAY_S  # submitters who submitted within this time count as active
LEAST_SHARES = 1e-9  # of a submitter without shares: its logical time still advances


def fraction_of_shares(shares: float, others: float) -> float:
    """Return a submitter's fraction of all shares; `others` are those of the other active submitters.

    >>> fraction_of_shares(1.0, 3.0), fraction_of_shares(0.0, 0.0)
    (0.25, 1.0)
    """
    shares = max(shares, LEAST_SHARES)
    return shares / (shares + others)


@dataclass(frozen=True, slots=True)
class NewBatch:
    """The batch row to be written. `charged_s` moves its submitter's logical time to `submitter_logical_at`."""

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


@dataclass(frozen=True, slots=True, eq=False)
class JobTemplate:
    """Common data of many jobs of a batch, stored once: a command line with `{i}` in it, and input files."""

    command_line: str
    inputs: tuple[Input, ...] | None = None

    def command_line_of(self, number: int) -> str:
        """Return the command line of the job with that number in its batch.

        >>> JobTemplate("--part {i}").command_line_of(7)
        '--part 7'
        """
        return self.command_line.replace(INDEX, str(number))


@dataclass(frozen=True, slots=True)
class NewJob:
    """One job to be written, with `copies` unsent instances.

    A job with a `template` uses its command line and inputs, with the job's `number` filled in.
    """

    job_class_id: JobClassId
    command_line: str = ""
    inputs: tuple[Input, ...] | None = None  # of this job alone
    copies: int = 1
    template: JobTemplate | None = None
    number: int = 0

    def without_template(self) -> NewJob:
        """Return the same job with its own command line and inputs."""
        if self.template is None:
            return self
        line = self.template.command_line_of(self.number)
        return NewJob(self.job_class_id, line, self.template.inputs, self.copies)


@dataclass(frozen=True, slots=True)
class SubmissionKey:
    """The idempotency key of a submission: the `owner`'s `key`, and the SHA-256 of the content (`said`)."""

    owner: str
    key: str
    said: bytes
    kept_s: Seconds = Seconds(7 * 86400.0)


@dataclass(frozen=True, slots=True)
class SubmittedBefore:
    """The result of an earlier submission with that key; `answer` None: it was committed but the reply was lost."""

    said: bytes
    batch_id: BatchId
    answer: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class SubmitterLimits:
    """Data for ordering a new batch, read under the submitter's row lock."""

    logical_at: Instant
    share_fraction: float  # sum of shares of submitters active in the last 30 days, this one included
    pool_flop_per_s: float  # 0 if no host is known yet
