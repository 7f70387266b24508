"""Computes counters from rows, for comparison."""

from __future__ import annotations

from domain.batches import BatchCounts
from store.counting import Counted, change_counts


def instance_counts(instance: Counted) -> BatchCounts:
    """Return the counts of one instance: the sum over all its state changes.

    >>> instance_counts(Counted(InstanceState.FAILED, Instant(1.0), Instant(5.0), Instant(6.0))).deadlines_missed
    1
    """
    return change_counts(None, instance)
