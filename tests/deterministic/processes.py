"""The processes of a cluster, composed as in runtime.compose, on one store in memory.

Each has its own link to the store and its node's clock. Loops run less often than in production, as in the simulator,
to keep runs short.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import feeder.service
import hoststats.service
import jobs.build
from administration.catalogue import CatalogueCache
from administration.gate_relaxation import GateRelaxer
from batch_estimator.service import Estimator, in_line
from domain.errors import UnavailableError
from domain.settings import Settings
from hoststats.ports import HostStatisticsPorts
from jobs.build import JobsPorts
from jobs.ordering.ordering_pass import Orderer
from runtime.compose import SHARED
from runtime.guards import ClockCheck, GuardedLedger, NodePauses
from runtime.periodic_tasks import PeriodicTask
from scheduler.service import RequestService, SchedulerPorts
from simulator.services import NoFiles, OneKey
from tests.deterministic.clocks import NodeClock
from tests.deterministic.faults import FaultyStore, Link
from tests.deterministic.locks import DatabaseClock, DutyLocks, LockTable, WorkerShards
from wire.messages import SchedulerReply, SchedulerRequest

REFRESH_S = 120.0  # interval of the catalogue
SETTINGS: dict[str, object] = {
    "feeder.interval_s": 60.0,
    "scheduler.no_work_delay_s": 120.0,
    "deadline.min_slack_s": 300.0,
    "lifecycle.sweep_interval_s": 60.0,
    "lifecycle.validate_interval_s": 30.0,
    "lifecycle.tail_interval_s": 600.0,
    "ordering.interval_s": 300.0,
    "estimator.look_s": 600.0,
    "estimator.pause_s": 1800.0,
    "estimator.timer_s": 7200.0,
}
OTHER_DUTIES_S = 1800.0

Loop = Callable[[], Awaitable[object]]


class Unwatched:
    """Satisfies the scheduler's RequestObserver without recording anything."""

    def request_answered(self, **figures: object) -> None:
        """Ignore the figures."""

    def trickles_taken(self, fates: object) -> None:
        """Ignore the trickles."""

    def request_failed(self, status: int) -> None:
        """Ignore it: the timeout guard reports the failure to the client."""


async def started(work: Callable[[], Awaitable[Any]], clock: NodeClock) -> Any:
    """Run a process's start until it succeeds, as its supervisor does."""
    while True:
        try:
            return await work()
        except UnavailableError:
            await clock.sleep(5.0)


class Worker:
    """A request worker; `ready` once it serves."""

    def __init__(self, store: Any, link: Link, clock: NodeClock, table: LockTable, process: int) -> None:
        self._store: Any = FaultyStore(store, link)
        self._clock = clock
        self.shards = WorkerShards(table, process, link, clock)
        self._clock_check = ClockCheck(DatabaseClock(link), clock)
        self.ready = False

    async def run(self) -> dict[str, Loop]:
        """Start up; return the loops to run."""
        store, clock = self._store, self._clock
        loaded = await started(store.applications.load_catalogue, clock)
        self.catalogue = CatalogueCache(store.applications, clock, loaded)
        await started(self._clock_check.check_once, clock)
        await started(self.shards.run_once, clock)
        self.feeder = feeder.service.build_feeder(store.waiting, self.shards, self.catalogue, clock)
        await started(self.feeder.refill_once, clock)
        ports = SchedulerPorts(
            GuardedLedger(store.ledger, self.shards),
            self.feeder.array,
            self.catalogue,
            NoFiles(),
            OneKey(),
            NodePauses(self._clock_check, self.shards),
            Unwatched(),
        )
        self.requests = RequestService(ports, clock)
        self.ready = True
        return {
            "catalogue": partial(keep_fresh, self.catalogue, clock),
            "clock check": self._clock_check.run,
            "shards": self.shards.run,
            "feeder": self.feeder.run,
        }

    async def answer(self, request: SchedulerRequest) -> SchedulerReply:
        return await self.requests.answer(request)

    async def upload(self, instance_id: int, *, name: str, nbytes: int, md5: str) -> bool:
        """Record a complete output on disk."""
        known: bool = await self._store.uploads.record_upload(
            instance_id, name=name, nbytes=nbytes, md5=md5, completed_at=self._clock.now()
        )
        return known


class Background:
    """The background process; each periodic task runs in the process that has its lock."""

    def __init__(self, store: Any, link: Link, clock: NodeClock, table: LockTable, process: int) -> None:
        self._store: Any = FaultyStore(store, link)
        self._clock = clock
        self._locks = DutyLocks(table, process, link, SHARED)
        self.duties: tuple[PeriodicTask, ...] = ()

    async def run(self) -> dict[str, Loop]:
        store, clock = self._store, self._clock
        catalogue = CatalogueCache(store.applications, clock, await started(store.applications.load_catalogue, clock))

        def settings() -> Settings:
            return catalogue.catalogue().settings

        ports = JobsPorts(
            store.unsettled, NoFiles(), store.overdue, store.outages, store.history, store.tails, store.notes
        )
        services = jobs.build.build(ports, catalogue.catalogue, clock, share=lambda: self._locks.share("validator"))
        orderer = Orderer(store.ordering, catalogue.catalogue, clock)
        relaxer = GateRelaxer(store.insight, store.notes, catalogue.catalogue, clock)
        ranking = hoststats.service.build(
            HostStatisticsPorts(store.applications, store.hav_tables, store.generations),
            lambda: settings().ranking,
            clock,
        )
        forecaster = Estimator(store.forecasting, store.forecasts, settings, clock, run_fit=in_line)
        rounds: tuple[tuple[str, Callable[[], Awaitable[object]], Callable[[], float]], ...] = (
            ("validator", services.validator.run_once, lambda: settings().lifecycle.validate_interval_s),
            ("sweeper", services.sweeper.run_once, lambda: settings().lifecycle.sweep_interval_s),
            ("ordering", orderer.run_once, lambda: settings().ordering.interval_s),
            ("host statistics", ranking.timer.run_once, lambda: OTHER_DUTIES_S),
            ("estimator", forecaster.run_once, lambda: settings().estimator.look_s),
            ("gates", relaxer.run_once, lambda: OTHER_DUTIES_S),
            ("tail copies", services.copier.run_once, lambda: settings().lifecycle.tail_interval_s),
        )
        self.duties = tuple(
            PeriodicTask(name, run_once, locks=self._locks, clock=clock, interval_s=interval_s)
            for name, run_once, interval_s in rounds
        )
        return {"catalogue": partial(keep_fresh, catalogue, clock), **{duty.name: duty.run for duty in self.duties}}


async def keep_fresh(catalogue: CatalogueCache, clock: NodeClock) -> None:
    """Refresh the catalogue of one process forever."""
    while True:
        await clock.sleep(REFRESH_S)
        try:
            await catalogue.refresh_once()
        except UnavailableError:
            continue  # keep the last one
