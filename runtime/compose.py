"""The composition root, which constructs all objects of the running processes."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

import feeder.service
import hoststats.service
import jobs.build
import transfer.build
from administration.access.authentication import Authenticator
from administration.accounts import AccountKeys
from administration.attention.service import AttentionViews
from administration.catalogue import CatalogueCache
from administration.explain.fleet import JUDGE_EVERY_S, FleetJudge
from administration.gate_relaxation import RELAX_EVERY_S, GateRelaxer
from administration.mail import Mailer
from administration.notifications.delivery import EVERY_S as DELIVER_EVERY_S
from administration.notifications.delivery import Deliverer
from administration.notifications.detection import EVERY_S as WATCH_EVERY_S
from administration.notifications.detection import EventWatch
from administration.notifications.webhook import Webhooks
from administration.project import Project
from administration.statistics import LOOK_EVERY_S as LOOK_EVERY_EXPORT_S
from administration.statistics import StatisticsExport
from api.events import ProgressHub
from api.reading import MAX_BODY_BYTES
from batch_estimator.service import Estimator
from console.build import build_console
from domain.clock import Clock
from domain.settings import RankingSettings, Settings
from domain.units import HOUR_S, Seconds
from feeder.service import Feeder
from hoststats.ports import HostStatisticsPorts
from hoststats.service import LOOK_EVERY_S, HostStatisticsServices
from jobs.comparing_pool import ComparingPool
from jobs.ordering.ordering_pass import Orderer
from jobs.reserving import ClassSearch, Reserver
from jobs.sweeper import INTERVAL_S
from portal.attach import AttachFlow
from portal.build import PLACE, build_site
from portal.public import StatisticsFiles
from runtime.counters import RefillCounters, RequestCounters
from runtime.guards import ClockCheck, GuardedLedger, NodePauses
from runtime.heartbeats import BackgroundHeartbeat, DiskSpace, HeartbeatWriter, WorkerHeartbeat
from runtime.logs import PageCounters, RequestIds
from runtime.metrics import sources
from runtime.metrics.cluster import Cluster
from runtime.metrics.metrics_store import MetricsStore, OwnBoard
from runtime.metrics.pages import Readers, StatusPages, muster_version, worker_troubles
from runtime.metrics.sources import Reporter
from runtime.periodic_tasks import ROUND_S, DutyWatch, PeriodicTask
from runtime.project_api import PLACE as API_PLACE
from runtime.project_api import build_project_api
from runtime.rate_limits.hosts import HostLimit, NewcomerLimit
from runtime.rate_limits.requests import AREA as MALFORMED
from runtime.rate_limits.requests import MalformedRequests, RequestLimits
from runtime.sampling import SAMPLE_EVERY_S, Sampler
from scheduler.handler import build_handler
from scheduler.service import SchedulerPorts
from store.locks import DutyLocks, PostgresShards
from store.postgres import PostgresStore, open_store
from store.submissions import FINISH_ABORTS_S
from store.waiting import MARK_AGAIN_S
from transfer.files import identity_of
from transfer.keys import load_keys
from transfer.project_files import ObjectCleaner, ProjectFiles
from transfer.upload_folder import LOOK_EVERY_S as LOOK_EVERY_FOLDER_S
from transfer.upload_folder import LeftoverCleaner, UploadFolder
from web.rate_limit import Buckets


def path_of(master_url: str) -> str:
    """Return the path of the master URL, without a trailing slash."""
    return urlsplit(master_url).path.rstrip("/")


def mounted(routes: list[web.RouteDef], parts: Mapping[str, web.Application], master_url: str) -> web.Application:
    """Return an application with the worker's routes, and the API and pages mounted, below the master URL's path."""
    prefix = path_of(master_url)
    # The root application's body limit also applies to the API; all other handlers read their bodies in pieces.
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.add_routes(
        [web.RouteDef(route.method, prefix + route.path, route.handler, route.kwargs) for route in routes]
    )
    for place, part in parts.items():
        application.add_subapp(prefix + place, part)
    return application


Loop = Callable[[], Coroutine[None, None, None]]
SHARED = frozenset({"validator"})  # tasks that run in every background process, which divide the jobs
LONG_ROUNDS_S = {  # time limits of tasks whose rounds cover a whole large project
    "host classes": HOUR_S,
    "host statistics": Seconds(6 * HOUR_S),
    "estimator": HOUR_S,
    "history": HOUR_S,
    "marks of batches": HOUR_S,
    "leftover files": HOUR_S,
    "leftover objects": HOUR_S,
    "statistics export": HOUR_S,
}


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The parts of a request worker: web application, loops by name, and the objects that the loops use."""

    application: web.Application
    tasks: dict[str, Loop]
    catalogue: CatalogueCache
    shards: PostgresShards
    feeder: Feeder
    authenticator: Authenticator
    progress: ProgressHub
    watch: DutyWatch
    reporter: Reporter
    heartbeat: HeartbeatWriter
    malformed: MalformedRequests


@dataclass(frozen=True, slots=True)
class BackgroundParts:
    """The parts of the background process: the periodic tasks, which share one catalogue."""

    catalogue: CatalogueCache
    duties: tuple[PeriodicTask, ...]
    locks: DutyLocks
    cluster: Cluster
    reporter: Reporter
    heartbeat: HeartbeatWriter

    @property
    def tasks(self) -> dict[str, Loop]:
        """Return the loops by name."""
        return {
            "catalogue": self.catalogue.run,
            "heartbeat": self.heartbeat.run,
            "duty locks": self.locks.run,
            "measuring": self.reporter.run,
            "measuring the project": self.cluster.run,
            **{duty.name: duty.run for duty in self.duties},
        }


@asynccontextmanager
async def build_worker(
    project: Project, clock: Clock, *, board: MetricsStore | None = None, name: str = "worker 0"
) -> AsyncIterator[WorkerParts]:
    """Build a request worker and fill its job array for the first time. Requires `project.database_url`.

    Its metrics go to the node's `board`; if that is None, to a metrics store of its own.
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
        fed = feeder.service.build_feeder(store.waiting, shards, catalogue, clock)
        await fed.refill_once()
        files = transfer.build.build(
            store.uploads,
            keys,
            ProjectFiles(project.files_dir, lambda: catalogue.catalogue().settings.storage),
            upload_dir=project.upload_dir,
            settings=lambda: catalogue.catalogue().settings,
            clock=clock,
        )
        newcomers = NewcomerLimit(store.arrivals, lambda: catalogue.catalogue().settings.server, clock)
        handler = build_handler(
            SchedulerPorts(
                GuardedLedger(store.ledger, shards, newcomers),
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
        watch = DutyWatch(store.process_reports, clock)
        board = board or OwnBoard()
        measured = (
            sources.of_process(clock.now(), muster_version()),
            lambda: sources.of_requests(counters),
            lambda: sources.of_pages(pages),
            lambda: sources.of_array(fed, catalogue.catalogue()),
            lambda: sources.of_refills(fed, refills, clock.now()),
            lambda: sources.of_cut_points(catalogue.catalogue(), clock.now()),
            lambda: sources.of_store(store.figures),
            lambda: sources.of_overdue(watch),
            lambda: sources.of_node(pauses, clock_check, shards, clock.now()),
        )
        reporter = Reporter(name, board, measured, clock)
        status = StatusPages(
            board,
            lambda: worker_troubles(pauses.refuse_work_because(clock.now()), fed.last, clock.now()),
            clock,
            refuses=Readers(lambda: catalogue.catalogue().settings.server.metrics_networks).refusal,
        )
        account_keys = AccountKeys(keys.account_secret)
        authenticator = Authenticator(
            store.access,
            store.volunteers,
            store.people,
            lambda: catalogue.catalogue().settings,
            clock,
            project_token=account_keys.api_token(),
        )
        site = build_site(store, catalogue, authenticator, account_keys, clock, fed.array)
        routes = [
            web.post("/scheduler", handler.handle),
            *files.routes,
            *AttachFlow(store.volunteers, authenticator.signing, account_keys, catalogue, clock).routes(),
            *site.routes(),
            *StatisticsFiles(project.statistics_dir).routes(),
            *status.routes(),
        ]
        served = build_project_api(
            store,
            project,
            account_keys,
            authenticator,
            clock,
            settings=lambda: catalogue.catalogue().settings,
            array=fed.array,
        )
        api, batches, results, runs = served.api, served.batches, served.results, served.runs
        console = build_console(
            store, catalogue, batches, results, runs, api.thresholds, api.subscriptions, authenticator, clock, fed.array
        )
        parts = {API_PLACE: api.application(), "/console": console, PLACE: site.application}
        application = mounted(routes, parts, catalogue.catalogue().settings.project.url)
        folder = await asyncio.to_thread(identity_of, project.upload_dir.parent)
        disks = DiskSpace((project.data_dir, project.upload_dir), clock)
        figures = WorkerHeartbeat(
            counters, pages, fed.array, fed.array.unrunnable, catalogue, clock, folder=folder, disks=disks.report
        )
        heartbeat = HeartbeatWriter(f"{platform.node()}: {name}", figures, store.process_reports, clock)
        prefix = path_of(catalogue.catalogue().settings.project.url)
        RequestIds(pages, clock, prefix).join(application)
        RequestLimits(
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
            "measuring": reporter.run,
            "heartbeat": heartbeat.run,
            "disks": disks.run,
            "deadlines of duties": watch.run,
        }
        malformed = MalformedRequests(lambda: pages.note(MALFORMED, 400, 0.0), clock)
        yield WorkerParts(
            application, loops, catalogue, shards, fed, authenticator, api.hub, watch, reporter, heartbeat, malformed
        )
    finally:
        await shards.close()
        await store.close()


@asynccontextmanager
async def build_background(
    project: Project, clock: Clock, *, board: MetricsStore | None = None
) -> AsyncIterator[BackgroundParts]:
    """Build the periodic tasks. Requires `project.database_url`."""
    assert project.database_url is not None
    store = await open_store(project.database_url, clock=clock)
    locks = store.duties(SHARED)
    try:
        catalogue = CatalogueCache(store.applications, clock, await store.applications.load_catalogue())
        files = ProjectFiles(project.files_dir, lambda: catalogue.catalogue().settings.storage)

        def lifecycle(name: str) -> Callable[[], float]:
            return lambda: float(getattr(catalogue.catalogue().settings.lifecycle, name))

        comparing = ComparingPool(files.local_outputs, lambda: catalogue.catalogue().settings.validation)
        ports = jobs.build.JobsPorts(
            store.unsettled, comparing, store.overdue, store.outages, store.history, store.tails, store.notes
        )
        services = jobs.build.build(ports, catalogue.catalogue, clock, share=lambda: locks.share("validator"))
        orderer = Orderer(store.ordering, catalogue.catalogue, clock)
        reserver = Reserver(store.reserving, catalogue.catalogue, clock)
        looker = ClassSearch(store.reserving, catalogue.catalogue, clock)
        cleaner = LeftoverCleaner(
            UploadFolder(project.upload_dir), store.uploads, clock, lambda: catalogue.catalogue().settings.storage
        )
        object_cleaner = ObjectCleaner(files, store.restoring, clock, lambda: catalogue.catalogue().settings.storage)
        exporter = StatisticsExport(store.participation, store.applications, project.statistics_dir, clock)
        sampler = Sampler(store, clock)
        judge = FleetJudge(store, clock)
        relaxer = GateRelaxer(store.insight, store.notes, catalogue.catalogue, clock)
        ranking = host_statistics(store, lambda: catalogue.catalogue().settings.ranking, clock)
        forecaster = estimator(store, lambda: catalogue.catalogue().settings, clock)
        watch, deliverer = notifiers(store, project, lambda: catalogue.catalogue().settings, clock)
        folder = await asyncio.to_thread(identity_of, project.upload_dir.parent)
        other_locks = {  # each folder once, even if several nodes share it
            name: f"{name} of {folder}" for name in ("leftover files", "statistics export")
        }
        on_lost = {"validator": services.validator.drop_comparisons, "unschedulable work": judge.forget}
        duties = tuple(
            PeriodicTask(
                name,
                run_once,
                locks=locks,
                clock=clock,
                interval_s=interval_s,
                lock=other_locks.get(name, ""),
                limit_s=LONG_ROUNDS_S.get(name, ROUND_S),
                on_lost=on_lost.get(name, lambda: None),
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
                ("leftover objects", object_cleaner.run_once, lambda: LOOK_EVERY_FOLDER_S),
                ("statistics export", exporter.run_once, lambda: LOOK_EVERY_EXPORT_S),
                ("aborts", store.submissions.finish_aborts, lambda: FINISH_ABORTS_S),
                ("tail copies", services.copier.run_once, lifecycle("tail_interval_s")),
                ("acceleration", services.accelerator.run_once, lifecycle("acceleration_interval_s")),
                ("samples", sampler.run_once, lambda: SAMPLE_EVERY_S),
                ("unschedulable work", judge.run_once, lambda: JUDGE_EVERY_S),
                ("events", watch.run_once, lambda: WATCH_EVERY_S),
                ("notifications", deliverer.run_once, lambda: DELIVER_EVERY_S),
            )
        )
        attention = AttentionViews(store, lambda: catalogue.catalogue().settings, clock)
        cluster = Cluster(store, attention, clock)
        measured = (
            sources.of_process(clock.now(), muster_version()),
            lambda: sources.of_duties(duties),
            lambda: sources.of_store(store.figures),
            cluster.samples,
        )
        reporter = Reporter("background", board or OwnBoard(), measured, clock)
        heartbeat = HeartbeatWriter(
            f"{platform.node()}: background",
            BackgroundHeartbeat(duties, judge.report, clock),
            store.process_reports,
            clock,
        )
        try:
            yield BackgroundParts(catalogue, duties, locks, cluster, reporter, heartbeat)
        finally:
            await comparing.close()
    finally:
        await locks.close()
        await store.close()


def host_statistics(
    store: PostgresStore, settings: Callable[[], RankingSettings], clock: Clock
) -> HostStatisticsServices:
    """Return the service that ranks hosts, for a command or the background process."""
    ports = HostStatisticsPorts(store.applications, store.hav_tables, store.generations)
    return hoststats.service.build(ports, settings, clock)


def notifiers(
    store: PostgresStore, project: Project, settings: Callable[[], Settings], clock: Clock
) -> tuple[EventWatch, Deliverer]:
    """Return the services that raise events and deliver notifications of them."""
    keys = AccountKeys(load_keys(project.keys_dir).account_secret)
    watch = EventWatch(store, settings, clock)
    webhooks = Webhooks(lambda: settings().notifications.private_networks)
    mailer = Mailer(lambda: settings().mail)
    return watch, Deliverer(store.notifications, keys, mailer, webhooks, settings, clock)


def estimator(store: PostgresStore, settings: Callable[[], Settings], clock: Clock) -> Estimator:
    """Return the estimator of completion times, for a command or the background process."""
    return Estimator(store.forecasting, store.forecasts, settings, clock)
