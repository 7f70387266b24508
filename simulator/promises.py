"""Were batches over when it had been said that they would be, and how wide of it? By C(B) at half of their jobs. Pure.

C(B) is the q90 of the forecast (batch_estimator): nine of ten batches should be over by then. All of them being over
by then says nothing of how much later C(B) was, so that is told beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from domain.units import Instant
from simulator.recording import Followed


def coverage_fraction(batches: Iterable[Followed], ended_at: Instant) -> float | None:
    """The batches that were over by C(B), of those of which that is known; None where it is of none.

    A batch that was not over when the simulation ended, at `ended_at`, is late where C(B) was before; else nobody
    knows.
    """
    kept = [known for known in (_kept(batch, ended_at) for batch in batches) if known is not None]
    return sum(kept) / len(kept) if kept else None


def _kept(batch: Followed, ended_at: Instant) -> bool | None:
    if batch.promised_at is None:
        return None
    if batch.is_over:
        return max(batch.ended_at) <= batch.promised_at
    return False if batch.promised_at < ended_at else None


def promise_ratio(batches: Iterable[Followed]) -> float | None:
    """Promised over true time from half of the jobs to the last, the median of batches that are over.

    >>> from array import array
    >>> from domain.batches import QoS
    >>> batch = Followed(1, "b", QoS.AFAP, "ada", Instant(0.0), 4, ended_at=array("d", [10.0, 20.0, 30.0, 40.0]))
    >>> batch.promised_at = Instant(80.0)
    >>> promise_ratio([batch])
    3.0
    """
    found = []
    for batch in batches:
        if batch.promised_at is None or not batch.is_over:
            continue
        ends = sorted(batch.ended_at)
        half_at = ends[(batch.jobs + 1) // 2 - 1]
        if ends[-1] > half_at:
            found.append((batch.promised_at - half_at) / (ends[-1] - half_at))
    return median(found) if found else None
