"""Settings for due dates and gates. Pure.

Reasons for the defaults: docs/decisions/, 0012, 0036, 0047, 0049 and 0050.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.bounds import knob
from domain.units import Seconds


class DeadlineRule(StrEnum):
    MUSTER = "muster"  # scheduler/deadline/prompt.py or table.py, depending on `AfapPolicy`
    PROPOSAL = "proposal"  # the pseudocode of docs/proposal.md, implemented literally
    FIXED = "fixed"  # now + delay bound
    ACCELERATED = "accelerated"  # docs/formulas.md#batch-acceleration


class AfapPolicy(StrEnum):
    PROMPT = "prompt"  # fast hosts get early due dates, other hosts normal ones: docs/decisions/0036
    TABLE = "table"  # the rows used for other batches: scheduler/deadline/table.py


@dataclass(frozen=True, slots=True)
class DeadlineSettings:
    rule: DeadlineRule = knob(
        DeadlineRule.MUSTER,
        "rule for due dates: muster; for comparison: proposal (its first design, without slack or retry margin), fixed "
        "(always the delay bound) or accelerated (the reference server's)",
    )
    p_afap: float = knob(
        0.5,
        "minimum percentile P of a host that gets jobs of AFAP batches with an early due date, and if it is slow or "
        "busy also jobs of batches past their deadline",
        low=0,
        high=1,
    )
    p_late: float = knob(
        0.5,
        "minimum percentile P of a host that would finish shortly before the batch's completion target",
        low=0,
        high=1,
    )
    p_retry: float = knob(
        0.5, "minimum percentile P of a host for a retry or copy of an AFAP or late job", low=0, high=1
    )
    p_tight: float = knob(
        0.9,
        "minimum percentile P of a host that would finish after the batch's completion target, until it has passed",
        low=0,
        high=1,
    )
    min_slack_s: Seconds = knob(Seconds(3600.0), "minimum time between a job's estimated end and its due date", low=0)
    slack_factor: float = knob(
        2.5,
        "time that a host without results is assumed to take at worst, as a multiple of the estimated runtime",
        low=1,
        high=20,
    )
    gate_wait_fraction: float = knob(
        0.25,
        "lower a gate for a time if its jobs would wait longer than this share of the median runtime; 0 = never",
        low=0,
        high=10,
    )
    min_gate_wait_s: Seconds = knob(
        Seconds(1800.0), "lower a gate for a time only if its jobs would wait longer than this", low=60
    )
    afap: AfapPolicy = knob(
        AfapPolicy.PROMPT,
        "due dates of AFAP batches: prompt (early ones for fast hosts), or table (as for other batches)",
    )
    afap_turn_factor: float = knob(  # this and the next setting: the sweep in docs/decisions/0036
        2.0,
        "slower hosts get jobs of AFAP batches only if they finish within this multiple of a retry's usual time; "
        "likewise all hosts without a gate those of batches past their deadline",
        low=0,
        high=100,
    )
    afap_due_factor: float = knob(
        1.1,
        "early due date of an AFAP job, as a multiple of the time in which its host finishes with 90 % confidence",
        low=1,
        high=10,
    )
    first_factor: float = knob(
        4.0,
        "send a batch before others if its deadline is within this many times a retry's usual time; 0 = never",
        low=0,
        high=100,
    )
    reliability_quantile_z: float = knob(
        1.2816, "confidence of the time in which a host finishes, as a z score: 1.2816 is 90 %", low=0, high=4
    )
