"""Which work only some hosts may take, and which every worker holds instead of one. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from domain.batches import Batch, QoS, complete_at
from domain.ranking import Gate
from domain.settings import FeederSettings
from domain.units import Instant, Seconds


@dataclass(frozen=True, slots=True)
class Standing:
    """How a batch's first instances are fed. `gate` NONE: any host may have them."""

    gate: Gate
    tail: bool

    @property
    def everywhere(self) -> bool:
        """Whether every worker holds them: a fast host must not miss them because it met another worker."""
        return self.gate is not Gate.NONE or self.tail


def standing(
    batch: Batch,
    *,
    now: Instant,
    median_r_q_s: Seconds | None,
    settings: FeederSettings,
    is_accelerated: bool = False,
) -> Standing:
    """How a batch is fed now. `median_r_q_s` is the median of R_q over its app's hosts; None = unknown.

    `is_accelerated`: its jobs are for low-turnaround hosts alone, by the rule `accelerated`.
    """
    gate = Gate.LOW_TURNAROUND if is_accelerated else gate_of(batch, now=now, median_r_q_s=median_r_q_s)
    return Standing(gate, in_tail(batch, settings))


def gate_of(batch: Batch, *, now: Instant, median_r_q_s: Seconds | None) -> Gate:
    """The gate in front of a batch's first instances.

    Gated are AFAP batches without an estimate, and batches with C - now < median R_q: then x > C for half
    of the hosts (DESIGN section 5, rows 2, 4 and 5). Without a median no batch counts as late.
    """
    completion_at = complete_at(batch, None)
    if completion_at is None:
        return Gate.AFAP if batch.qos is QoS.AFAP else Gate.NONE
    if median_r_q_s is None:
        return Gate.NONE
    return Gate.LATE if completion_at - now < median_r_q_s else Gate.NONE


def tail_size(jobs_total: int, settings: FeederSettings) -> int:
    """How many last jobs of a batch every worker holds: max(tail_fraction * jobs_total, tail_jobs).

    >>> tail_size(1000, FeederSettings()), tail_size(30, FeederSettings())
    (50, 20)
    """
    return max(math.ceil(settings.tail_fraction * jobs_total), settings.tail_jobs)


def in_tail(batch: Batch, settings: FeederSettings) -> bool:
    """Whether no more instances of the batch are unsent than its tail has jobs."""
    return batch.counts.unsent <= tail_size(batch.counts.jobs_total, settings)
