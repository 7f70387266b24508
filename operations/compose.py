"""The composition root: every concrete thing that runs is made here."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

import batch_estimator.build
import feeder.build
import feeder.ports
import hoststats.build
import jobs.build
import scheduler.build
import transfer.build
from batch_estimator.filling import TableSnapshots
from batch_estimator.ports import Ports as EstimatorPorts
from batch_estimator.service import Estimator
from domain.clock import Clock
from domain.settings import RankingSettings, Settings
from domain.units import HOUR_S, Seconds
from feeder.service import Feeder
from hoststats.build import HostStatisticsServices
from hoststats.ports import Ports as HostStatisticsPorts
from hoststats.timer import LOOK_EVERY_S
from jobs.comparing_pool import ComparingPool
from jobs.history import INTERVAL_S
from operations.access.door import AccessDoor
from operations.accounts import AccountKeys
from operations.api.files import Files
from operations.api.progress import ProgressHub
from operations.api.routes import Api
from operations.batches import Batches
from operations.catalogue import CatalogueCache
from operations.console.build import build_console
from operations.counters import RefillCounters, RequestCounters
from operations.door import LedgerDoor
from operations.duty import ROUND_S, Duty
from operations.entrance.buckets import Buckets
from operations.entrance.entrance import Entrance
from operations.entrance.hosts import HostLimit
from operations.entrance.malformed import AREA as MALFORMED
from operations.entrance.malformed import MalformedRequests
from operations.entrance.newcomers import Newcomers
from operations.metrics.board import Board, OwnBoard
from operations.metrics.build import BackgroundStatus, WorkerStatus
from operations.mounting import mounted, path_of
from operations.overdue import DutyWatch
from operations.pauses import ClockCheck, NodePauses
from operations.project import Project
from operations.pulse import BackgroundPulse, PulseTeller, WorkerPulse
from operations.relaxing import RELAX_EVERY_S, GateRelaxer
from operations.request_ids import PageCounters, RequestIds
from operations.results import Results
from operations.simulations.runs import SimulationRuns
from operations.site.attach import AttachFlow
from operations.site.build import PLACE, build_site
from scheduler.service import Ports as SchedulerPorts
from store.duties import DutyLocks
from store.postgres import PostgresStore, open_store
from store.shards import PostgresShards
from store.submissions import FINISH_ABORTS_S
from store.waiting import MARK_AGAIN_S
from transfer.identity import identity_of
from transfer.keys import ServingKeys, load_keys
from transfer.leftovers import LOOK_EVERY_S as LOOK_EVERY_FOLDER_S
from transfer.leftovers import LeftoverCleaner
from transfer.upload_folder import UploadFolder

Loop = Callable[[], Coroutine[None, None, None]]
LONG_ROUNDS_S = {  # time limits of duties whose rounds go through a whole large project
    "host classes": HOUR_S,
    "host statistics": Seconds(6 * HOUR_S),
    "estimator": HOUR_S,
    "history": HOUR_S,
    "marks of batches": HOUR_S,
    "leftover files": HOUR_S,
}


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """What a request worker runs: a web application, and loops by name; and what the loops go round."""

    application: web.Application
    tasks: dict[str, Loop]
    catalogue: CatalogueCache
    shards: PostgresShards
    feeder: Feeder
    door: AccessDoor
    progress: ProgressHub
    status: WorkerStatus
    pulse: PulseTeller
    malformed: MalformedRequests


@dataclass(frozen=True, slots=True)
class BackgroundParts:
    """What the background process runs: duties, from one catalogue."""

    catalogue: CatalogueCache
    duties: tuple[Duty, ...]
    locks: DutyLocks
    status: BackgroundStatus
    pulse: PulseTeller

    @property
    def tasks(self) -> dict[str, Loop]:
        """Loops by name."""
        measuring = {"measuring": self.status.reporter.run, "measuring the project": self.status.cluster.run}
        lasting = {"catalogue": self.catalogue.run, "pulse": self.pulse.run, "duty locks": self.locks.run, **measuring}
        return {**lasting, **{duty.name: duty.run for duty in self.duties}}


@asynccontextmanager
async def build_worker(
    project: Project, clock: Clock, *, board: Board | None = None, name: str = "worker 0"
) -> AsyncIterator[WorkerParts]:
    """A request worker, its job array filled once. `project.database_url` must be set.

    What it measures goes to the node's `board`, to one of its own without that.
    """
    assert project.database_url is not None
    store = await open_store(project.database_url, clock=clock)
    shards = store.shards()
    try:
        keys = await asyncio.to_thread(load_keys, project.keys_dir)
        catalogue = CatalogueCache(store.applications, clock, await store.applications.load_catalogue())
        clock_check = ClockCheck(store.clock, clock)
        pauses = NodePauses(clock_check, shards)
        counters = RequestCounters(clock)
        await clock_check.check_once()
        await shards.run_once()
        fed = feeder.build.build(feeder.ports.Ports(store.waiting, shards), catalogue, clock)
        await fed.refill_once()
        files = _transfer(store, keys, project, catalogue, clock)
        newcomers = Newcomers(store.arrivals, lambda: catalogue.catalogue().settings.server, clock)
        handler = scheduler.build.build_handler(
            SchedulerPorts(
                LedgerDoor(store.ledger, shards, newcomers),
                fed.array,
                catalogue,
                files.urls,
                files.signer,
                pauses,
                counters,
            ),
            clock,
            HostLimit(Buckets(clock), lambda: catalogue.catalogue().settings.server),
        )
        refills, pages = RefillCounters(lambda: fed.last, clock), PageCounters()
        status = WorkerStatus(
            name,
            board or OwnBoard(),
            store=store,
            shards=shards,
            feeder=fed,
            catalogue=catalogue,
            clock_check=clock_check,
            pauses=pauses,
            requests=counters,
            refills=refills,
            pages=pages,
            watch=DutyWatch(store.process_reports, clock),
            clock=clock,
        )
        account_keys = AccountKeys(keys.account_secret)
        door = AccessDoor(
            store.access,
            store.volunteers,
            store.people,
            lambda: catalogue.catalogue().settings,
            clock,
            project_token=account_keys.api_token(),
        )
        site = build_site(store, catalogue, door, account_keys, clock, fed.array)
        routes = [
            web.post("/scheduler", handler.handle),
            *files.routes,
            *AttachFlow(store.volunteers, door.signing, account_keys, catalogue, clock).routes(),
            *site.routes(),
            *status.pages.routes(),
        ]
        batches = Batches(store, files.downloads, clock)
        results = Results(store.views, store.waiting, UploadFolder(project.upload_dir))
        runs = SimulationRuns(store.simulations, clock)
        api = Api(
            store,
            batches,
            Files(store.applications, files.downloads, project, clock, max_bytes=Settings().files.max_input_bytes),
            results,
            runs,
            account_keys,
            door,
            clock,
            settings=lambda: catalogue.catalogue().settings,
            array=fed.array,
        )
        console = build_console(store, catalogue, batches, results, runs, api.thresholds, door, clock, fed.array)
        parts = {"/api/v1": api.application(), "/console": console, PLACE: site.application}
        application = mounted(routes, parts, catalogue.catalogue().settings.project.url)
        folder = await asyncio.to_thread(identity_of, project.upload_dir.parent)
        figures = WorkerPulse(counters, pages, fed.array, fed.report, catalogue, clock, folder=folder)
        pulse = PulseTeller(f"{platform.node()}: {name}", figures, store.process_reports, clock)
        prefix = path_of(catalogue.catalogue().settings.project.url)
        RequestIds(pages, clock, prefix).join(application)
        Entrance(
            Buckets(clock),
            lambda: catalogue.catalogue().settings.server,
            prefix=prefix,
            failed=counters.request_failed,
        ).join(application)
        loops: dict[str, Loop] = {
            "catalogue": catalogue.run,
            "clock check": clock_check.run,
            "shards": shards.run,
            "feeder": fed.run,
            "counters": counters.run,
            "refill counters": refills.run,
            "measuring": status.reporter.run,
            "pulse": pulse.run,
            "deadlines of duties": status.watch.run,
        }
        malformed = MalformedRequests(lambda: pages.note(MALFORMED, 400, 0.0), clock)
        yield WorkerParts(application, loops, catalogue, shards, fed, door, api.hub, status, pulse, malformed)
    finally:
        await shards.close()
        await store.close()


def _transfer(
    store: PostgresStore, keys: ServingKeys, project: Project, catalogue: CatalogueCache, clock: Clock
) -> transfer.build.Transfer:
    return transfer.build.build(
        store.uploads,
        keys,
        download_dir=project.download_dir,
        upload_dir=project.upload_dir,
        settings=lambda: catalogue.catalogue().settings,
        clock=clock,
    )


@asynccontextmanager
async def build_background(
    project: Project, clock: Clock, *, board: Board | None = None
) -> AsyncIterator[BackgroundParts]:
    """The background duties. `project.database_url` must be set."""
    assert project.database_url is not None
    store = await open_store(project.database_url, clock=clock)
    locks = store.duties()
    try:
        keys = await asyncio.to_thread(load_keys, project.keys_dir)
        catalogue = CatalogueCache(store.applications, clock, await store.applications.load_catalogue())
        files = _transfer(store, keys, project, catalogue, clock)

        def lifecycle(name: str) -> Callable[[], float]:
            return lambda: float(getattr(catalogue.catalogue().settings.lifecycle, name))

        comparing = ComparingPool(files.uploaded.path, lambda: catalogue.catalogue().settings.validation)
        ports = jobs.build.JobsPorts(
            store.unsettled, comparing, store.overdue, store.outages, store.history, store.tails, store.notes
        )
        services = jobs.build.build(ports, catalogue.catalogue, clock)
        orderer = jobs.build.build_orderer(store.ordering, catalogue.catalogue, clock)
        reserver = jobs.build.build_reserver(store.reserving, catalogue.catalogue, clock)
        looker = jobs.build.build_class_looker(store.reserving, catalogue.catalogue, clock)
        cleaner = LeftoverCleaner(
            UploadFolder(project.upload_dir), store.uploads, clock, lambda: catalogue.catalogue().settings.storage
        )
        relaxer = GateRelaxer(store.insight, store.notes, catalogue.catalogue, clock)
        ranking = host_statistics(store, lambda: catalogue.catalogue().settings.ranking, clock)
        forecaster = estimator(store, lambda: catalogue.catalogue().settings, clock)
        folder = await asyncio.to_thread(identity_of, project.upload_dir.parent)
        other_locks = {"leftover files": f"leftover files of {folder}"}  # each folder once, however many share it
        duties = tuple(
            Duty(
                name,
                run_once,
                locks=locks,
                clock=clock,
                interval_s=interval_s,
                lock=other_locks.get(name, ""),
                limit_s=LONG_ROUNDS_S.get(name, ROUND_S),
            )
            for name, run_once, interval_s in (
                ("validator", services.validator.run_once, lifecycle("validate_interval_s")),
                ("sweeper", services.sweeper.run_once, lifecycle("sweep_interval_s")),
                ("ordering", orderer.run_once, lambda: catalogue.catalogue().settings.ordering.interval_s),
                ("reservations", reserver.run_once, lambda: catalogue.catalogue().settings.ordering.interval_s),
                ("host classes", looker.run_once, lambda: HOUR_S),
                ("host statistics", ranking.timer.run_once, lambda: LOOK_EVERY_S),
                ("estimator", forecaster.run_once, lambda: catalogue.catalogue().settings.estimator.look_s),
                ("history", services.mover.run_once, lambda: INTERVAL_S),
                ("gates", relaxer.run_once, lambda: RELAX_EVERY_S),
                ("marks of batches", store.waiting.mark_again, lambda: MARK_AGAIN_S),
                ("leftover files", cleaner.run_once, lambda: LOOK_EVERY_FOLDER_S),
                ("aborts", store.submissions.finish_aborts, lambda: FINISH_ABORTS_S),
                ("tail copies", services.copier.run_once, lifecycle("tail_interval_s")),
                ("acceleration", services.accelerator.run_once, lifecycle("acceleration_interval_s")),
            )
        )
        status = BackgroundStatus(board or OwnBoard(), store=store, duties=duties, clock=clock)
        pulse = PulseTeller(
            f"{platform.node()}: background", BackgroundPulse(duties, clock), store.process_reports, clock
        )
        try:
            yield BackgroundParts(catalogue, duties, locks, status, pulse)
        finally:
            await comparing.close()
    finally:
        await locks.close()
        await store.close()


def host_statistics(
    store: PostgresStore, settings: Callable[[], RankingSettings], clock: Clock
) -> HostStatisticsServices:
    """The ranking of hosts, for a command or the background process."""
    ports = HostStatisticsPorts(store.applications, store.hav_tables, store.generations)
    return hoststats.build.build(ports, settings, clock)


def estimator(store: PostgresStore, settings: Callable[[], Settings], clock: Clock) -> Estimator:
    """The forecasts of completion, for a command or the background process."""
    snapshots = TableSnapshots(store.forecasting, settings)
    return batch_estimator.build.build(EstimatorPorts(snapshots, store.forecasts), lambda: settings().estimator, clock)
