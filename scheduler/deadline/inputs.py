"""A host at a moment, a job for it, and the answer: the due date with its terms, or the refusal. Pure.

Everything is an absolute instant. With start and queue the host's busy time (scheduler/busy.py), R and R_q its runtimes
(scheduler/runtime.py), D the job's delay bound, C the time at which the batch should be complete, T_retry the time a
retry takes and P the percentile of (host, app version):

    x = now + start + R_q        the earliest due date the host can be trusted to keep
"""

from __future__ import annotations

from domain.batches import Batch, QoS, complete_at
from domain.due_terms import DueRow
from domain.jobs import JobClass
from domain.quick import quick_dataclass
from domain.ranking import CutPoints, Gate, Percentile
from domain.refusals import Refusal, RefusalCode
from domain.units import Instant, Seconds


@quick_dataclass(frozen=True, slots=True)
class Moment:
    """One host at one moment with one version, as a due date depends on it.

    `start_s` is the busy time of endangered work, `queue_s` of all work, both in seconds from now. For `alone_s` the
    host is to have work without asking for more.
    """

    now: Instant
    start_s: Seconds
    queue_s: Seconds
    percentile: Percentile
    alone_s: Seconds = Seconds(0.0)


@quick_dataclass(frozen=True, slots=True)
class DueInputs:
    """A job as its due date depends on it, for one host and version.

    `runtime_s` is R, `safe_runtime_s` R_q, `bound_s` D, `complete_at` C, `retry_s` T_retry. `retry`: an earlier
    instance of the job ended without a usable result. `low_turnaround` says of a job of an accelerated batch whether
    the host has a low turnaround; None for any other job.
    """

    qos: QoS
    complete_at: Instant | None
    bound_s: Seconds
    runtime_s: Seconds
    safe_runtime_s: Seconds
    retry_s: Seconds
    retry: bool
    low_turnaround: bool | None = None


RETRY_FRACTION = 0.5  # of D: T_retry while no good hosts have been measured


def retry_turnaround_s(cuts: CutPoints | None, bound_s: Seconds) -> Seconds:
    """T_retry: what a retry on a good host takes, validation included; 0.5 D until that is measured."""
    if cuts is None or cuts.retry_turnaround_s is None:
        return Seconds(RETRY_FRACTION * bound_s)
    return cuts.retry_turnaround_s


def due_inputs(
    batch: Batch,
    job_class: JobClass,
    cuts: CutPoints | None,
    *,
    runtime_s: Seconds,
    safe_runtime_s: Seconds,
    retry: bool,
    low_turnaround: bool | None = None,
) -> DueInputs:
    """The inputs for jobs of a class; `cuts` are those of the app on the processor type."""
    bound_s = job_class.delay_bound_s
    target, retry_s = complete_at(batch, bound_s), retry_turnaround_s(cuts, bound_s)
    return DueInputs(batch.qos, target, bound_s, runtime_s, safe_runtime_s, retry_s, retry, low_turnaround)


@quick_dataclass(frozen=True, slots=True)
class Due:
    """What the host is told, and the terms it follows from.

    `row` has the sentence that `numbers` are put into. `threshold` is 0 where `gate` is none. `retry`: the
    host also had to reach the percentile of a retry.
    """

    due_at: Instant
    tight: bool
    gate: Gate
    threshold: float
    row: DueRow
    numbers: tuple[float, ...]
    retry: bool = False

    @property
    def because(self) -> str:
        """The reason in one sentence, with its terms; times from now."""
        return self.row.because(self.numbers, retry=self.retry)


TOO_SLOW = "host needs {0:length} ({1} {2:length}, {3} {4:length}), job allows {5:length}"
BELOW_GATE = "{0}: percentile {1:.3f} ({2}), {3} asks for {4:g}"
WITHOUT_PERCENTILE = "{0}: percentile none ({2}), {3} asks for {4:g}"


def too_slow(before: str, before_s: float, own: str, own_s: float, bound_s: float) -> Refusal:
    return Refusal(RefusalCode.TOO_SLOW, TOO_SLOW, (before_s + own_s, before, before_s, own, own_s, bound_s))


def below_gate(percentile: Percentile, gate: Gate, threshold: float, where: str) -> Refusal:
    sentence = WITHOUT_PERCENTILE if percentile.p is None else BELOW_GATE
    return Refusal(RefusalCode.BELOW_GATE, sentence, (where, percentile.p, percentile.because, gate, threshold))


def shown_p(percentile: Percentile) -> float:
    """P as a number in a sentence: -1 for a newcomer."""
    return -1.0 if percentile.p is None else percentile.p
