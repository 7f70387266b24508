"""Builds a simulation scenario from the project: its hosts as recently measured, and its work, waiting or in progress.

A host without results gets the median of the measured hosts. Shares of lost and failed instances are shrunk towards the
overall share, with the weight of LIKE_ALL instances. A sample of the hosts gets a proportional share of the jobs. The
scheduler starts with the hosts' statistics and the rankings of the project. docs/operating.md lists the assumptions.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from administration.catalogue import fresh_catalogue
from domain.apps import CPU, AppVersion
from domain.attention import nearly_all_fail
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.hosts import Host, HostAppVersion
from domain.insight import HostSample, JobSize, RecentHost, RecentInstance, WaitingBatch
from domain.units import DAY_S, AppId, AppVersionId, BatchId, Flop, Instant, Seconds, SubmitterId, VolunteerId
from simulator.population import MeasuredHost, MeasuredPopulation
from simulator.ports import HeldInstance, ShareOf
from simulator.scenario import AppPlan, FileScenario
from simulator.submitters import BatchPlan
from simulator.traits import Gpu
from store.postgres import PostgresStore

LIKE_ALL = 20.0
LEAST_STRETCH, MOST_STRETCH = 0.1, 10.0
LEAST_ON_FRACTION = 0.05
MOST_BUFFER_S = 10 * DAY_S  # the maximum in clients' preferences
USUAL_BUFFER_S = 0.6 * DAY_S
MOST_LOST_FRACTION = 0.9
LEAST_EFFICIENCY = 1e-3
LEAST_SHARE = 0.02
MOST_DONE_FRACTION = 0.9
LEAST_SIGMA = 0.25  # of ln turnaround

Versions = Mapping[AppVersionId, AppVersion]
Sizes = Mapping[AppId, Flop]  # size of an app's usual job


@dataclass(frozen=True, slots=True)
class _Usual:
    """Defaults for hosts without results; `share` also for hosts without jobs in progress."""

    stretch: float
    buffer_s: float
    share: float
    lost_fraction: float
    failed_fraction: float


def measured_hosts(
    hosts: Sequence[RecentHost], versions: Versions, sizes: Sizes, now: Instant
) -> tuple[MeasuredHost, ...]:
    """Return the hosts as measured; hosts without a known platform are omitted."""
    known = _known_hosts(hosts)
    counts = [_counts(one) for one in known]
    valid, failed, lost = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
    usual = _Usual(
        _median((_stretch(one, versions) for one in known), 1.0),
        _median((_buffer_s(one, versions, sizes) for one in known), USUAL_BUFFER_S),
        _median((share_of(one, versions, sizes) for one in known), 1.0),
        lost / max(1, valid + failed + lost),
        failed / max(1, valid + failed),
    )
    return tuple(replace(_measured(one, versions, sizes, usual), asks_after_s=_next_call_s(one, now)) for one in known)


def _next_call_s(one: RecentHost, now: Instant) -> float:
    """Return after how long a host makes its next request if it keeps to its usual interval, at most a day."""
    return min(DAY_S, max(0.0, one.host.last_rpc_at + (one.rpc_interval_s or DAY_S) - now))


def _known_hosts(hosts: Sequence[RecentHost]) -> list[RecentHost]:
    return [one for one in hosts if one.host.platforms]


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
        share=_or(share_of(one, versions, sizes), usual.share),
        loss_fraction=min(MOST_LOST_FRACTION, shrunk(lost, valid + failed + lost, usual.lost_fraction)),
        error_fraction=shrunk(failed, valid + failed, usual.failed_fraction),
        gpu=_gpu(one, versions, stretch),
        labels=host.labels,
        known=replace(one, held=()),
    )


def on_fraction_of(host: Host) -> float:
    """Return the fraction of time in which a host computes, within plausible limits."""
    return min(1.0, max(LEAST_ON_FRACTION, host.cpu_availability_fraction))


def shrunk(part: int, whole: int, usual: float) -> float:
    """Return the share `part / whole`, shrunk towards the usual share.

    >>> shrunk(0, 0, 0.05), shrunk(5, 80, 0.05)
    (0.05, 0.06)
    """
    return (part + LIKE_ALL * usual) / (whole + LIKE_ALL)


def _counts(one: RecentHost) -> tuple[int, int, int]:
    """Return the numbers of valid, failed and timed-out instances."""
    havs = one.havs
    return sum(h.n_valid for h in havs), sum(h.n_error for h in havs), sum(h.n_timeout for h in havs)


def _stretch(one: RecentHost, versions: Versions) -> float | None:
    """Return the ratio of measured to estimated run time, for the CPU version with most results."""
    best = _most_used(one, versions, lambda version: version.plan_class.gpu_type is None)
    if best is None:
        return None
    hav, version = best
    cpus = min(version.plan_class.ncpus, float(one.host.ncpus))
    return min(MOST_STRETCH, max(LEAST_STRETCH, hav.speed.mean * cpus * one.host.flop_per_s))


def _buffer_s(one: RecentHost, versions: Versions, sizes: Sizes) -> float | None:
    """Return the host's usual turnaround minus a usual job's run time, in seconds: the length of its work queue."""
    best = _most_used(one, versions, lambda version: version.app_id in sizes)
    cycle = None if best is None else _cycle(one.host, *best, sizes)
    return None if cycle is None else cycle.turnaround_s - cycle.runs_s


@dataclass(frozen=True, slots=True)
class _Cycle:
    """The usual turnaround of a host's usual job with a version, and the part of it in which the job runs."""

    turnaround_s: float
    runs_s: float


def _cycle(host: Host, hav: HostAppVersion, version: AppVersion, sizes: Sizes) -> _Cycle | None:
    if hav.log_n <= 0 or hav.speed.mean <= 0.0 or version.app_id not in sizes:
        return None
    runs_s = hav.speed.mean * sizes[version.app_id] / on_fraction_of(host)
    return _Cycle(max(runs_s, math.exp(hav.log_sum / hav.log_n)), runs_s)


def _cycle_of(one: RecentHost, held: RecentInstance, versions: Versions, sizes: Sizes) -> _Cycle | None:
    """Return the cycle of an instance in progress, None if it is not measured."""
    version = versions.get(held.app_version_id)
    hav = next((hav for hav in one.havs if hav.app_version_id == held.app_version_id), None)
    return None if hav is None or version is None else _cycle(one.host, hav, version, sizes)


def share_of(one: RecentHost, versions: Versions, sizes: Sizes) -> float | None:
    """Return the part of its processors that a host gives to the project, None without measured jobs in progress.

    By Little's law, n jobs in progress with a turnaround T and a run time R keep n R / T processors busy. If they are
    fewer than its processors, the others had no work: each job got R / T of a processor. The results returned since the
    host is known give a lower bound; alone they say little, because it had no work at times.
    """
    known_s = max(1.0, one.host.last_rpc_at - one.host.created_at)
    held: defaultdict[str, float] = defaultdict(float)  # the busy part, by type of processor
    load: defaultdict[str, float] = defaultdict(float)  # processors that the jobs in progress could use at once
    returned: defaultdict[str, float] = defaultdict(float)
    for hav in one.havs:
        version = versions.get(hav.app_version_id)
        cycle = None if version is None else _cycle(one.host, hav, version, sizes)
        if version is None or cycle is None:
            continue
        plan = version.plan_class
        used = plan.ncpus / one.host.ncpus
        if plan.gpu_type is not None:
            used = plan.gpu_count / max(1, sum(gpu.count for gpu in one.host.coprocessors if gpu.type == plan.gpu_type))
        jobs = sum(instance.app_version_id == hav.app_version_id for instance in one.held)
        load[plan.gpu_type or ""] += used * jobs
        held[plan.gpu_type or ""] += used * jobs * cycle.runs_s / cycle.turnaround_s
        returned[plan.gpu_type or ""] += used * hav.log_n * cycle.runs_s / known_s
    shares = [busy / min(1.0, load[kind]) for kind, busy in held.items() if busy > 0.0]
    return min(1.0, max(LEAST_SHARE, *shares, *returned.values())) if shares else None


def held_by_batch(
    hosts: Sequence[RecentHost], versions: Versions, sizes: Sizes, now: Instant
) -> Mapping[BatchId, Sequence[HeldInstance]]:
    """Return the instances in progress by batch, in the order of their dispatch.

    A job first waits in the host's queue, then runs to the end of the usual turnaround. An overdue job is nearly done.
    """
    found: dict[BatchId, list[HeldInstance]] = {}
    sigma = _sigma(hosts)
    for number, one in enumerate(_known_hosts(hosts)):
        for held in one.held:
            version, cycle = versions.get(held.app_version_id), _cycle_of(one, held, versions, sizes)
            age_s = max(1.0, now - held.sent_at)
            ran_s = 0.0 if cycle is None else age_s - (cycle.turnaround_s - cycle.runs_s)
            done = 0.0 if cycle is None else min(MOST_DONE_FRACTION, max(0.0, ran_s / cycle.runs_s))
            gpu_type = None if version is None else version.plan_class.gpu_type
            later = 1.0 if cycle is None else 0.5 * math.erfc(math.log(age_s / cycle.turnaround_s) / (sigma * 2**0.5))
            instance = HeldInstance(number, Seconds(age_s), Seconds(held.due_at - now), done, gpu_type, later)
            found.setdefault(held.batch_id, []).append(instance)
    return {batch_id: sorted(every, key=lambda held: -held.age_s) for batch_id, every in found.items()}


def _sigma(hosts: Sequence[RecentHost]) -> float:
    """Return the standard deviation of ln turnaround around the means of hosts' versions."""
    havs = [hav for one in hosts for hav in one.havs if hav.log_n > 1]
    square = sum(hav.log_sum_sq - hav.log_sum**2 / hav.log_n for hav in havs)
    return max(LEAST_SIGMA, math.sqrt(max(0.0, square) / max(1, sum(hav.log_n - 1 for hav in havs))))


def _gpu(one: RecentHost, versions: Versions, stretch: float) -> Gpu | None:
    """Return the host's first type of GPU, with the efficiency measured on its jobs."""
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
    """Return the matching record with most valid results, among records with a measured speed."""
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


MOST_HELD = 100_000  # maximum number of instances in progress
MOST_BATCHES = 200  # maximum number of waiting batches, first in order
LEAST_DEADLINE_S = 60.0  # for a batch whose deadline has passed
SCENARIO = "recent"


@dataclass(frozen=True, slots=True)
class RecentSample:
    """The sample: `hosts` of `hosts_active` hosts, and `jobs` of the `jobs_open` jobs in `batches` waiting batches. The
    statistics of the hosts are from at most the last `known_s`: since then the first of them is known.
    """

    read_at: Instant
    hosts: int
    hosts_active: int
    batches: int
    jobs: int
    jobs_open: int
    known_s: float = 0.0  # results of older versions have none


@dataclass(frozen=True, slots=True)
class Recent:
    """A simulation scenario built from the project."""

    scenario: FileScenario
    catalogue: Catalogue
    sample: RecentSample


@dataclass(frozen=True, slots=True)
class _Read:
    """The data read. `usual` is the usual job of each app with waiting work, `changed` are the stored settings."""

    catalogue: Catalogue
    now: Instant
    sample: HostSample
    waiting: Sequence[WaitingBatch]
    sizes: Mapping[BatchId, JobSize]
    usual: Mapping[AppId, Flop]
    submitters: Mapping[SubmitterId, ShareOf]
    changed: Mapping[str, object]


async def recent_project(
    store: PostgresStore, clock: Clock, *, most_hosts: int, days: float, without: Collection[BatchId] = ()
) -> Recent:
    """Read the project; `days` start with the `simulated_batches`. Raises InvalidInputError without hosts or work."""
    read = await _read(store, clock, most_hosts, without)
    return await asyncio.to_thread(_recent, read, days)  # many hosts take long, and this process also serves clients


MOST_READ = 16  # times as many waiting batches are read at most


async def simulated_batches(
    store: PostgresStore, catalogue: Catalogue, without: Collection[BatchId], *, most: int = MOST_BATCHES
) -> Sequence[WaitingBatch]:
    """Return the first waiting batches in order, without those in `without`, those of apps without a version, and those
    nearly all of whose jobs fail.
    """
    limit = most
    while True:
        found = await store.insight.waiting_batches(limit)
        kept = [
            one
            for one in found
            if catalogue.current.get(one.batch.app_id)
            and one.batch.batch_id not in without
            and not nearly_all_fail(one.batch.counts)
        ]
        if len(kept) >= most or len(found) < limit or limit >= MOST_READ * most:
            return kept[:most]
        limit *= 2


async def _read(store: PostgresStore, clock: Clock, most_hosts: int, without: Collection[BatchId]) -> _Read:
    catalogue = await fresh_catalogue(store.applications, clock)
    now = clock.now()
    active_since = Instant(now - catalogue.settings.ranking.active_s)
    sample = await store.insight.sampled_hosts(most_hosts, active_since=active_since, most_held=MOST_HELD)
    waiting = await simulated_batches(store, catalogue, without)
    sizes = await store.insight.job_sizes([one.batch.batch_id for one in waiting])
    return _Read(
        catalogue,
        now,
        sample,
        waiting,
        sizes,
        await _usual_sizes(store, waiting, sizes),
        {one.submitter_id: ShareOf(one.name, one.shares) for one in await store.people.submitters()},
        await store.settings.settings(),
    )


def _recent(read: _Read, days: float) -> Recent:
    """Build the scenario. Raises InvalidInputError as `recent_project` does."""
    catalogue, waiting, usual = read.catalogue, read.waiting, read.usual
    hosts = measured_hosts(read.sample.hosts, catalogue.versions, usual, read.now)
    if not hosts:
        active_days = catalogue.settings.ranking.active_s / DAY_S
        raise InvalidInputError("population", f"computers that called in the last {active_days:g} days", 0)
    if not waiting:
        least = "at least one batch with unsent instances that a host can run, and not nearly all of whose jobs fail"
        raise InvalidInputError("batches", least, 0)
    plans = list(_plans(read, share=len(hosts) / max(len(hosts), read.sample.active)))
    unfit = {error.field for error in catalogue.unfit_settings}
    scenario = FileScenario(
        SCENARIO,
        read.now,
        Seconds(days * DAY_S),
        {key: value for key, value in read.changed.items() if key not in unfit},
        MeasuredPopulation.of(hosts),
        tuple(_app(app_id, catalogue) for app_id in usual),
        tuple(read.submitters[one] for one in dict.fromkeys(waits.batch.submitter_id for waits in waiting)),
        (),
    )
    return Recent(
        scenario.with_batches(plans),
        catalogue,
        RecentSample(
            read.now,
            len(hosts),
            read.sample.active,
            len(plans),
            sum(plan.jobs for plan in plans),
            sum(one.batch.counts.jobs_open for one in waiting),
            read.now - min(one.host.created_at for one in _known_hosts(read.sample.hosts)),
        ),
    )


async def _usual_sizes(
    store: PostgresStore, waiting: Sequence[WaitingBatch], sizes: Mapping[BatchId, JobSize]
) -> dict[AppId, Flop]:
    """Return each app's usual job size, from its recent batches or, without any, from its waiting batch."""
    found: dict[AppId, Flop] = {}
    for one in waiting:
        app_id = one.batch.app_id
        if app_id not in found:
            facts = await store.hav_tables.facts(app_id)
            found[app_id] = facts.typical_flop or sizes[one.batch.batch_id].flop
    return found


def _plans(read: _Read, *, share: float) -> Iterator[BatchPlan]:
    """Yield the open jobs of each batch; batches arrive 1 s apart, in their order."""
    held = held_by_batch(read.sample.hosts, read.catalogue.versions, read.usual, read.now)
    owners = [one.host.volunteer_id for one in _known_hosts(read.sample.hosts)]
    usual_s = usual_turnarounds(read.sample.hosts, read.catalogue.versions, read.usual)
    for place, one in enumerate(read.waiting):
        batch, size = one.batch, read.sizes[one.batch.batch_id]
        instances = tuple(held.get(batch.batch_id, ()))
        deadline_s = None if batch.deadline_at is None else Seconds(max(LEAST_DEADLINE_S, batch.deadline_at - read.now))
        yield BatchPlan(
            f"batch {batch.batch_id}",
            read.catalogue.apps[batch.app_id].name,
            read.submitters[batch.submitter_id].submitter,
            batch.qos,
            float(place),
            max(
                round(batch.counts.jobs_open * share),
                _least_jobs(batch.counts.jobs_open, instances, owners, size.quorum),
            ),
            size.flop,
            one.delay_bound_s,
            deadline_s,
            size.quorum,
            size.memory_bytes,
            size.ncpus,
            batch.batch_id,
            batch.level,
            batch.queue,
            batch.user_priority,
            instances,
            batch.logical_end_at - read.now,
            batch.median_turnaround_s or usual_s.get(batch.app_id),
        )


def usual_turnarounds(hosts: Sequence[RecentHost], versions: Versions, sizes: Sizes) -> Mapping[AppId, Seconds]:
    """Return the median of the hosts' usual turnarounds of an app's usual job, by app with measured hosts."""
    found = defaultdict[AppId, list[float]](list)
    for one in hosts:
        for hav in one.havs:
            version = versions.get(hav.app_version_id)
            cycle = None if version is None else _cycle(one.host, hav, version, sizes)
            if version is not None and cycle is not None:
                found[version.app_id].append(cycle.turnaround_s)
    return {app_id: Seconds(median(every)) for app_id, every in found.items()}


def _least_jobs(jobs_open: int, held: Sequence[HeldInstance], owners: Sequence[VolunteerId], quorum: int) -> int:
    """Return how many jobs these instances need. A volunteer gets at most one instance of each."""
    of_one = max(Counter(owners[one.volunteer] for one in held).values(), default=1)
    return max(1, min(jobs_open, of_one), math.ceil(len(held) / quorum))


def _app(app_id: AppId, catalogue: Catalogue) -> AppPlan:
    """Return an app with its current versions, without files, and its rankings."""
    versions = catalogue.current[app_id]
    on_cpus = [one.plan_class.ncpus for one in versions if one.processor_type == CPU]
    gpu_types = sorted({one.processor_type for one in versions} - {CPU})
    cuts = tuple(replace(one, relaxed=()) for one in catalogue.cut_points.values() if one.app_id == app_id)
    name = catalogue.apps[app_id].name
    return AppPlan(name, max(on_cpus, default=1.0), tuple(gpu_types), bool(on_cpus), versions, cuts)
