"""When copies of a batch's last jobs are made, from the settings of lifecycle/tail.py. Pure."""

from __future__ import annotations

import math

from batch_estimator.snapshot import Tail
from domain.batches import QoS
from domain.settings import FeederSettings, LifecycleSettings


def tail_of(qos: QoS, jobs: int, *, feeder: FeederSettings, lifecycle: LifecycleSettings) -> Tail | None:
    """The tail of a batch of so many jobs; None where copies are off.

    >>> tail_of(QoS.THROUGHPUT, 1000, feeder=FeederSettings(), lifecycle=LifecycleSettings(tail_fraction=0.1))
    Tail(open_jobs=100, unsent=None, late_factor=1.0)
    """
    if lifecycle.tail_overhead_fraction <= 0.0 or lifecycle.tail_late_factor <= 0.0:
        return None
    return Tail(
        open_jobs=max(math.ceil(lifecycle.tail_fraction * jobs), feeder.tail_jobs),
        unsent=lifecycle.tail_unsent_fraction * jobs if qos is QoS.AFAP else None,
        late_factor=lifecycle.tail_late_factor,
    )
