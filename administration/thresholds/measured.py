"""What do a project's records say of its computers, in the terms of a simulation? Pure.

Where a computer has no record of something, it is taken to be like the median of those that have one; shares of lost
and failed instances are drawn towards those of all, as much as LIKE_ALL instances weigh.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from domain.apps import AppVersion
from domain.hosts import Host, HostAppVersion
from domain.insight import RecentHost
from domain.units import DAY_S, AppId, AppVersionId, Flop, Seconds
from simulator.population import MeasuredHost
from simulator.traits import Gpu

LIKE_ALL = 20.0
LEAST_STRETCH, MOST_STRETCH = 0.1, 10.0
LEAST_ON_FRACTION = 0.05
MOST_BUFFER_S = 10 * DAY_S  # the most that a client lets its user choose
USUAL_BUFFER_S = 0.6 * DAY_S
MOST_LOST_FRACTION = 0.9
LEAST_EFFICIENCY = 1e-3

Versions = Mapping[AppVersionId, AppVersion]
Sizes = Mapping[AppId, Flop]  # of an app's usual job


@dataclass(frozen=True, slots=True)
class _Usual:
    """What stands for what is not known of a computer."""

    stretch: float
    buffer_s: float
    lost_fraction: float
    failed_fraction: float


def measured_hosts(hosts: Sequence[RecentHost], versions: Versions, sizes: Sizes) -> tuple[MeasuredHost, ...]:
    """The computers as they were measured; those of no known platform are left out."""
    known = [one for one in hosts if one.host.platforms]
    counts = [_counts(one) for one in known]
    valid, failed, lost = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
    usual = _Usual(
        _median((_stretch(one, versions) for one in known), 1.0),
        _median((_buffer_s(one, versions, sizes) for one in known), USUAL_BUFFER_S),
        lost / max(1, valid + failed + lost),
        failed / max(1, valid + failed),
    )
    return tuple(_measured(one, versions, sizes, usual) for one in known)


def _measured(one: RecentHost, versions: Versions, sizes: Sizes, usual: _Usual) -> MeasuredHost:
    host = one.host
    valid, failed, lost = _counts(one)
    served = {version.platform for version in versions.values()}
    stretch = _or(_stretch(one, versions), usual.stretch)
    buffer_s = _or(_buffer_s(one, versions, sizes), usual.buffer_s)
    return MeasuredHost(
        ncpus=host.ncpus,
        flop_per_s=host.flop_per_s,
        ram_bytes=host.ram_bytes,
        disk_bytes=host.disk_free_bytes,
        platform=next((name for name in host.platforms if name in served), host.platforms[0]),
        os_name=host.os_name,
        owner=host.volunteer_id,
        stretch=stretch,
        on_fraction=on_fraction_of(host),
        buffer_s=Seconds(min(MOST_BUFFER_S, buffer_s)),
        loss_fraction=min(MOST_LOST_FRACTION, shrunk(lost, valid + failed + lost, usual.lost_fraction)),
        error_fraction=shrunk(failed, valid + failed, usual.failed_fraction),
        gpu=_gpu(one, versions, stretch),
    )


def on_fraction_of(host: Host) -> float:
    """The share of time in which it computes, as far as it can be believed."""
    return min(1.0, max(LEAST_ON_FRACTION, host.cpu_availability_fraction))


def shrunk(part: int, whole: int, usual: float) -> float:
    """A share drawn towards the usual one.

    >>> shrunk(0, 0, 0.05), shrunk(5, 80, 0.05)
    (0.05, 0.06)
    """
    return (part + LIKE_ALL * usual) / (whole + LIKE_ALL)


def _counts(one: RecentHost) -> tuple[int, int, int]:
    """Its instances that were valid, failed and timed out."""
    havs = one.havs
    return sum(h.n_valid for h in havs), sum(h.n_error for h in havs), sum(h.n_timeout for h in havs)


def _stretch(one: RecentHost, versions: Versions) -> float | None:
    """Of the CPU version with most results: what it took over what the benchmark says."""
    best = _most_used(one, versions, lambda version: version.plan_class.gpu_type is None)
    if best is None:
        return None
    hav, version = best
    cpus = min(version.plan_class.ncpus, float(one.host.ncpus))
    return min(MOST_STRETCH, max(LEAST_STRETCH, hav.speed.mean * cpus * one.host.flop_per_s))


def _buffer_s(one: RecentHost, versions: Versions, sizes: Sizes) -> float | None:
    """What its usual turnaround leaves beside running a usual job: so long work waits on it."""
    best = _most_used(one, versions, lambda version: version.app_id in sizes)
    if best is None or best[0].log_n <= 0:
        return None
    hav, version = best
    runs_s = hav.speed.mean * sizes[version.app_id] / on_fraction_of(one.host)
    return max(0.0, math.exp(hav.log_sum / hav.log_n) - runs_s)


def _gpu(one: RecentHost, versions: Versions, stretch: float) -> Gpu | None:
    """Its first kind of GPU, as fast as its jobs were."""
    if not one.host.coprocessors:
        return None
    first = one.host.coprocessors[0]
    gpu = Gpu(first.type, first.count, first.peak_flop_per_s, first.ram_bytes, first.driver_version)
    best = _most_used(one, versions, lambda version: version.plan_class.gpu_type == first.type)
    if best is None or first.peak_flop_per_s <= 0.0:
        return gpu
    hav, version = best
    plan = version.plan_class
    on_cpus = min(plan.ncpus, float(one.host.ncpus)) * one.host.flop_per_s
    efficiency = (stretch / hav.speed.mean - on_cpus) / (plan.gpu_count * first.peak_flop_per_s)
    return Gpu(
        gpu.type, gpu.count, gpu.peak_flop_per_s, gpu.ram_bytes, gpu.driver_version, max(LEAST_EFFICIENCY, efficiency)
    )


def _most_used(
    one: RecentHost, versions: Versions, is_meant: Callable[[AppVersion], bool]
) -> tuple[HostAppVersion, AppVersion] | None:
    """The record with most valid results of those whose speed is known."""
    found = [
        (hav, versions[hav.app_version_id])
        for hav in one.havs
        if hav.app_version_id in versions and hav.speed.n > 0.0 and hav.speed.mean > 0.0
    ]
    meant = [pair for pair in found if is_meant(pair[1])]
    return max(meant, key=lambda pair: (pair[0].n_valid, pair[0].app_version_id), default=None)


def _median(values: Iterable[float | None], default: float) -> float:
    known = list(_known(values))
    return float(median(known)) if known else default


def _known(values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None)


def _or(value: float | None, usual: float) -> float:
    return usual if value is None else value
