"""The terms of a due date, stored with the instance when it is sent and formatted as sentences when read. Pure.

They explain a due date even after the host has changed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from domain.formatting import in_words, told
from domain.quick import quick_dataclass
from domain.ranking import Gate
from domain.settings import DeadlineRule
from domain.units import Seconds


class DueRow(StrEnum):
    """A row of a deadline rule: the name that is stored with due dates set by this row, and its sentence.

    `number` is the row's number in docs/formulas.md, as in its name; 0 if the rule has no rows. If the meaning
    of a row's numbers changes, the row needs a new name, because stored terms are shown with the current sentences.
    """

    number: int
    sentence: str

    def __new__(cls, name: str, sentence: str) -> Self:
        row = str.__new__(cls, name)
        row._value_, row.sentence = name, sentence
        digits = name.split("_")[1:2]  # of the row in the table of due dates, 0 for rules without a table
        row.number = int(digits[0]) if digits and digits[0].isdecimal() else 0
        return row

    PROMPT_2_NO_ESTIMATE = (
        "prompt_2_no_estimate",
        "good host, P {0:.3f} >= {1:g}, finishes with 90 % confidence in {2:length}; due in {3:length}",
    )
    PROMPT_2 = (
        "prompt_2",
        "good host, P {0:.3f} >= {1:g}, finishes with 90 % confidence in {2:length}; due in {3:length}",
    )
    PROMPT_3 = (
        "prompt_3",
        "host finishes in queue order in {0:length}, within {1:g} retry turnarounds of {2:length}; due in {3:length}",
    )
    TABLE_1 = (
        "table_1",
        "throughput, host's queue is empty in {0:length}; due at the delay bound of {1:length}",
    )
    TABLE_2 = (
        "table_2",
        (
            "no completion target yet, P {0:.3f} >= {1:g}; due when the host finishes with 90 % confidence, "
            "in {2:length}"
        ),
    )
    TABLE_3 = (
        "table_3",
        (
            "host finishes with 90 % confidence in {0:length}; completion target in {1:length}, retry turnaround "
            "{2:length}; due in {3:length}"
        ),
    )
    TABLE_4 = (
        "table_4",
        (
            "host finishes with 90 % confidence in {0:length}, too late for a retry before the completion target in "
            "{1:length}, P {2:.3f} >= {3:g}; due in {4:length}"
        ),
    )
    TABLE_5 = (
        "table_5",
        (
            "host finishes after the batch's target, which is {0:when}, P {1:.3f} >= {2:g}; due when the host finishes "
            "with 90 % confidence, in {3:length}"
        ),
    )
    PROPOSAL_AFAP = (
        "proposal_afap",
        "proposal: no completion target yet, P {0:.3f} > {1:g}; due at busy time + runtime, in {2:length}",
    )
    PROPOSAL_EARLY = (
        "proposal_early",
        "proposal: host finishes in {0:length}, before the completion target in {1:length}; due at the target",
    )
    PROPOSAL_LATE = (
        "proposal_late",
        "proposal: host finishes after the batch's target, which is {0:when}, P {1:.3f} > {2:g}; due in {3:length}",
    )
    FIXED = ("fixed", "fixed: host's queue is empty in {0:length}; due at the delay bound of {1:length}")
    ACCELERATED = (
        "accelerated",
        ("accelerated: low-turnaround host, its queue is empty in {0:length}; due at the delay bound of {1:length}"),
    )

    def because(self, numbers: tuple[float, ...], *, retry: bool) -> str:
        """Return the reason in one sentence. `numbers` are in the order of the placeholders; times are in seconds after
        dispatch.

        >>> DueRow.FIXED.because((3600.0, 86400.0), retry=True)
        "fixed: host's queue is empty in 1 h; due at the delay bound of 1 d; a retry or copy"
        """
        return told(self.sentence, *numbers) + ("; a retry or copy" if retry else "")


@quick_dataclass(frozen=True, slots=True)
class DueTerms:
    """The inputs of a due date at dispatch: the rule, the row that applied, and times in whole seconds.

    `numbers` fill the row's sentence. `retry`: the row also required the percentile of a retry or copy. `start_s` and
    `queue_s` are the host's busy times, including jobs assigned earlier in the same reply. `runtime_s` is R,
    `safe_runtime_s` is R_q, `p` the host's percentile and `threshold` the gate's threshold (0 if no percentile was
    required).
    """

    rule: DeadlineRule
    row: DueRow
    numbers: tuple[float, ...]
    retry: bool
    start_s: Seconds
    queue_s: Seconds
    runtime_s: Seconds
    safe_runtime_s: Seconds
    p: float | None
    gate: Gate
    threshold: float

    @property
    def because(self) -> str:
        """Return the reason in one sentence."""
        return self.row.because(self.numbers, retry=self.retry)

    @property
    def in_full(self) -> str:
        """Return the reason with all terms, including terms that had no effect on the result."""
        p = "none" if self.p is None else f"{self.p:.3f}"
        times = (("start", self.start_s), ("queue", self.queue_s), ("R", self.runtime_s), ("R_q", self.safe_runtime_s))
        terms = ", ".join(f"{name} {in_words(length_s)}" for name, length_s in times)
        return f"{self.because} [{self.rule}: {terms}, P {p}, gate {self.gate} {self.threshold:g}]"
