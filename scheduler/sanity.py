"""Sanitizes the description that a host gives of itself: clamps every number and truncates every text. Pure.

Runtimes and due dates depend on this data, none of which can be verified.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from domain.apps import CPU, ProcessorType
from domain.dispatch import ReportedResult
from domain.hosts import Coprocessor, Host
from domain.units import DAY_S, FlopPerSecond, Instant, Seconds
from wire.messages import CoprocRequest, SchedulerRequest

LEAST_FRACTION = 0.01  # with 0, a host that reports that it is never on would have infinite runtimes
MOST_CPUS = 4096
MOST_GPUS = 64  # of one type
MOST_COPROC_TYPES = 8
LEAST_FLOP_PER_S = 1e6
MOST_FLOP_PER_S = 1e12  # per CPU
DEFAULT_FLOP_PER_S = 1e9
MOST_GPU_FLOP_PER_S = 1e16
LEAST_RAM_BYTES = 64 * 2.0**20
MOST_BYTES = 2.0**60
MOST_WANTED_S = 28 * DAY_S  # per processor instance
MOST_DELAY_S = 365 * DAY_S
MOST_SKEW_S = 36_525 * DAY_S  # of a reported clock; a century
MOST_PLATFORMS = 16
MOST_TEXT_CHARS = 255
MOST_INT = 2**31 - 1


_TEXTS = attrgetter("host_cpid", "domain_name", "os_name", "os_version", "cpu_vendor", "cpu_model", "software")


def clamped(value: float, low: float, high: float) -> float:
    """Return `value` limited to [low, high].

    >>> clamped(-3.0, 0.0, 1.0), clamped(0.5, 0.0, 1.0)
    (0.0, 0.5)
    """
    raised = value if value > low else low
    return raised if raised < high else high


def text(value: str, most_chars: int = MOST_TEXT_CHARS) -> str:
    """Return `value` in a form the database can store: no NUL, no unpaired surrogates, at most `most_chars` long."""
    if value.isascii() and "\x00" not in value:  # the usual case: nothing to clean
        return value[:most_chars]
    return value.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")[:most_chars]


def seqno(request: SchedulerRequest) -> int:
    """Return the request's serial number, 0 to 2^31 - 1."""
    return min(MOST_INT, max(0, request.rpc_seqno))


def described(host: Host, request: SchedulerRequest, *, now: Instant) -> Host:
    """Return `host` updated with the description in a request received at `now`.

    Ids, the creation time, the volunteer and the labels stay; everything else comes from the request, sanitized:
    fractions in [0.01, 1], 1 to 4096 CPUs reduced to the owner's share, 1e6 to 1e12 flop/s per CPU (1e9 if not
    measured), RAM = size * max(busy, idle) share and at least 64 MB, disk = the project's share less its usage.
    """
    info = request.host
    texts = _TEXTS(info)
    if texts != _TEXTS(host):  # stored texts are already clean
        texts = tuple(map(text, texts))
    host_cpid, domain_name, os_name, os_version, cpu_vendor, cpu_model, software = texts
    return Host(
        host_id=host.host_id,
        volunteer_id=host.volunteer_id,
        created_at=host.created_at,
        host_cpid=host_cpid,
        rpc_seqno=seqno(request),
        last_rpc_at=now,
        domain_name=domain_name,
        ncpus=usable_cpus(info.ncpus, request.max_ncpus_fraction),
        flop_per_s=speed_of(info.flop_per_s),
        ram_bytes=usable_ram_bytes(request),
        disk_free_bytes=usable_disk_bytes(request),
        on_fraction=clamped(request.on_fraction, LEAST_FRACTION, 1.0),
        active_fraction=clamped(request.active_fraction, LEAST_FRACTION, 1.0),
        gpu_active_fraction=clamped(request.gpu_active_fraction, LEAST_FRACTION, 1.0),
        platforms=host.platforms if request.platforms == host.platforms else platforms(request.platforms),
        os_name=os_name,
        os_version=os_version,
        cpu_vendor=cpu_vendor,
        cpu_model=cpu_model,
        client_version=version_number(request.client_version),
        coprocessors=coprocessors(request.coprocs),
        clock_skew_s=clock_skew_s(request.client_now, now),
        software=software,
        labels=host.labels,
    )


def clock_skew_s(client_now: Instant | None, now: Instant) -> Seconds:
    """Return how far the client's clock is ahead of the server's; 0 if it does not send its time.

    >>> clock_skew_s(Instant(900.0), Instant(1000.0)), clock_skew_s(None, Instant(1000.0))
    (-100.0, 0.0)
    """
    return Seconds(0.0 if client_now is None else clamped(client_now - now, -MOST_SKEW_S, MOST_SKEW_S))


def platforms(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the client's platforms without duplicates, in its order.

    >>> platforms(("x86_64-pc-linux-gnu", "", "i686-pc-linux-gnu", "x86_64-pc-linux-gnu"))
    ('x86_64-pc-linux-gnu', 'i686-pc-linux-gnu')
    """
    return tuple(dict.fromkeys([text(name) for name in names[:MOST_PLATFORMS] if name]))


def usable_cpus(ncpus: int, max_ncpus_fraction: float) -> int:
    """Return the number of CPUs the client may use, at least one. A share of 0 or less means no limit.

    >>> usable_cpus(8, 0.5), usable_cpus(1, 0.1), usable_cpus(10**9, 1.0), usable_cpus(4, 0.0)
    (4, 1, 4096, 4)
    """
    sane = min(MOST_CPUS, max(1, ncpus))
    share = clamped(max_ncpus_fraction, 0.0, 1.0) or 1.0
    return max(1, int(sane * share))


def speed_of(flop_per_s: float) -> FlopPerSecond:
    """Return a CPU's benchmark, limited to [1e6, 1e12]; 1e9 if there is none.

    >>> speed_of(0.0), speed_of(5e20), speed_of(3e9)
    (1000000000.0, 1000000000000.0, 3000000000.0)
    """
    if flop_per_s <= 0:
        return FlopPerSecond(DEFAULT_FLOP_PER_S)
    return FlopPerSecond(clamped(flop_per_s, LEAST_FLOP_PER_S, MOST_FLOP_PER_S))


def usable_ram_bytes(request: SchedulerRequest) -> float:
    """Return the RAM that the client may use: size * max(busy, idle) share, at least 64 MB."""
    share = max(request.ram_max_used_busy_fraction, request.ram_max_used_idle_fraction)
    return clamped(request.host.ram_bytes * clamped(share, 0.0, 1.0), LEAST_RAM_BYTES, MOST_BYTES)


def usable_disk_bytes(request: SchedulerRequest) -> float:
    """Return the disk space left for the project: its share minus its usage, or the free disk without shares."""
    share = request.disk_project_share_bytes
    if share is None:
        return clamped(request.host.disk_free_bytes, 0.0, MOST_BYTES)
    return clamped(share - max(0.0, request.disk_project_used_bytes), 0.0, MOST_BYTES)


def version_number(version: tuple[int, int, int]) -> int:
    """Return a client's version as one number.

    >>> version_number((7, 20, 5))
    72005
    """
    major, minor, release = version
    return min(99, max(0, major)) * 10_000 + min(99, max(0, minor)) * 100 + min(99, max(0, release))


def usable_coprocs(coprocs: tuple[CoprocRequest, ...]) -> tuple[CoprocRequest, ...]:
    """Return the coprocessors that can get work: usable ones with a count of at least 1, each type once."""
    if not coprocs:
        return ()
    by_type: dict[str, CoprocRequest] = {}
    for coproc in coprocs:
        name = text(coproc.type, 64)
        if coproc.usable and coproc.count > 0 and name and name != CPU:
            is_sane = name == coproc.type and coproc.count <= MOST_GPUS
            by_type.setdefault(
                name, coproc if is_sane else replace(coproc, type=name, count=min(MOST_GPUS, coproc.count))
            )
    return tuple(by_type.values())[:MOST_COPROC_TYPES]


def coprocessors(coprocs: tuple[CoprocRequest, ...]) -> tuple[Coprocessor, ...]:
    """Return the host's GPUs, one entry per type."""
    if not coprocs:
        return ()
    return tuple(
        Coprocessor(
            ProcessorType(coproc.type),
            coproc.count,
            FlopPerSecond(clamped(coproc.peak_flop_per_s, 0.0, MOST_GPU_FLOP_PER_S)),
            ram_bytes=clamped(coproc.ram_bytes, 0.0, MOST_BYTES),
            driver_version=min(MOST_INT, max(0, coproc.driver_version)),
        )
        for coproc in usable_coprocs(coprocs)
    )


def wanted_s(req_s: float, instances: int) -> Seconds:
    """Return the requested instance-seconds of work, 0 to 28 days for each of the host's instances.

    >>> wanted_s(-5.0, 2), wanted_s(360.0, 2), wanted_s(1e12, 2)
    (0.0, 360.0, 4838400.0)
    """
    return Seconds(clamped(req_s, 0.0, MOST_WANTED_S * instances))


def delay_s(estimated_delay_s: float) -> Seconds:
    """Return the seconds until an instance is free of endangered work, 0 to a year; clients send -1 for "unknown"."""
    return Seconds(clamped(estimated_delay_s, 0.0, MOST_DELAY_S))


def run_times(result: ReportedResult, *, turnaround_s: float, ncpus: int) -> tuple[Seconds, Seconds]:
    """Return sanitized (elapsed, CPU) seconds of a result: elapsed in [0, turnaround], CPU in [0, elapsed * ncpus].

    >>> run_times(ReportedResult("pi_1_1_1", 5, 0, Seconds(9e9), Seconds(-1.0)), turnaround_s=600.0, ncpus=2)
    (600.0, 0.0)
    """
    elapsed = clamped(result.elapsed_s, 0.0, max(0.0, turnaround_s))
    return Seconds(elapsed), Seconds(clamped(result.cpu_s, 0.0, elapsed * ncpus))
