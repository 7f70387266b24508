"""Which work only some hosts may take, and which every worker holds instead of one. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from domain.batches import Batch, QoS
from domain.settings import FeederSettings
from domain.units import Instant, Seconds


class Gate(StrEnum):
    """Why a host needs a percentile for this work."""

    RETRY = "retry"
    AFAP_WITHOUT_ESTIMATE = "afap_without_estimate"
    LATE = "late"  # less time is left until C(B) than a median host needs


@dataclass(frozen=True, slots=True)
class Standing:
    """How a batch's first instances are fed. `gate` None: any host may have them."""

    gate: Gate | None
    tail: bool

    @property
    def everywhere(self) -> bool:
        """Whether every worker holds them: a fast host must not miss them because it met another worker."""
        return self.gate is not None or self.tail


def standing(batch: Batch, *, now: Instant, median_r_q_s: Seconds | None, settings: FeederSettings) -> Standing:
    """How a batch is fed now. `median_r_q_s` is the median of R_q over its app's hosts; None = unknown."""
    return Standing(gate_of(batch, now=now, median_r_q_s=median_r_q_s), in_tail(batch, settings))


def gate_of(batch: Batch, *, now: Instant, median_r_q_s: Seconds | None) -> Gate | None:
    """The gate in front of a batch's first instances, None when there is none.

    Gated are AFAP batches without an estimate, and batches with C(B) - now < median R_q: then x > C for half
    of the hosts (DESIGN section 5, rows 2, 4 and 5). Without a median no batch counts as late.
    """
    if batch.qos is QoS.AFAP and batch.completion_at is None:
        return Gate.AFAP_WITHOUT_ESTIMATE
    completion_at = _completion_at(batch)
    if completion_at is None or median_r_q_s is None:
        return None
    return Gate.LATE if completion_at - now < median_r_q_s else None


def tail_size(jobs_total: int, settings: FeederSettings) -> int:
    """How many last jobs of a batch every worker holds: max(tail_fraction * jobs_total, tail_jobs).

    >>> tail_size(1000, FeederSettings()), tail_size(30, FeederSettings())
    (50, 20)
    """
    return max(math.ceil(settings.tail_fraction * jobs_total), settings.tail_jobs)


def in_tail(batch: Batch, settings: FeederSettings) -> bool:
    """Whether no more instances of the batch are unsent than its tail has jobs."""
    return batch.counts.unsent <= tail_size(batch.counts.jobs_total, settings)


def _completion_at(batch: Batch) -> Instant | None:
    match batch.qos:
        case QoS.THROUGHPUT:
            return None
        case QoS.SHORT_DEADLINE:
            return batch.deadline_at
        case QoS.LONG_DEADLINE | QoS.AFAP:
            return batch.completion_at
        case _:
            assert_never(batch.qos)
