"""Reserved slots and leases for big jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.apps import CPU, ProcessorType
from domain.quick import quick_dataclass
from domain.units import AppId, BatchId, HostId, Instant, Seconds


@dataclass(frozen=True, slots=True)
class Kept:
    """A slot reserved in every job array for a big batch since an instant. Ordinary jobs cannot use it.

    `sent` is the batch's counter at that time. Once one of its jobs is sent, the slot is available to the next batch.
    """

    batch_id: BatchId
    since: Instant
    sent: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """A reservation of a host for a job of a batch: `cores` processors from `start_at`, for `limit_s`.

    It expires at `expires_at`, or ends earlier at `ended_at` for the reason `because`.
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
        """Return whether the lease is valid at `now`.

        >>> lease = Lease(BatchId(1), HostId(2), 4.0, Instant(50.0), Seconds(9.0), expires_at=Instant(60.0))
        >>> lease.holds(Instant(59.0)), lease.holds(Instant(60.0))
        (True, False)
        """
        return self.ended_at is None and now < self.expires_at


@quick_dataclass(frozen=True, slots=True)
class Reserved:
    """The reservations that requests check. `leases` has each host's latest lease of the last day, ended or not."""

    kept: Mapping[BatchId, Kept] = field(default_factory=dict)
    leases: Mapping[HostId, Lease] = field(default_factory=dict)

    def lease_for(self, batch_id: BatchId, now: Instant) -> Lease | None:
        """Return the batch's valid lease; None if it has none."""
        return next((one for one in self.leases.values() if one.batch_id == batch_id and one.holds(now)), None)


NOTHING_RESERVED = Reserved()


@dataclass(frozen=True, slots=True)
class BigBatch:
    """A waiting batch that may have big jobs. Each amount is the maximum over its jobs."""

    batch_id: BatchId
    app_id: AppId
    cores: float
    memory_bytes: float
    disk_bytes: float
    sent: int


@dataclass(frozen=True, slots=True)
class LeaseStanding:
    """A valid lease with the state of its host and batch.

    `unsent` instances of the batch are waiting. `given`: a job was sent to the host after the lease was created.
    """

    lease: Lease
    unsent: int
    given: bool
    last_rpc_at: Instant
    rpc_interval_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """A lease that ends, and why. Unless the lease was used, its host gets no other lease for a day."""

    host_id: HostId
    batch_id: BatchId
    because: str
    of_use: bool
