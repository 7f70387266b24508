"""A batch as it is submitted, checked and ready to be stored. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.batches import BatchState, QoS
from domain.jobs import Input
from domain.ordering import ServiceLevel
from domain.units import DAY_S, AccountId, AppId, BatchId, Flop, Instant, JobClassId, Seconds, SubmitterId

MAX_JOBS = 1_000_000  # of one batch
INDEX = "{i}"  # stands for a job's number in its batch, from 0
ACTIVE_SUBMITTER_S = 30 * DAY_S  # a submitter who submitted within this has a part in the shares
LEAST_SHARES = 1e-9  # of a submitter without shares: its logical time still moves


def fraction_of_shares(shares: float, others: float) -> float:
    """A submitter's fraction of all shares; `others` are those of the other active submitters.

    >>> fraction_of_shares(1.0, 3.0), fraction_of_shares(0.0, 0.0)
    (0.25, 1.0)
    """
    shares = max(shares, LEAST_SHARES)
    return shares / (shares + others)


@dataclass(frozen=True, slots=True)
class NewBatch:
    """The batch row to be written. `charged_s` advances its submitter's logical time to `submitter_logical_at`."""

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


@dataclass(frozen=True, slots=True, eq=False)
class JobTemplate:
    """What many jobs of a batch have in common, stored once: a command line with `{i}` in it, and input files."""

    command_line: str
    inputs: tuple[Input, ...] | None = None

    def command_line_of(self, number: int) -> str:
        """The command line of the job with that number in its batch.

        >>> JobTemplate("--part {i}").command_line_of(7)
        '--part 7'
        """
        return self.command_line.replace(INDEX, str(number))


@dataclass(frozen=True, slots=True)
class NewJob:
    """One job to be written; `copies` unsent instances are made with it.

    With a `template` that has its command line and its inputs, and the job's `number` is put into them.
    """

    job_class_id: JobClassId
    command_line: str = ""
    inputs: tuple[Input, ...] | None = None  # of this job alone
    copies: int = 1
    template: JobTemplate | None = None
    number: int = 0

    def without_template(self) -> NewJob:
        """The same job with a command line and inputs of its own."""
        if self.template is None:
            return self
        line = self.template.command_line_of(self.number)
        return NewJob(self.job_class_id, line, self.template.inputs, self.copies)


@dataclass(frozen=True, slots=True)
class SubmissionKey:
    """What a submission is known by when it is sent again: `owner`'s own `key`, and the SHA-256 of what it `said`."""

    owner: str
    key: str
    said: bytes
    kept_s: Seconds = Seconds(7 * 86400.0)


@dataclass(frozen=True, slots=True)
class SubmittedBefore:
    """What became of a submission with that key; `answer` None: it was committed and then not told."""

    said: bytes
    batch_id: BatchId
    answer: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class SubmitterLimits:
    """What the order of a new batch depends on, read under the submitter's row lock."""

    logical_at: Instant
    share_fraction: float  # of the shares of submitters active in the last 30 days, this one included
    pool_flop_per_s: float  # 0 when no host is known yet
