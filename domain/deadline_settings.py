"""Settings of due dates and of the gates before them. Pure.

Each says which decision or sweep its default is from (docs/decisions/).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.knobs import knob
from domain.units import Seconds


class DeadlineRule(StrEnum):
    MUSTER = "muster"  # DESIGN's table
    PROPOSAL = "proposal"  # the proposal's pseudo-code word for word
    FIXED = "fixed"  # now + delay bound
    ACCELERATED = "accelerated"  # the reference server's batch acceleration (POLICY 2.7)


class AfapPolicy(StrEnum):
    PROMPT = "prompt"  # good hosts hurry, others in their turn: docs/decisions/0036
    TABLE = "table"  # DESIGN's rows 2 to 5


@dataclass(frozen=True, slots=True)
class DeadlineSettings:
    rule: DeadlineRule = knob(DeadlineRule.MUSTER, "how due dates are chosen: muster, proposal, fixed or accelerated")
    p_afap: float = knob(0.5, "least percentile to hurry for AFAP batches (decisions 36, 50)", low=0, high=1)
    p_late: float = knob(0.5, "least percentile when the host would finish close to C(B) (decision 50)", low=0, high=1)
    p_retry: float = knob(0.5, "least percentile for a retry (decision 50)", low=0, high=1)
    p_tight: float = knob(0.9, "least percentile when the host would finish after C(B) (decision 50)", low=0, high=1)
    min_slack_s: Seconds = knob(
        Seconds(3600.0), "least slack of a computed due date over the runtime (decision 50)", low=0
    )
    slack_factor: float = knob(2.5, "R_q over R until a host and its app have data (decision 50)", low=1, high=20)
    gate_wait_fraction: float = knob(
        0.25,
        "a gate is lowered when its jobs would wait longer than this share of R; 0 = never (decision 12)",
        low=0,
        high=10,
    )
    min_gate_wait_s: Seconds = knob(Seconds(1800.0), "least wait from which a gate is lowered (decision 12)", low=60)
    afap: AfapPolicy = knob(AfapPolicy.PROMPT, "due dates of AFAP batches: prompt, or as in the table of all batches")
    afap_turn_factor: float = knob(  # this and the next: the sweep in docs/decisions/0036
        2.0,
        "other hosts get AFAP jobs in their turn, if done within so many times a retry's time (decision 36)",
        low=0,
        high=100,
    )
    afap_due_factor: float = knob(
        1.1,
        "AFAP jobs are due so many times as far ahead as their host is done for sure (decision 50)",
        low=1,
        high=10,
    )
    first_factor: float = knob(
        4.0,
        "batches with a deadline go first, as AFAP ones, with less than so many times a retry's time left; 0 = never "
        "(decision 49)",
        low=0,
        high=100,
    )
    reliability_quantile_z: float = knob(
        1.2816, "z of the turnaround quantile R_q stands for (decision 47)", low=0, high=4
    )
