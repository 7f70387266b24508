"""The terms of a due date: what it followed from at dispatch, stored with the instance. Sentences are made on reading.

A due date can so be taken apart long after the host has changed. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from domain.formatting import told
from domain.quick import quick_dataclass
from domain.ranking import Gate
from domain.settings import DeadlineRule
from domain.units import Seconds


class DueRow(StrEnum):
    """What decided a due date: a row of a deadline rule, by the name it is stored under, with its sentence.

    `number` is the row's in docs/formulas.md, with which its sentence begins; 0: its rule has none. A row whose numbers
    change gets a new name, because stored terms are read with today's sentences.
    """

    number: int
    sentence: str

    def __new__(cls, name: str, sentence: str) -> Self:
        row = str.__new__(cls, name)
        row._value_, row.sentence = name, sentence
        row.number = int(sentence.removeprefix("row ").partition(":")[0]) if sentence.startswith("row ") else 0
        return row

    PROMPT_2_NO_ESTIMATE = (
        "prompt_2_no_estimate",
        "row 2: no estimate yet, P {0:.3f} >= {1:g}, done for sure {2:length} from now; due in {3:length}",
    )
    PROMPT_2 = (
        "prompt_2",
        "row 2: a good host, P {0:.3f} >= {1:g}, done for sure {2:length} from now; due in {3:length}",
    )
    PROMPT_3 = (
        "prompt_3",
        "row 3: done in its turn {0:length} from now, within {1:g} times the {2:length} of a retry; due in {3:length}",
    )
    TABLE_1 = (
        "table_1",
        "row 1: throughput, all work done {0:length} from now, due at the delay bound of {1:length}",
    )
    TABLE_2 = (
        "table_2",
        "row 2: no estimate yet, P {0:.3f} >= {1:g}, due when this host is done for sure, {2:length} from now",
    )
    TABLE_3 = (
        "table_3",
        (
            "row 3: done for sure {0:length} from now; the batch is to be complete in {1:length}, a retry takes "
            "{2:length}; due in {3:length}"
        ),
    )
    TABLE_4 = (
        "table_4",
        (
            "row 4: done for sure {0:length} from now, too late for a retry before completion in {1:length}, "
            "P {2:.3f} >= {3:g}; due in {4:length}"
        ),
    )
    TABLE_5 = (
        "table_5",
        "row 5: completion in {0:length} comes first, P {1:.3f} >= {2:g}, due when done for sure, {3:length} from now",
    )
    PROPOSAL_AFAP = (
        "proposal_afap",
        "proposal: no estimate yet, P {0:.3f} > {1:g}, due at busy time + runtime, {2:length} from now",
    )
    PROPOSAL_EARLY = (
        "proposal_early",
        "proposal: done {0:length} from now, before completion in {1:length}: due at completion",
    )
    PROPOSAL_LATE = (
        "proposal_late",
        "proposal: completion in {0:length} comes first, P {1:.3f} > {2:g}, due when done, {3:length} from now",
    )
    FIXED = ("fixed", "fixed: all work done {0:length} from now, due at the delay bound of {1:length}")
    ACCELERATED = (
        "accelerated",
        (
            "accelerated: for a low-turnaround host; all work done {0:length} from now, due at the delay bound of "
            "{1:length}"
        ),
    )

    def because(self, numbers: tuple[float, ...], *, retry: bool) -> str:
        """Return the reason in one sentence; `numbers` in the order of its places, times in seconds from dispatch.

        >>> DueRow.FIXED.because((3600.0, 86400.0), retry=True)
        'fixed: all work done 1 h from now, due at the delay bound of 1 d; a retry'
        """
        return told(self.sentence, *numbers) + ("; a retry" if retry else "")


@quick_dataclass(frozen=True, slots=True)
class DueTerms:
    """What a due date followed from at dispatch: the rule, the row that decided, and its inputs in whole seconds.

    `numbers` are those of the row's sentence. `retry`: the row also asked for the percentile of a retry. `start_s` and
    `queue_s` are the host's busy times, with what the same reply gave it before. `runtime_s` is R, `safe_runtime_s`
    R_q, `p` the host's percentile, `threshold` that of the gate (0 where no percentile was asked for).
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
        """The reason in one sentence."""
        return self.row.because(self.numbers, retry=self.retry)

    @property
    def in_full(self) -> str:
        """The reason with its terms, also those that did not decide."""
        p = "none" if self.p is None else f"{self.p:.3f}"
        return (
            f"{self.because} [{self.rule}: start {self.start_s:.0f} s, queue {self.queue_s:.0f} s, "
            f"R {self.runtime_s:.0f} s, R_q {self.safe_runtime_s:.0f} s, P {p}, gate {self.gate} {self.threshold:g}]"
        )
