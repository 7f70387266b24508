"""The project itself as a scenario: its computers as they were measured lately, and the work that waits now.

A sample of the computers gets as large a share of the jobs. Nothing is known of them when the simulation starts: for
the first days they do work that can wait, of the usual size; then the waiting batches come, in their order. What is
assumed is told in docs/operating.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from administration.catalogue import fresh_catalogue
from administration.ports import People
from administration.thresholds.measured import measured_hosts
from administration.thresholds.service import ThresholdStore
from domain.apps import CPU
from domain.batches import QoS
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.insight import HostSample, JobSize, WaitingBatch
from domain.ranking import AppFacts
from domain.units import DAY_S, AppId, BatchId, Flop, Instant, Seconds, SubmitterId
from simulator.population import MeasuredHost, MeasuredPopulation
from simulator.ports import ShareOf
from simulator.scenario import AppPlan, FileScenario
from simulator.submitters import BatchPlan

MOST_HOSTS = 5000
MOST_BATCHES = 200  # waiting ones, first in order
LEARN_S = 7 * DAY_S
LEARN_FRACTION = 0.8  # of what the computers could do in that time
MOST_TO_LEARN = 40  # jobs per computer: enough to know it by
LEAST_TO_LEARN = 4
LEAST_DEADLINE_S = 60.0  # of a batch whose deadline has passed
LEARNING = "learning"
SCENARIO = "recent"


class AppFactsReader(Protocol):
    async def facts(self, app_id: AppId) -> AppFacts: ...


class RecentStore(ThresholdStore, Protocol):
    """What is read of the database."""

    @property
    def people(self) -> People: ...
    @property
    def hav_tables(self) -> AppFactsReader: ...


@dataclass(frozen=True, slots=True)
class Sample:
    """What is simulated of a project: `hosts` of the `hosts_active` computers, with `jobs` of the `jobs_open` jobs of
    `batches` waiting batches."""

    read_at: Instant
    hosts: int
    hosts_active: int
    batches: int
    jobs: int
    jobs_open: int


@dataclass(frozen=True, slots=True)
class Recent:
    """The project as a scenario."""

    scenario: FileScenario
    catalogue: Catalogue
    sample: Sample


@dataclass(frozen=True, slots=True)
class _Read:
    """What the database says. `usual` is the usual job of each app of which something waits, `changed` what is set."""

    catalogue: Catalogue
    now: Instant
    sample: HostSample
    waiting: Sequence[WaitingBatch]
    sizes: Mapping[BatchId, JobSize]
    usual: Mapping[AppId, Flop]
    submitters: Mapping[SubmitterId, ShareOf]
    changed: Mapping[str, object]


async def recent_project(store: RecentStore, clock: Clock, *, most_hosts: int, days: float) -> Recent:
    """Read the project. `days` are simulated from the instant at which the waiting batches come.

    Raises InvalidInputError when no computer called lately, or nothing waits.
    """
    read = await _read(store, clock, most_hosts)
    return await asyncio.to_thread(_recent, read, days)  # clients are served here, and computers may be many


async def _read(store: RecentStore, clock: Clock, most_hosts: int) -> _Read:
    catalogue = await fresh_catalogue(store.applications, clock)
    now = clock.now()
    active_since = Instant(now - catalogue.settings.ranking.active_s)
    sample = await store.insight.sampled_hosts(most_hosts, active_since=active_since)
    waiting = [
        one for one in await store.insight.waiting_batches(MOST_BATCHES) if catalogue.current.get(one.batch.app_id)
    ]
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
    """Raises InvalidInputError, as `recent_project`."""
    catalogue, waiting, usual = read.catalogue, read.waiting, read.usual
    hosts = measured_hosts(read.sample.hosts, catalogue.versions, usual)
    if not hosts:
        active_days = catalogue.settings.ranking.active_s / DAY_S
        raise InvalidInputError("population", f"computers that called in the last {active_days:g} days", 0)
    if not waiting:
        raise InvalidInputError("batches", "at least one with unsent instances, of an app that has versions", 0)
    plans = list(_plans(read, share=len(hosts) / max(len(hosts), read.sample.active)))
    unfit = {error.field for error in catalogue.unfit_settings}
    scenario = FileScenario(
        SCENARIO,
        read.now,
        Seconds(LEARN_S + days * DAY_S),
        {key: value for key, value in read.changed.items() if key not in unfit},
        MeasuredPopulation.of(hosts),
        tuple(_app(app_id, catalogue) for app_id in usual),
        tuple(read.submitters[one] for one in dict.fromkeys(waits.batch.submitter_id for waits in waiting)),
        (),
        learning=frozenset(_learning_name(catalogue, app_id) for app_id in usual),
    )
    return Recent(
        scenario.with_batches([*_to_learn(hosts, usual, catalogue), *plans]),
        catalogue,
        Sample(
            read.now,
            len(hosts),
            read.sample.active,
            len(plans),
            sum(plan.jobs for plan in plans),
            sum(one.batch.counts.jobs_open for one in waiting),
        ),
    )


async def _usual_sizes(
    store: RecentStore, waiting: Sequence[WaitingBatch], sizes: Mapping[BatchId, JobSize]
) -> dict[AppId, Flop]:
    """The usual job of every app of which something waits: of its last batches, else of what waits."""
    found: dict[AppId, Flop] = {}
    for one in waiting:
        app_id = one.batch.app_id
        if app_id not in found:
            facts = await store.hav_tables.facts(app_id)
            found[app_id] = facts.typical_flop or sizes[one.batch.batch_id].flop
    return found


def _plans(read: _Read, *, share: float) -> Iterator[BatchPlan]:
    """The open jobs of each batch, a second after the one before it in the order."""
    for place, one in enumerate(read.waiting):
        batch, size = one.batch, read.sizes[one.batch.batch_id]
        deadline_s = None if batch.deadline_at is None else Seconds(max(LEAST_DEADLINE_S, batch.deadline_at - read.now))
        yield BatchPlan(
            f"batch {batch.batch_id}",
            read.catalogue.apps[batch.app_id].name,
            read.submitters[batch.submitter_id].submitter,
            batch.qos,
            LEARN_S + place,
            max(1, round(batch.counts.jobs_open * share)),
            size.flop,
            one.delay_bound_s,
            deadline_s,
            size.quorum,
            size.memory_bytes,
            size.ncpus,
        )


def _to_learn(hosts: Sequence[MeasuredHost], usual: Mapping[AppId, Flop], catalogue: Catalogue) -> Iterator[BatchPlan]:
    """Work that can wait, an equal part for each app, from which its computers become known."""
    flop_per_s = sum(host.ncpus * host.flop_per_s / host.stretch * host.on_fraction for host in hosts)
    for app_id, flop in usual.items():
        fill = LEARN_FRACTION * flop_per_s * LEARN_S / (flop * len(usual))
        yield BatchPlan(
            _learning_name(catalogue, app_id),
            catalogue.apps[app_id].name,
            LEARNING,
            QoS.THROUGHPUT,
            0.0,
            round(min(MOST_TO_LEARN * len(hosts), max(LEAST_TO_LEARN * len(hosts), fill))),
            flop,
            Seconds(7 * DAY_S),
        )


def _learning_name(catalogue: Catalogue, app_id: AppId) -> str:
    return f"{LEARNING} {catalogue.apps[app_id].name}"


def _app(app_id: AppId, catalogue: Catalogue) -> AppPlan:
    """An app with its current versions, without their files."""
    versions = catalogue.current[app_id]
    on_cpus = [one.plan_class.ncpus for one in versions if one.processor_type == CPU]
    gpu_types = sorted({one.processor_type for one in versions} - {CPU})
    return AppPlan(
        catalogue.apps[app_id].name, max(on_cpus, default=1.0), tuple(gpu_types), bool(on_cpus), versions=versions
    )
