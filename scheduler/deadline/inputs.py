"""Types of the deadline rules: host state, job, and the result (a due date with its terms, or a refusal). Pure.

All times are absolute. `start` and `queue` are the host's busy times (scheduler/busy.py), R and R_q its runtimes
(scheduler/runtime.py), D the job's delay bound, C the target completion time of the batch, T_retry the duration of a
retry and P the percentile of (host, app version):

    x = now + start + R_q        the earliest due date that the host meets with 90 % confidence
"""

from __future__ import annotations

from dataclasses import replace

from domain.batches import Batch, QoS, complete_at
from domain.due_terms import DueRow
from domain.jobs import JobClass
from domain.quick import quick_dataclass
from domain.ranking import CutPoints, Gate, Percentile, gate_in_words
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineSettings
from domain.units import Instant, Seconds


@quick_dataclass(frozen=True, slots=True)
class Moment:
    """The state of a host with one app version, as far as it affects due dates.

    `start_s` is the busy time of endangered work, `queue_s` of all work, both in seconds from now. `alone_s` is how
    long the host's work must last without another request.
    """

    now: Instant
    start_s: Seconds
    queue_s: Seconds
    percentile: Percentile
    alone_s: Seconds = Seconds(0.0)


@quick_dataclass(frozen=True, slots=True)
class DueInputs:
    """A job, as far as it affects its due date on one host and version.

    `runtime_s` is R, `safe_runtime_s` R_q, `bound_s` D, `complete_at` C, `retry_s` T_retry. `retry`: an earlier
    instance of the job ended without a usable result. `low_turnaround`: for jobs of accelerated batches, whether the
    host has a low turnaround; None for other jobs.
    """

    qos: QoS
    complete_at: Instant | None
    bound_s: Seconds
    runtime_s: Seconds
    safe_runtime_s: Seconds
    retry_s: Seconds
    retry: bool
    low_turnaround: bool | None = None


RETRY_FRACTION = 0.5  # of D: assumed T_retry until it is measured on good hosts


def retry_turnaround_s(cuts: CutPoints | None, bound_s: Seconds) -> Seconds:
    """Return T_retry, a retry's time on a good host including validation; 0.5 D until it is measured."""
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
    """Return the inputs for jobs of a class. `cuts` are the cut points of the app on this processor type."""
    bound_s = job_class.delay_bound_s
    target, retry_s = complete_at(batch, bound_s), retry_turnaround_s(cuts, bound_s)
    return DueInputs(batch.qos, target, bound_s, runtime_s, safe_runtime_s, retry_s, retry, low_turnaround)


@quick_dataclass(frozen=True, slots=True)
class Due:
    """A due date, and the terms from which it was computed.

    `row` has the sentence into which `numbers` are inserted. `threshold` is 0 if `gate` is none. `retry`: the host also
    passed the gate for retries.
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
        """Return the reason as a sentence with its terms; times are relative to now."""
        return self.row.because(self.numbers, retry=self.retry)


TOO_SLOW = "host needs {0:length} ({2:length} of {1} + {4:length} {3}), the delay bound is {5:length}"
VALUE = "{3} {4:g}"  # of the gate
BELOW_GATE = f"percentile P {{1:.3f}} is below {VALUE}, the gate of {{0}}"
WITHOUT_PERCENTILE = f"the host has no percentile P, and {VALUE} is the gate of {{0}}; {{2}}"
TOO_BUSY = "; with at most {6:length} of queued work it needs no gate, it has {5:length}"
TOO_LONG = "; a job done within {6:length} needs no gate, the host takes {5:length}"
FIGURES, FIGURES_WITHOUT = f"P {{1:.3f}}, {VALUE}", f"no P, {VALUE}"
GATED = {
    Gate.AFAP: "AFAP and late batches",
    Gate.LATE: "jobs that the host would finish shortly before their batch's completion target",
    Gate.TIGHT: "jobs that the host would finish after their batch's completion target",
    Gate.RETRY: "retries and copies of AFAP and late batches",
}


def too_slow(before: str, before_s: float, own: str, own_s: float, bound_s: float) -> Refusal:
    terms = before_s + own_s, before, before_s, own, own_s, bound_s
    return Refusal(RefusalCode.TOO_SLOW, TOO_SLOW, terms, figures="needs {0:length}, delay bound {5:length}")


def below_gate(percentile: Percentile, gate: Gate, threshold: float) -> Refusal:
    code, sentence, figures = RefusalCode.BELOW_GATE, BELOW_GATE, FIGURES
    if percentile.p is None:
        code, sentence, figures = RefusalCode.NO_RANK, WITHOUT_PERCENTILE, FIGURES_WITHOUT
    terms = GATED[gate], percentile.p, percentile.because, gate, threshold
    return Refusal(code, sentence, terms, figures=figures)


def busy_below_gate(percentile: Percentile, gate: Gate, threshold: float, queue_s: float, most_s: float) -> Refusal:
    """Return the refusal of a host that passes no gate, but would need none with at most `most_s` of queued work."""
    why = below_gate(percentile, gate, threshold)
    terms, figures = (*why.terms, queue_s, most_s), f"{why.figures}; {{5:length}} of work, at most {{6:length}}"
    return Refusal(RefusalCode.BUSY_BELOW_GATE, f"{why.sentence}{TOO_BUSY}", terms, figures=figures)


def slow_below_gate(percentile: Percentile, gate: Gate, threshold: float, takes_s: float, most_s: float) -> Refusal:
    """Return the refusal of a host that passes no gate, and would need one without other work, too."""
    why = below_gate(percentile, gate, threshold)
    return replace(why, sentence=f"{why.sentence}{TOO_LONG}", terms=(*why.terms, takes_s, most_s))


def with_setting(why: Refusal, settings: DeadlineSettings) -> Refusal:
    """Return the refusal; that of a lowered gate says from which value, the one in `settings`."""
    match why.terms:
        case (_, _, _, Gate() as gate, float() as threshold, *_) if threshold < (set_to := getattr(settings, gate)):
            value = f"{{3}} {gate_in_words(threshold, set_to)}"
            sentence, figures = why.sentence.replace(VALUE, value), why.figures.replace(VALUE, value)
            return replace(why, sentence=sentence, figures=figures)
    return why


def shown_p(percentile: Percentile) -> float:
    """Return P as used in a sentence; -1 for a newcomer."""
    return -1.0 if percentile.p is None else percentile.p
