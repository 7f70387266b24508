"""Every page of the console and of volunteers, and every API route, is timed or left out for a stated reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from administration.accounts import AccountKeys
from administration.batches import Batches
from administration.catalogue import CatalogueCache
from administration.project import Project
from administration.results import Results
from administration.simulations.runs import SimulationRuns
from api.files import Files
from api.routes import Api
from benchmarks.pages.__main__ import ANYBODYS, served
from benchmarks.pages.addresses import API, CONSOLE, LEFT_OUT, SITE, addresses, check_all_asked
from benchmarks.running import BenchmarkError
from console.build import build_console
from domain.settings import Settings
from portal.build import build_site
from runtime.compose import mounted
from tests.stores import as_postgres
from tests.unit.administration.access.world import a_world
from transfer.project_files import ProjectFiles

KEYS = AccountKeys(b"secret")


@pytest.fixture
async def routes(tmp_path: Path) -> list[str]:
    """Return the routes of a worker on a store in memory."""
    world = a_world()
    store, clock, authenticator = as_postgres(world.store), world.clock, world.authenticator
    stored = ProjectFiles(tmp_path)
    batches = Batches(store, stored, clock)
    results = Results(store.views, store.waiting, stored)
    runs = SimulationRuns(store.simulations, clock)
    catalogue = CatalogueCache(store.applications, clock, await store.applications.load_catalogue())
    files = Files(store.applications, stored, Project(tmp_path), clock, max_bytes=1)
    api = Api(store, batches, files, results, runs, KEYS, authenticator, clock, settings=Settings)
    console = build_console(
        store, catalogue, batches, results, runs, api.thresholds, api.subscriptions, authenticator, clock
    )
    site = build_site(store, catalogue, authenticator, KEYS, clock)
    parts = {API: api.application(), CONSOLE: console, SITE: site.application}
    return served(mounted(site.routes(), parts, Settings().project.url))


def test_nothing_that_is_served_is_left_out(routes: list[str]) -> None:
    assert len(routes) > 50
    check_all_asked(routes, addresses(ANYBODYS))


def test_what_is_left_out_is_served(routes: list[str]) -> None:
    assert LEFT_OUT.keys() <= set(routes)


def test_a_page_that_nothing_asks_for_ends_the_benchmark(routes: list[str]) -> None:
    with pytest.raises(BenchmarkError, match=r"no address for /api/v1/new, /console/new/\{id\}$"):
        check_all_asked([*routes, f"{CONSOLE}/new/{{id}}", f"{API}/new"], addresses(ANYBODYS))
