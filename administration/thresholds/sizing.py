"""Estimates how long a simulation of the project takes, so that a page can offer one that takes about a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from administration.catalogue import fresh_catalogue
from administration.stopped import stopped_of
from administration.thresholds.recent import SCENARIO, simulated_batches
from domain.clock import Clock
from domain.formatting import age_in_words, roughly
from domain.units import Instant
from domain.views import Simulation, SimulationState
from store.postgres import PostgresStore

JOB_S = 0.0017  # processor time of a simulated job, measured with 240 hosts and 41,700 jobs
HOST_DAY_S = 0.0025  # likewise of a host and simulated day, without jobs
SIMULATED_DAY_S = 0.4  # likewise of a simulated day without hosts, from its periodic tasks; 0.3 to 0.7 were measured
SIDES = 2  # with the present and with the changed values
ENOUGH_S = 60.0
FEW_SEEDS, FEW_DAYS = 5, 3.0  # fewer runs hardly tell a change from chance
LEAST_HOSTS = 40  # with fewer than `ranking.min_rows` hosts there are no percentiles to simulate
PAST = 20  # simulations searched for the latest of the project
LEAST_SLOWER, MOST_SLOWER = 0.2, 20.0
BUSY = 3.0  # times the processor time on a busy machine, at the lowest priority; up to 2.8 were measured


@dataclass(frozen=True, slots=True)
class ReplayCost:
    """The numbers that the time depends on.

    `slower`: how many times its processor time the latest simulation took. Before the first one, the machine counts as
    busy.
    """

    hosts_active: int
    jobs_open: int
    slower: float = BUSY

    def seconds(self, *, hosts: int, seeds: int, days: float) -> float:
        """Return the expected duration.

        >>> round(ReplayCost(240, 12_909).seconds(hosts=240, seeds=2, days=3.0))
        299
        """
        hosts = min(hosts, self.hosts_active)
        jobs = hosts * self.jobs_open / max(1, self.hosts_active)
        return self.slower * seeds * processor_s(jobs, hosts, days)

    def hosts_within(self, most_s: float, *, seeds: int, days: float) -> int:
        """Return how many hosts can be simulated in this time, at least LEAST_HOSTS if there are so many.

        >>> ReplayCost(240, 12_909, slower=1.0).hosts_within(60.0, seeds=2, days=3.0)
        139
        >>> ReplayCost(12, 12_909).hosts_within(60.0, seeds=2, days=3.0)
        12
        """
        without_s = self.seconds(hosts=0, seeds=seeds, days=days)
        every_s = self.seconds(hosts=self.hosts_active, seeds=seeds, days=days)
        of_one_s = (every_s - without_s) / max(1, self.hosts_active)
        fitting = int((most_s - without_s) / of_one_s) if of_one_s > 0.0 else LEAST_HOSTS
        return max(1, min(self.hosts_active, max(LEAST_HOSTS, fitting)))


def processor_s(jobs: float, hosts: int, days: float) -> float:
    """Return the processor time of one run of each side."""
    return SIDES * (jobs * JOB_S + days * (SIMULATED_DAY_S + hosts * HOST_DAY_S))


async def replay_cost(store: PostgresStore, clock: Clock) -> ReplayCost:
    """Read what a simulation of the project costs. Raises as the store does."""
    catalogue = await fresh_catalogue(store.applications, clock)
    since = Instant(clock.now() - catalogue.settings.ranking.active_s)
    sample, stopped, past = await asyncio.gather(
        store.insight.sampled_hosts(1, active_since=since),
        stopped_of(store, clock),
        store.simulations.simulations(PAST),
    )
    simulated = await simulated_batches(store, catalogue, stopped.unrunnable)
    slower = next((found for one in past if (found := slower_of(one)) is not None), BUSY)
    return ReplayCost(sample.active, sum(one.batch.counts.jobs_open for one in simulated), slower)


def slower_of(past: Simulation) -> float | None:
    """Return how many times the estimated processor time a finished simulation of the project took; None for others."""
    estimated_s = past.asked.get("cpu_s")
    if past.state is not SimulationState.DONE or past.asked.get("scenario") != SCENARIO:
        return None
    if not isinstance(estimated_s, (int, float)) or estimated_s <= 0.0:
        return None
    return min(MOST_SLOWER, max(LEAST_SLOWER, (past.heard_at - past.asked_at) / estimated_s))


def left_s(asked: Mapping[str, object], elapsed_s: float, done_fraction: float) -> float | None:
    """Return the expected remaining time of a running simulation, None if unknown.

    The first estimate gives way to the measured progress, and is ignored after 3 % of the work.

    >>> left_s({"estimated_s": 60.0}, 10.0, 0.0), left_s({}, 30.0, 0.25), left_s({"estimated_s": 60.0}, 61.0, 0.0)
    (50.0, 90.0, None)
    """
    estimated_s = asked.get("estimated_s")
    total_s = elapsed_s / done_fraction if done_fraction > 0.0 else 0.0
    if isinstance(estimated_s, (int, float)) and done_fraction < KNOWN_FRACTION:
        total_s += (estimated_s - total_s) * (1.0 - done_fraction / KNOWN_FRACTION)
    return total_s - elapsed_s if total_s >= elapsed_s and total_s > 0.0 else None


def left_in_words(asked: Mapping[str, object], elapsed_s: float, done_fraction: float) -> str:
    """Return the remaining time of a running simulation. Once its progress counts, a run that takes longer says so.

    >>> asked = {"estimated_s": 177.0}
    >>> left_in_words(asked, 30.0, 0.5), left_in_words({}, 30.0, 0.0), left_in_words({}, 40.0, 0.955)
    ('About 30 s left.', '', 'About 2 s left.')
    >>> left_in_words(asked, 162.0, 0.39)
    'About 4 min 13 s left: other work uses the machine, so it takes 6 min 55 s instead of 2 min 57 s.'
    """
    rest_s, estimated_s = left_s(asked, elapsed_s, done_fraction), asked.get("estimated_s")
    if rest_s is None:
        return f"It takes longer than {roughly(estimated_s)}." if isinstance(estimated_s, (int, float)) else ""
    left, total_s = f"About {age_in_words(max(1.0, rest_s))} left", elapsed_s + rest_s
    if done_fraction < KNOWN_FRACTION or not isinstance(estimated_s, (int, float)) or total_s <= OVER * estimated_s:
        return f"{left}."
    return f"{left}: other work uses the machine, so it takes {roughly(total_s)} instead of {roughly(estimated_s)}."


OVER = 1.25  # times the estimated time; more is told
KNOWN_FRACTION = 0.03  # from here on, only the progress counts
