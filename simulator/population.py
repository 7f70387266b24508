"""Creates the hosts of a scenario, drawn from a seed or as measured, independently of the rule under test.

Each host has its own generators for its availability and the fates of its jobs, derived from the seed and its number:
hosts do not affect each other, and no rule changes when a host is on. Measured hosts are the same for every seed; their
on times and the fates of their jobs are drawn so that measured fractions and durations are matched on average.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from domain.insight import RecentHost
from domain.units import DAY_S, HOUR_S, Instant, Seconds
from simulator.availability import Availability, Hours, LogNormal, OnOff, Weibull, intervals_of
from simulator.client import SimulatedVolunteer
from simulator.host_models import FITTED, FittedHosts, HostTable
from simulator.traits import Fates, Gpu, Traits
from simulator.work_buffer import Buffer

TRAITS, PRESENCE, FATES = range(3)  # the purpose of a generator
MOST_TIMEZONE_H = 12
FIRST_CALLS_S = 6 * HOUR_S  # initial hosts make their first requests in this window; later hosts when they join
MEMORY_SIGMA = 0.4  # sigma of ln of a host's memory per core

ALWAYS_ON = OnOff()
OS_OF = {"windows_x86_64": "Microsoft Windows", "x86_64-apple-darwin": "Darwin"}


@dataclass(frozen=True, slots=True)
class Presence:
    """A type of owner with its `share` of all hosts. `spread_sigma` is the sigma of ln of a host's interval scale."""

    share: float = 1.0
    process: OnOff = ALWAYS_ON
    hours: Hours | None = None
    spread_sigma: float = 0.0


@dataclass(frozen=True, slots=True)
class GpuKind:
    """A GPU type of which `share` of all hosts have `count`. Speeds are log-normal around the median."""

    share: float
    type: str
    count: int
    median_flop_per_s: float
    sigma: float
    ram_bytes: float


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A group of `hosts` hosts that join between `at_s` and `at_s + over_s` after the start."""

    hosts: int
    at_s: float = 0.0
    over_s: float = 0.0
    mean_stay_s: float = math.inf
    replaced: bool = False  # each host that leaves is replaced by a new one


@dataclass(frozen=True, slots=True)
class HostPopulation:
    """The distributions of the volunteers' hosts. Fractions are of instances, or of hosts if the name says so."""

    arrivals: tuple[Arrivals, ...]
    computers: FittedHosts | HostTable = field(default_factory=lambda: FITTED["seti"])
    presences: tuple[Presence, ...] = (Presence(),)
    gpus: tuple[GpuKind, ...] = ()
    platforms: Mapping[str, float] = field(default_factory=lambda: {"windows_x86_64": 1.0})
    time_zones_hours: float = 12.0  # up to this far east and west of UTC
    hosts_per_volunteer: float = 1.0
    share: float = 0.5
    buffer_min_s: float = 0.1 * DAY_S
    buffer_additional_s: float = 0.5 * DAY_S
    buffer_sigma: float = 0.0
    gigabytes_per_core: float = 2.0
    disk_gigabytes: float = 50.0
    speed_sigma: float = 0.0  # sigma of ln of a factor on a host's benchmark, in addition to the spread in `computers`
    stretch_sigma: float = 0.25
    size_sigma: float = 0.2
    loss_fraction: float = 0.05
    forgets_lost: bool = False  # clients forget lost jobs; hosts that never answer keep them
    error_fraction: float = 0.01
    garbage_fraction: float = 0.0
    unreliable_hosts_fraction: float = 0.0
    unreliable_error_fraction: float = 0.3
    unreliable_garbage_fraction: float = 0.1
    silent_hosts_fraction: float = 0.0

    def traits(self, seed: int, *, starts_at: Instant, horizon_s: float) -> list[Traits]:
        """Return all hosts that ever participate, in the order in which they join."""
        rng = _generator(seed, TRAITS)
        stays = [stay for one in self.arrivals for stay in _stays(one, rng, horizon_s)]
        stays.sort()
        return list(self._drawn(rng, stays, starts_at))

    def _drawn(
        self, rng: np.random.Generator, stays: list[tuple[float, float]], starts_at: Instant
    ) -> Iterator[Traits]:
        count = len(stays)
        cores, speeds = self.computers.draw(rng, count)
        stretches = rng.lognormal(0.0, self.stretch_sigma, count)
        gigabytes = rng.lognormal(math.log(self.gigabytes_per_core), MEMORY_SIGMA, count) * cores
        buffers = rng.lognormal(0.0, self.buffer_sigma, count)
        platforms = rng.choice(list(self.platforms), count, p=_normed(list(self.platforms.values())))
        first_calls_s = rng.random(count) * FIRST_CALLS_S
        zones = rng.integers(-MOST_TIMEZONE_H, MOST_TIMEZONE_H, count) * (self.time_zones_hours / MOST_TIMEZONE_H)
        volunteers = rng.integers(0, max(1, round(count / self.hosts_per_volunteer)), count)
        troubles = rng.random((count, 2))
        gpus = self._gpus(rng, count)
        factors = rng.lognormal(0.0, self.speed_sigma, count)
        for i, (joins_s, leaves_s) in enumerate(stays):
            silent = troubles[i, 0] < self.silent_hosts_fraction
            unreliable = troubles[i, 1] < self.unreliable_hosts_fraction
            owner = i if self.hosts_per_volunteer == 1.0 else int(volunteers[i])
            yield Traits(
                number=i + 1,
                authenticator=f"{owner:032x}",
                ncpus=int(cores[i]),
                flop_per_s=float(speeds[i] * factors[i]),
                stretch=float(stretches[i]),
                ram_bytes=float(gigabytes[i]) * 1e9,
                disk_bytes=self.disk_gigabytes * 1e9,
                platform=str(platforms[i]),
                os_name=OS_OF.get(str(platforms[i]), "Linux"),
                share=self.share,
                buffer=Buffer(
                    Seconds(self.buffer_min_s * float(buffers[i])),
                    Seconds(self.buffer_additional_s * float(buffers[i])),
                ),
                joins_at=Instant(starts_at + joins_s),
                first_call_at=Instant(starts_at + (joins_s or float(first_calls_s[i]))),
                leaves_at=starts_at + leaves_s,
                gpu=gpus[i],
                loss_fraction=1.0 if silent else self.loss_fraction,
                error_fraction=self.unreliable_error_fraction if unreliable else self.error_fraction,
                garbage_fraction=self.unreliable_garbage_fraction if unreliable else self.garbage_fraction,
                timezone_s=float(zones[i]) * HOUR_S,
            )

    def _gpus(self, rng: np.random.Generator, count: int) -> list[Gpu | None]:
        if not self.gpus:
            return [None] * count
        u, normal = rng.random(count), rng.normal(0.0, 1.0, count)
        return [self._gpu(float(u[i]), float(normal[i])) for i in range(count)]

    def _gpu(self, u: float, normal: float) -> Gpu | None:
        for kind in self.gpus:
            if u < kind.share:
                peak = kind.median_flop_per_s * math.exp(kind.sigma * normal)
                return Gpu(kind.type, kind.count, peak, kind.ram_bytes, driver_version=55_000)
            u -= kind.share
        return None

    def availability(self, traits: Traits, seed: int) -> tuple[Availability, float]:
        """Return when this host is on, and its on fraction in the long run."""
        source = np.random.SeedSequence((seed, PRESENCE, traits.number))
        rng = np.random.Generator(np.random.PCG64(source))
        shares = [one.share for one in self.presences]
        presence = self.presences[int(rng.choice(len(shares), p=_normed(shares)))]
        process, factor = presence.process, math.exp(presence.spread_sigma * float(rng.normal()))
        if process.on is not None and process.off is not None:
            process = OnOff(process.on.scaled(factor), process.off.scaled(factor))
        intervals = intervals_of(
            process, presence.hours, seed=source, start_at=traits.joins_at, timezone_s=traits.timezone_s
        )
        fraction = process.fraction * (1.0 if presence.hours is None else presence.hours.fraction)
        return Availability(intervals, start_at=traits.joins_at, end_at=traits.leaves_at), fraction

    def volunteers(self, seed: int, *, starts_at: Instant, horizon_s: float) -> list[SimulatedVolunteer]:
        """Return a new client for each host that ever participates."""
        return [self._volunteer(traits, seed) for traits in self.traits(seed, starts_at=starts_at, horizon_s=horizon_s)]

    def _volunteer(self, traits: Traits, seed: int) -> SimulatedVolunteer:
        availability, fraction = self.availability(traits, seed)
        draw = random.Random(f"{seed} {FATES} {traits.number}")  # noqa: S311  repeatable, not secret
        fates = Fates(
            traits.loss_fraction,
            traits.error_fraction,
            traits.garbage_fraction,
            self.size_sigma,
            seed,
            draw,
            forgets=self.forgets_lost and traits.loss_fraction < 1.0,
        )
        calls = random.Random(f"{seed} {FATES} {traits.number} calls")  # noqa: S311
        return SimulatedVolunteer(traits, availability, fates, calls, on_fraction=fraction)


def _stays(arrivals: Arrivals, rng: np.random.Generator, horizon_s: float) -> list[tuple[float, float]]:
    """Yield (joins, leaves) in seconds from the start for every host that joins before the horizon."""
    joins = arrivals.at_s + rng.random(arrivals.hosts) * arrivals.over_s
    if math.isinf(arrivals.mean_stay_s):
        return [(float(at), math.inf) for at in joins if at < horizon_s]
    stays = []
    for first in joins:
        at = float(first)
        while at < horizon_s:
            until = at + float(rng.exponential(arrivals.mean_stay_s))
            stays.append((at, until))
            at = until if arrivals.replaced else math.inf
    return stays


def _normed(shares: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(shares) / sum(shares)


def _generator(seed: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, purpose))))


# Assumed durations of on intervals, and the spread of the breaks between them, for a scenario's hosts.
SESSIONS = Weibull(0.393, 2.964 * HOUR_S)
BREAKS_SIGMA = 1.6
ALWAYS_FRACTION = 0.97  # hosts above this on fraction have no breaks
MIN_BUFFER_S = 0.1 * DAY_S  # the client's default for the preference "store at least"


@dataclass(frozen=True, slots=True)
class MeasuredHost:
    """One measured host. `stretch` is the ratio of its jobs' actual runtime to that predicted by its benchmark.

    The host is on for `on_fraction` of the time, gives the project `share` of its processors and buffers `buffer_s` of
    work. Other fractions are of its instances.
    Two hosts of the same `owner` do not get instances of the same job. `known` is the project's record of the host; it
    then asks for work after `asks_after_s`, or when a job ends.
    """

    ncpus: int
    flop_per_s: float
    ram_bytes: float
    disk_bytes: float
    platform: str
    os_name: str
    owner: int
    stretch: float = 1.0
    on_fraction: float = 1.0
    buffer_s: Seconds = Seconds(0.6 * DAY_S)
    share: float = 1.0
    loss_fraction: float = 0.0
    error_fraction: float = 0.0
    gpu: Gpu | None = None
    labels: tuple[str, ...] = ()
    asks_after_s: float = 0.0
    known: RecentHost | None = None


@dataclass(frozen=True, slots=True)
class MeasuredPopulation(HostPopulation):
    """Measured hosts that participate from the first day to the last. HostPopulation's distributions are not used."""

    hosts: tuple[MeasuredHost, ...] = ()

    @classmethod
    def of(cls, hosts: tuple[MeasuredHost, ...]) -> MeasuredPopulation:
        return cls((), platforms={host.platform: 1.0 for host in hosts}, hosts=hosts)

    def traits(self, seed: int, *, starts_at: Instant, horizon_s: float) -> list[Traits]:  # noqa: ARG002  all stay
        """Return all hosts. New ones make their first requests at random times in the first hours."""
        phases = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, TRAITS)))).random(len(self.hosts))
        return [
            _traits(host, number, 0.0 if host.known else float(phase) * FIRST_CALLS_S, starts_at)
            for number, (host, phase) in enumerate(zip(self.hosts, phases, strict=True), start=1)
        ]

    def availability(self, traits: Traits, seed: int) -> tuple[Availability, float]:
        """Return when this host is on, and its on fraction in the long run."""
        process = presence(self.hosts[traits.number - 1].on_fraction)
        source = np.random.SeedSequence((seed, PRESENCE, traits.number))
        intervals = intervals_of(process, None, seed=source, start_at=traits.joins_at)
        return Availability(intervals, start_at=traits.joins_at), process.fraction


def presence(on_fraction: float) -> OnOff:
    """Return on intervals with breaks just long enough for this on fraction.

    >>> presence(0.4).fraction, presence(0.99).fraction
    (0.4, 1.0)
    """
    if on_fraction >= ALWAYS_FRACTION:
        return OnOff()
    breaks = LogNormal(1.0, BREAKS_SIGMA)
    mean_s = SESSIONS.mean_s * (1.0 - on_fraction) / on_fraction
    return OnOff(SESSIONS, breaks.scaled(mean_s / breaks.mean_s))


def _traits(host: MeasuredHost, number: int, first_call_s: float, starts_at: Instant) -> Traits:
    least_s = min(MIN_BUFFER_S, host.buffer_s)
    return Traits(
        number=number,
        authenticator=f"{host.owner:032x}",
        ncpus=host.ncpus,
        flop_per_s=host.flop_per_s,
        stretch=host.stretch,
        ram_bytes=host.ram_bytes,
        disk_bytes=host.disk_bytes,
        platform=host.platform,
        os_name=host.os_name,
        share=host.share,
        buffer=Buffer(Seconds(least_s), Seconds(host.buffer_s - least_s)),
        joins_at=starts_at,
        first_call_at=Instant(starts_at + first_call_s),
        gpu=host.gpu,
        loss_fraction=host.loss_fraction,
        error_fraction=host.error_fraction,
        labels=host.labels,
        asks_from_at=starts_at + host.asks_after_s,
        known=host.known,
    )
