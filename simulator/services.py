"""Runs the production services on one store, with stubs for files, keys and workers.

It makes no decisions itself. Loops of production are periodic tasks here: the calendar runs each at its interval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import hoststats.service
import jobs.build
from batch_estimator.service import Estimator, in_line
from domain.catalogue import Catalogue, without_stale
from domain.clock import Clock
from domain.deadline_rules import traits_of
from domain.errors import InvalidInputError
from domain.jobs import Input, instance_id_of
from domain.ranking import CutPoints, HostStatisticsRun
from domain.settings import Settings
from domain.units import HOUR_S, AppVersionId, BatchId, Instant, Seconds
from domain.volunteers import Credentials
from feeder.service import Feeder, build_feeder
from hoststats.ports import HostStatisticsPorts
from hoststats.service import TimerReport
from jobs.build import JobsPorts, JobsServices
from jobs.comparisons import Compared, Comparison, compare_here
from jobs.ordering.ordering_pass import Orderer
from jobs.requirements import InputSpec
from jobs.reserving import ClassSearch, Reserver, ReservingReport
from jobs.spec import parse_batch
from jobs.submission import SubmissionPorts, checked, write
from scheduler.service import RequestService, SchedulerPorts
from simulator.ports import Participant, Scenario, Submission
from simulator.recording import RecordedForecasts, RecordedLedger, RecordedOverdue, RecordedUnsettled, RunRecord
from store.memory import AllShards, MemoryStore
from store.postgres import PostgresStore
from wire.messages import SchedulerReply, SchedulerRequest


class CatalogueOfTheMoment:
    """Satisfies domain.catalogue.CatalogueSource. It reloads after changes and once an hour."""

    def __init__(self, store: AnyStore, clock: Clock, catalogue: Catalogue) -> None:
        self._store = store
        self._clock = clock
        self._catalogue = catalogue

    def catalogue(self) -> Catalogue:
        return self._catalogue

    async def refresh_once(self) -> Catalogue:
        self._catalogue = without_stale(await self._store.applications.load_catalogue(), self._clock.now())
        return self._catalogue


class NoFiles:
    """Satisfies the ports for files. Only names matter, nothing is fetched, and outputs are identified by their MD5."""

    def token(self, file_name: str, max_bytes: int) -> str:  # noqa: ARG002  the port's parameters
        return ""

    def upload_url(self) -> str:
        return "upload"

    def download_url(self, file_name: str) -> str:
        return file_name

    async def input_files(self, wanted: Sequence[InputSpec]) -> Sequence[Input]:
        if wanted:
            raise InvalidInputError("jobs.inputs", "no input files in a simulation", wanted[0])
        return ()

    at_once = 1

    async def compare(self, comparison: Comparison) -> Compared:
        """Compare outputs by their MD5, because there are no contents."""
        return compare_here(comparison, lambda _: None)


class OneKey:
    """Satisfies the scheduler's CodeSigning with one key, which every client receives in its first reply."""

    def public_key_text(self) -> str:
        return "1024\n00"

    def rotation_signature(self, client_key_text: str) -> str | None:  # noqa: ARG002
        return None


class NoPauses:
    """Satisfies the scheduler's Pauses. There are none, because virtual time has one clock."""

    def refuse_work_because(self, now: Instant) -> str | None:  # noqa: ARG002
        return None


AnyStore = MemoryStore | PostgresStore

# A worker refills its array every second, usually without any change. Clients contact the server every few hours, so
# this interval is short enough for them to find new work. The refill runs when a request arrives.
REFILL_S = Seconds(120.0)
CHECK_S = Seconds(300.0)  # likewise for tasks that are due about once an hour
SWEEP_S = Seconds(60.0)  # likewise for timeouts, which their grace period delays by minutes anyway
ORDER_S = Seconds(600.0)  # likewise for ordering batches, which happens every minute in production


# Forecasts are needed no more often by clients that contact the server every few hours; a scenario may override it.
PACE: Mapping[str, object] = {"estimator.pause_s": HOUR_S, "estimator.timer_s": 6 * HOUR_S}


@dataclass(frozen=True, slots=True)
class SimulatedTask:
    """A periodic task. `interval_s()` is read before each wait.

    `updates_catalogue(report)` returns whether the run changed anything that requests depend on; None: never.
    """

    name: str
    run_once: Callable[[], Awaitable[object]]
    interval_s: Callable[[], float]
    updates_catalogue: Callable[[object], bool] | None = None


MoreTasks = Callable[[AnyStore, CatalogueOfTheMoment, Clock], Sequence[SimulatedTask]]  # from packages above this one


class Services:
    """The services of one request worker and one background process on one store."""

    def __init__(
        self,
        store: AnyStore,
        catalogue: CatalogueOfTheMoment,
        clock: Clock,
        record: RunRecord,
    ) -> None:
        self._store = store
        self._clock = clock
        self._files = NoFiles()
        self.catalogue = catalogue
        ledger = RecordedLedger(store.ledger, record)
        self.feeder: Feeder = build_feeder(store.waiting, AllShards(), catalogue, clock)
        self.requests = RequestService(
            SchedulerPorts(ledger, self.feeder.array, catalogue, self._files, OneKey(), NoPauses(), record), clock
        )
        unsettled = RecordedUnsettled(store.unsettled, record)
        overdue = RecordedOverdue(store.overdue, record)
        ports = JobsPorts(unsettled, self._files, overdue, store.outages, store.history, store.tails, store.notes)
        self.jobs: JobsServices = jobs.build.build(ports, catalogue.catalogue, clock)
        self.orderer = Orderer(store.ordering, catalogue.catalogue, clock)
        self.reserver = Reserver(store.reserving, catalogue.catalogue, clock)
        self.class_looker = ClassSearch(store.reserving, catalogue.catalogue, clock)
        self.ranking = hoststats.service.build(
            HostStatisticsPorts(store.applications, store.hav_tables, store.generations),
            lambda: catalogue.catalogue().settings.ranking,
            clock,
        )
        self.estimator = Estimator(
            store.forecasting,
            RecordedForecasts(store.forecasts, record),
            lambda: catalogue.catalogue().settings,
            clock,
            run_fit=in_line,
        )

    def simulated_tasks(self) -> list[SimulatedTask]:
        """Return all periodic tasks except the feeder and the validator, which run on events."""

        def lifecycle(name: str) -> Callable[[], float]:
            return lambda: float(getattr(self.catalogue.catalogue().settings.lifecycle, name))

        def order_s() -> float:
            return max(ORDER_S, self.catalogue.catalogue().settings.ordering.interval_s)

        sweep_s = lifecycle("sweep_interval_s")
        return [
            SimulatedTask("sweeper", self.jobs.sweeper.run_once, lambda: max(SWEEP_S, sweep_s())),
            SimulatedTask(
                "host statistics",
                self.ranking.timer.run_once,
                lambda: CHECK_S,
                lambda report: isinstance(report, TimerReport) and report.run is not None,
            ),
            SimulatedTask("estimator", self.estimator.run_once, lambda: CHECK_S),
            SimulatedTask("ordering", self.orderer.run_once, order_s),
            SimulatedTask(
                "reservations",
                self.reserver.run_once,
                order_s,
                lambda report: isinstance(report, ReservingReport) and report.changed,
            ),
            # The last task reads the catalogue right after this one; cut points become stale with time.
            SimulatedTask("host classes", self.class_looker.run_once, lambda: HOUR_S),
            SimulatedTask("tail copies", self.jobs.copier.run_once, lifecycle("tail_interval_s")),
            SimulatedTask(
                "acceleration",
                self.jobs.accelerator.run_once,
                lifecycle("acceleration_interval_s"),
                lambda _: traits_of(self.catalogue.catalogue().settings.deadline).accelerates,
            ),
            SimulatedTask("catalogue", self.catalogue.refresh_once, lambda: HOUR_S),
        ]

    async def answer(self, request: SchedulerRequest, now: Instant) -> SchedulerReply:
        """Record the client's uploads, refill the array as its feeder would have done, and answer the request."""
        await self._upload(request, now)
        await self._feed(now)
        return await self.requests.answer(request)

    async def _upload(self, request: SchedulerRequest, now: Instant) -> None:
        for result in request.results:
            instance_id = instance_id_of(result.name) if result.files else None
            if instance_id is None:
                continue
            for file in result.files:
                await self._store.uploads.record_upload(
                    instance_id, name=file.name, nbytes=int(file.nbytes), md5=file.md5, completed_at=now
                )

    async def _feed(self, now: Instant) -> None:
        """Refill the array as the feeder would have done since the last request. Only its last refill matters."""
        last, settings = self.feeder.last, self.catalogue.catalogue().settings.feeder
        if last is None or now - last.started_at >= max(REFILL_S, settings.interval_s):
            await self.feeder.refill_once()
        elif self.feeder.array.level.low.is_set():
            done = await self.feeder.fill_up_once()
            if done.found_nothing:
                self.feeder.array.level.rest()

    async def submit(self, submission: Submission) -> BatchId:
        ports = SubmissionPorts(self._store.submissions, self._store.people, self._store.applications, self._files)
        settings = self.catalogue.catalogue().settings
        spec = parse_batch(submission.batch, files=settings.files)
        batch_id, _ = await write(
            await checked(spec, ports=ports, by_operator=True),
            submissions=ports.submissions,
            ordering=settings.ordering,
            clock=self._clock,
            logical_end_at=submission.logical_end_at,
        )
        if submission.logical_end_at is not None:
            await self.orderer.run_once()
        return batch_id


ACCOUNT = "default"


async def create_project(
    store: AnyStore,
    scenario: Scenario,
    volunteers: Sequence[Participant],
    settings: Mapping[str, object],
    clock: Clock,
) -> Mapping[AppVersionId, AppVersionId]:
    """Create the scenario's project in an empty store, and return the ids of the given versions' copies.

    Raises InvalidInputError for an invalid setting.
    """
    Settings.from_mapping(settings)
    for key, value in sorted(settings.items()):
        await store.settings.set_setting(key, value, now=clock.now(), who="simulation", why="the scenario")
    copies = await _add_programs(store, scenario)
    known = {submitter.name for submitter in await store.people.submitters()}
    for one in scenario.submitters:
        if one.submitter in known:
            await store.people.set_submitter(one.submitter, shares=one.shares)
        else:
            await store.people.add_submitter(one.submitter, account=ACCOUNT, shares=one.shares, now=clock.now())
    for number, key in enumerate(dict.fromkeys(volunteer.authenticator for volunteer in volunteers), start=1):
        await store.volunteers.add_volunteer(
            f"volunteer{number}@simulation.invalid",
            name=f"volunteer {number}",
            credentials=Credentials(number.to_bytes(16), hashlib.sha256(key.encode()).digest()),
            cross_project_id=f"{number:032x}",
            beta=False,
            now=clock.now(),
        )
    return copies


async def _add_programs(store: AnyStore, scenario: Scenario) -> Mapping[AppVersionId, AppVersionId]:
    applications, copies, cuts = store.applications, dict[AppVersionId, AppVersionId](), list[CutPoints]()
    for program in scenario.programs:
        app = await applications.add_app(program.app)
        cuts += [replace(one, app_id=app.app_id) for one in program.cuts]
        for version in program.versions:
            await applications.put_plan_class(version.plan_class)
            copies[version.app_version_id] = await applications.add_app_version(replace(version, app_id=app.app_id))
    if cuts:
        started_at = max(one.computed_at for one in cuts)
        async with store.generations.new(now=started_at, full=True) as generation:
            assert generation is not None, "nothing else ranks hosts of a new project"
            run = HostStatisticsRun(generation.number, full=True, started_at=started_at, seconds=Seconds(0.0))
            await generation.publish(cuts, run)
    return copies
