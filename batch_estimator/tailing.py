"""When copies of a batch's last jobs are made, from the settings of lifecycle/tail.py. Pure."""

from __future__ import annotations

import math

from batch_estimator.snapshot import Tail
from domain.batches import BatchCounts, QoS
from domain.settings import FeederSettings, LifecycleSettings
from domain.settlement import NOTHING_BESIDE, WorkBeside
from lifecycle.tail import copies_left, tail_fraction


def tail_of(
    qos: QoS,
    counts: BatchCounts,
    *,
    wanted: int,
    feeder: FeederSettings,
    lifecycle: LifecycleSettings,
    beside: WorkBeside = NOTHING_BESIDE,
) -> Tail | None:
    """The tail of a batch that wants so many instances; None where copies are off.

    >>> tail = tail_of(
    ...     QoS.THROUGHPUT, BatchCounts(jobs_total=1000, sent=1050), wanted=1000,
    ...     feeder=FeederSettings(), lifecycle=LifecycleSettings(tail_overhead_fraction=0.25),
    ... )
    >>> tail.open_jobs, tail.unsent, tail.copies_left
    (50, None, 200)
    """
    if lifecycle.tail_overhead_fraction <= 0.0:
        return None
    afap, throughput = qos is QoS.AFAP, qos is QoS.THROUGHPUT
    if throughput and lifecycle.throughput_late_factor <= 0.0:
        return None
    fraction = tail_fraction(feeder, lifecycle) if afap else feeder.tail_fraction
    jobs = counts.jobs_total
    return Tail(
        open_jobs=max(math.ceil(fraction * jobs), feeder.tail_jobs),
        unsent=lifecycle.afap_unsent_fraction * jobs if afap else None,
        first_factor=lifecycle.throughput_late_factor if throughput else 0.0,
        late_factor=lifecycle.tail_late_factor,
        copies_left=copies_left(counts, wanted=wanted, settings=lifecycle, beside=beside),
    )
