"""Everything the decision about one request depends on, as one value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from domain.apps import ProcessorType
from domain.catalogue import Catalogue
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceInProgress
from domain.quick import quick_dataclass
from domain.refusals import Refusal
from domain.units import AppVersionId, FlopPerSecond, Instant, Seconds
from domain.volunteers import Volunteer


@quick_dataclass(frozen=True, slots=True)
class Want:
    """The processors of one type in a host, and how much work it asks for them.

    `req_s` is in instance-seconds: 0 means no work wanted, 1 at least one job. `req_instances` instances
    are idle now. `estimated_delay_s` is when the first instance is free of endangered jobs.
    `usable` False: the device was declared, but the client found no driver for it.
    """

    processor_type: ProcessorType
    count: int
    req_s: Seconds
    req_instances: float = 0.0
    estimated_delay_s: Seconds = Seconds(0.0)
    peak_flop_per_s: FlopPerSecond = FlopPerSecond(0.0)
    usable: bool = True


@quick_dataclass(frozen=True, slots=True)
class HeldElsewhere:
    """An unfinished job in the client's queue, of whatever project, as the client tells it.

    `remaining_s` is computing time, without the time in which the host is off.
    """

    name: str
    report_deadline: Instant
    remaining_s: Seconds
    ncpus: float = 1.0
    gpu_type: ProcessorType | None = None
    gpu_count: float = 0.0


@quick_dataclass(frozen=True, slots=True)
class Asking:
    """Who asks for what, at which moment, and what is known of it.

    `wants` has the GPU types first and the CPU last; a type that is not in it is not wanted.
    `in_progress` is None while the client does not send its whole queue. `resent` are those of `held` that the
    client lost and this reply sends again: they are not in its own list, and start from the beginning.
    `ram_bytes` and `disk_bytes` are what this project may use at most. `seed` makes the request's draws
    repeatable; it is logged. `alone_s` is how long the host is to have work without asking for more: what its owner
    wants stored at least, or as long as it did not call, if that is more. `most_jobs` is what its record and the quotas
    it shares allow in this reply, None without such a limit; `quota` is why it is no more. `network` is where it
    asks from.
    """

    volunteer: Volunteer
    host: Host
    now: Instant
    catalogue: Catalogue
    wants: tuple[Want, ...]
    ram_bytes: float
    disk_bytes: float
    seed: int
    havs: Mapping[AppVersionId, HostAppVersion] = field(default_factory=dict)
    held: tuple[InstanceInProgress, ...] = ()
    resent: tuple[InstanceInProgress, ...] = ()
    in_progress: tuple[HeldElsewhere, ...] | None = None
    sticky_files: frozenset[str] = frozenset()
    alone_s: Seconds = Seconds(0.0)
    most_jobs: int | None = None
    quota: Refusal | None = None
    network: str = ""
