"""Puts together what each kind of process measures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from administration.catalogue import CatalogueCache
from domain.clock import Clock
from feeder.service import Feeder
from runtime.counters import RefillCounters, RequestCounters
from runtime.duty import Duty
from runtime.metrics import sources
from runtime.metrics.board import Board
from runtime.metrics.cluster import Cluster
from runtime.metrics.pages import Readers, StatusPages, worker_troubles
from runtime.metrics.reporter import Reporter
from runtime.overdue import DutyWatch
from runtime.pauses import ClockCheck, NodePauses
from runtime.request_ids import PageCounters
from store.locks import PostgresShards
from store.postgres import PostgresStore


@cache
def muster_version() -> str:
    """As installed; "unknown" of a copy that is not."""
    try:
        return version("muster")
    except PackageNotFoundError:
        return "unknown"


class WorkerStatus:
    """What a request worker measures, and the pages that tell it."""

    def __init__(
        self,
        name: str,
        board: Board,
        *,
        store: PostgresStore,
        shards: PostgresShards,
        feeder: Feeder,
        catalogue: CatalogueCache,
        clock_check: ClockCheck,
        pauses: NodePauses,
        requests: RequestCounters,
        refills: RefillCounters,
        pages: PageCounters,
        watch: DutyWatch,
        clock: Clock,
    ) -> None:
        self.watch = watch
        self.reporter = Reporter(
            name,
            board,
            (
                sources.of_process(clock.now(), muster_version()),
                lambda: sources.of_requests(requests),
                lambda: sources.of_pages(pages),
                lambda: sources.of_array(feeder, catalogue.catalogue()),
                lambda: sources.of_refills(feeder, refills, clock.now()),
                lambda: sources.of_cut_points(catalogue.catalogue(), clock.now()),
                lambda: sources.of_store(store.figures),
                lambda: sources.of_overdue(watch),
                lambda: sources.of_node(pauses, clock_check, shards, clock.now()),
            ),
            clock,
        )
        self.pages = StatusPages(
            board,
            lambda: worker_troubles(pauses.refuse_work_because(clock.now()), feeder.last, clock.now()),
            clock,
            refuses=Readers(lambda: catalogue.catalogue().settings.server.metrics_networks).refusal,
        )


class BackgroundStatus:
    """What the background process measures, of itself and of the whole project."""

    def __init__(self, board: Board, *, store: PostgresStore, duties: Sequence[Duty], clock: Clock) -> None:
        self.cluster = Cluster(store.insight, store.listings, store.generations, store.forecasts, store.figures, clock)
        self.reporter = Reporter(
            "background",
            board,
            (
                sources.of_process(clock.now(), muster_version()),
                lambda: sources.of_duties(duties),
                lambda: sources.of_store(store.figures),
                self.cluster.samples,
            ),
            clock,
        )
