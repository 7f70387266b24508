"""What counters must say, reckoned from rows."""

from __future__ import annotations

from domain.batches import BatchCounts
from store.counting import Counted, change_counts


def instance_counts(instance: Counted) -> BatchCounts:
    """What one instance is counted as, had it come to be as it is: the sum of all its steps.

    >>> instance_counts(Counted(InstanceState.FAILED, Instant(1.0), Instant(5.0), Instant(6.0))).deadlines_missed
    1
    """
    return change_counts(None, instance)
