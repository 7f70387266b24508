"""The console as one application, to be mounted at /console. The composition root alone calls `build_console`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from aiohttp import web

from administration.access.authentication import AccessDoor
from administration.batches import Batches
from administration.ordering.priorities import KEYS
from administration.results import Results
from administration.simulations.runs import SimulationRuns
from administration.thresholds.keys import FORESEEN
from administration.thresholds.service import Thresholds
from console.batch_forms import BatchForms
from console.batch_list import BatchListPage
from console.batch_page import BatchPage
from console.entry import EntryPages
from console.host_list import HostListPage
from console.hosts import HostPages
from console.instances_page import InstancesPage
from console.nobody import NobodyPage
from console.ordering_page import OrderingPages
from console.overview import OverviewPage
from console.percentiles import PercentilePages
from console.settings_pages import SettingPages
from console.simulate import SimulatePages
from console.work_pages import WorkPages
from domain.catalogue import CatalogueSource
from domain.clock import Clock
from feeder.array import JobArray
from store.postgres import PostgresStore
from web.assets import Assets, sources
from web.desk import Desk
from web.guard import MOST_FORM_BYTES, ErrorPages, headers, people
from web.queries import Questions, asked_as_known
from web.rendering import SAID, Renderer

QUESTIONS: Questions = {
    "batches": ("q", "state", "qos", "app", "sort", "after"),
    "batch_instances": ("state", "after"),
    "batch_jobs": ("state", "after"),
    "batch_why": ("hosts",),
    "job_why": ("hosts",),
    "host": ("state", "after"),
    "hosts": ("show", "q", "days", "after"),
    "ordering": ("batch",),
    "ordering_preview": KEYS,
    "percentiles_preview": FORESEEN,
    "settings": ("q",),
    "sign_in": ("next",),
}


def build_console(
    store: PostgresStore,
    source: CatalogueSource,
    batches: Batches,
    results: Results,
    runs: SimulationRuns,
    thresholds: Thresholds,
    door: AccessDoor,
    clock: Clock,
    array: JobArray | None = None,
) -> web.Application:
    """All its pages. Its root is below the path of the master URL. Closing it ends `runs`."""
    prefix = urlsplit(source.catalogue().settings.project.url).path.rstrip("/")
    assets = Assets(sources())
    renderer = Renderer(assets, f"{prefix}/console", lambda: source.catalogue().settings.project.name, clock)
    desk = Desk(source, clock, door, renderer, store, array)
    pages = (
        OverviewPage(desk),
        BatchForms(desk, batches),  # before the list's pages: batches/new is no number
        BatchListPage(desk),
        BatchPage(desk, f"{prefix}/api/v1"),
        InstancesPage(desk),
        WorkPages(desk, results, f"{prefix}/api/v1"),
        HostListPage(desk),
        HostPages(desk),
        PercentilePages(desk, thresholds),
        NobodyPage(desk),
        OrderingPages(desk),
        SimulatePages(desk, runs),
        SettingPages(desk),
        EntryPages(desk),
        assets,
    )
    application = web.Application(
        middlewares=[
            headers,
            ErrorPages(renderer).middleware,
            door.middleware,
            people,
            asked_as_known(QUESTIONS, SAID),
        ],
        client_max_size=MOST_FORM_BYTES,
    )
    for page in pages:
        application.add_routes(page.routes())

    async def close(_: web.Application) -> AsyncIterator[None]:
        yield
        await runs.close()

    application.cleanup_ctx.append(close)
    return application
