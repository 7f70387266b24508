"""What is set aside for jobs that need much of a host, as requests see it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.apps import CPU, ProcessorType
from domain.quick import quick_dataclass
from domain.units import AppId, BatchId, HostId, Instant, Seconds


@dataclass(frozen=True, slots=True)
class Kept:
    """A slot of every job array kept for a big batch since some instant. Ordinary jobs cannot take it.

    `sent` is what the batch's counter was then: when one of its jobs is sent the slot is free for the next.
    """

    batch_id: BatchId
    since: Instant
    sent: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """A host's future promised to a job of a batch: `cores` processors from `start_at` for `limit_s`.

    Void from `expires_at` on, or from `ended_at`, for the reason `because`.
    """

    batch_id: BatchId
    host_id: HostId
    cores: float
    start_at: Instant
    limit_s: Seconds
    expires_at: Instant
    processor_type: ProcessorType = CPU
    made_at: Instant = Instant(0.0)
    ended_at: Instant | None = None
    because: str = ""

    def holds(self, now: Instant) -> bool:
        """Whether the host is held for the batch.

        >>> lease = Lease(BatchId(1), HostId(2), 4.0, Instant(50.0), Seconds(9.0), expires_at=Instant(60.0))
        >>> lease.holds(Instant(59.0)), lease.holds(Instant(60.0))
        (True, False)
        """
        return self.ended_at is None and now < self.expires_at


@quick_dataclass(frozen=True, slots=True)
class Reserved:
    """What requests go by. `leases` has the host's last one, over or not, of the last day."""

    kept: Mapping[BatchId, Kept] = field(default_factory=dict)
    leases: Mapping[HostId, Lease] = field(default_factory=dict)

    def lease_for(self, batch_id: BatchId, now: Instant) -> Lease | None:
        """The lease that holds a host for a batch, if there is one."""
        return next((one for one in self.leases.values() if one.batch_id == batch_id and one.holds(now)), None)


NOTHING_RESERVED = Reserved()


@dataclass(frozen=True, slots=True)
class BigBatch:
    """A waiting batch, in order, whose jobs may be big. The amounts are the most that any of its jobs asks for."""

    batch_id: BatchId
    app_id: AppId
    cores: float
    memory_bytes: float
    disk_bytes: float
    sent: int


@dataclass(frozen=True, slots=True)
class LeaseStanding:
    """A lease that is not over, and what became of its host and its batch.

    `unsent` instances of the batch wait; `given`: the host has been sent one since the lease was made.
    """

    lease: Lease
    unsent: int
    given: bool
    last_rpc_at: Instant
    rpc_interval_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """A lease that ends, and why. Unless it was of use its host is given no other for a day."""

    host_id: HostId
    batch_id: BatchId
    because: str
    of_use: bool
