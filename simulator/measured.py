"""A population of computers as they were measured, one by one, instead of drawn from laws.

Who takes part is the same for every seed. When a computer is on, when it calls first, and what becomes of its jobs are
drawn anew with each, so that the measured shares and lengths hold on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from domain.units import DAY_S, HOUR_S, Instant, Seconds
from simulator.availability import Availability, OnOff, intervals_of
from simulator.laws import LogNormal, Weibull
from simulator.population import FIRST_CALLS_S, PRESENCE, TRAITS, Population
from simulator.traits import Gpu, Traits
from simulator.work_buffer import Buffer

# Lengths of being on, and the spread of the breaks between them, as assumed of a scenario's computers.
SESSIONS = Weibull(0.393, 2.964 * HOUR_S)
BREAKS_SIGMA = 1.6
ALWAYS_FRACTION = 0.97  # who is on for so much of the time has no breaks
MIN_BUFFER_S = 0.1 * DAY_S  # a client's preference "store at least" where nobody has changed it


@dataclass(frozen=True, slots=True)
class MeasuredHost:
    """One computer. `stretch`: how many times longer than its benchmark says its jobs take.

    It is on for `on_fraction` of the time and keeps `buffer_s` of work. The other fractions are of its instances.
    Computers of one `owner` get no two instances of a job.
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
    loss_fraction: float = 0.0
    error_fraction: float = 0.0
    gpu: Gpu | None = None


@dataclass(frozen=True, slots=True)
class MeasuredPopulation(Population):
    """These computers, from the first day to the last; the laws of Population are not used."""

    hosts: tuple[MeasuredHost, ...] = ()

    @classmethod
    def of(cls, hosts: tuple[MeasuredHost, ...]) -> MeasuredPopulation:
        return cls((), platforms={host.platform: 1.0 for host in hosts}, hosts=hosts)

    def traits(self, seed: int, *, starts_at: Instant, horizon_s: float) -> list[Traits]:  # noqa: ARG002  all stay
        """Every computer, its first call at a random place of the first hours."""
        phases = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, TRAITS)))).random(len(self.hosts))
        return [
            _traits(host, number, Instant(starts_at + float(phase) * FIRST_CALLS_S), starts_at)
            for number, (host, phase) in enumerate(zip(self.hosts, phases, strict=True), start=1)
        ]

    def availability(self, traits: Traits, seed: int) -> tuple[Availability, float]:
        """When this computer is on, and the share of time that is in the long run."""
        process = presence(self.hosts[traits.number - 1].on_fraction)
        source = np.random.SeedSequence((seed, PRESENCE, traits.number))
        intervals = intervals_of(process, None, seed=source, start_at=traits.joins_at)
        return Availability(intervals, start_at=traits.joins_at), process.fraction


def presence(on_fraction: float) -> OnOff:
    """Sessions with breaks of such a length that a computer is on for that share of the time.

    >>> presence(0.4).fraction, presence(0.99).fraction
    (0.4, 1.0)
    """
    if on_fraction >= ALWAYS_FRACTION:
        return OnOff()
    breaks = LogNormal(1.0, BREAKS_SIGMA)
    mean_s = SESSIONS.mean_s * (1.0 - on_fraction) / on_fraction
    return OnOff(SESSIONS, breaks.scaled(mean_s / breaks.mean_s))


def _traits(host: MeasuredHost, number: int, first_call_at: Instant, starts_at: Instant) -> Traits:
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
        share=1.0,
        buffer=Buffer(Seconds(least_s), Seconds(host.buffer_s - least_s)),
        joins_at=starts_at,
        first_call_at=first_call_at,
        gpu=host.gpu,
        loss_fraction=host.loss_fraction,
        error_fraction=host.error_fraction,
    )
