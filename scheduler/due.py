"""A host at a moment, and what it is told of a job: the due date with its terms, or why there is none. Pure."""

from __future__ import annotations

from domain.formatting import told
from domain.quick import quick_dataclass
from domain.ranking import Gate, Percentile
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
class Due:
    """What the host is told, and the terms it follows from.

    `row` is the row of the table (0: a rule without one). `threshold` is 0 where `gate` is none.
    `sentence` with `numbers` put in is `because`.
    """

    due_at: Instant
    tight: bool
    gate: Gate
    threshold: float
    row: int
    sentence: str
    numbers: tuple[float, ...]

    @property
    def because(self) -> str:
        """The reason in one sentence, with its terms; times from now."""
        return told(self.sentence, *self.numbers)


TOO_SLOW = "host needs {0:length} ({1} {2:length}, {3} {4:length}), job allows {5:length}"
BELOW_GATE = "{0}: percentile {1:.3f} ({2}), {3} asks for {4:g}"
WITHOUT_PERCENTILE = "{0}: percentile none ({2}), {3} asks for {4:g}"


def too_slow(before: str, before_s: float, own: str, own_s: float, bound_s: float) -> Refusal:
    return Refusal(RefusalCode.TOO_SLOW, TOO_SLOW, (before_s + own_s, before, before_s, own, own_s, bound_s))


def below_gate(percentile: Percentile, gate: Gate, threshold: float, where: str) -> Refusal:
    sentence = WITHOUT_PERCENTILE if percentile.p is None else BELOW_GATE
    return Refusal(RefusalCode.BELOW_GATE, sentence, (where, percentile.p, percentile.because, gate, threshold))
