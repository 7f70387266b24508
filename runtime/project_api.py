"""Builds the API of a project, for a worker or for a single command on the project's own machine.

A command uses the API in both cases, so that it behaves the same locally and through a server.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from administration.access.authentication import Authenticator
from administration.accounts import AccountKeys
from administration.batches import Batches
from administration.project import Project
from administration.results import Results
from administration.simulations.runs import SimulationRuns
from api.files import Files
from api.routes import Api
from domain.clock import Clock
from domain.settings import Settings
from feeder.array import JobArray
from muster_client import Client
from runtime.project import open_database
from store.postgres import PostgresStore
from transfer.keys import load_keys
from transfer.project_files import ProjectFiles

PLACE = "/api/v1"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ProjectApi:
    """The API, and the use cases that it shares with the pages."""

    api: Api
    batches: Batches
    results: Results
    runs: SimulationRuns


def build_project_api(
    store: PostgresStore,
    project: Project,
    keys: AccountKeys,
    authenticator: Authenticator,
    clock: Clock,
    *,
    settings: Callable[[], Settings],
    array: JobArray | None = None,
) -> ProjectApi:
    """Build the API. `array` is this worker's job array; without it, each explanation fills its own array."""
    largest = Settings().files.max_input_bytes
    project_files = ProjectFiles(project.files_dir, lambda: settings().storage)
    batches = Batches(store, project_files, clock)
    results = Results(store.views, store.waiting, project_files)
    runs = SimulationRuns(store.simulations, clock)
    files = Files(store.applications, project_files, project, clock, max_bytes=largest)
    api = Api(store, batches, files, results, runs, keys, authenticator, clock, settings=settings, array=array)
    return ProjectApi(api, batches, results, runs)


@asynccontextmanager
async def local_client(project: Project, clock: Clock, *, user: str) -> AsyncIterator[Client]:
    """Yield a client of the project's own API that acts as `user` with all rights.

    Until the block ends, the API is served on a free port of the loopback interface, with a token created for this
    call.
    """
    async with open_database(project, clock) as store:
        settings = await store.settings.in_force()
        keys = AccountKeys(load_keys(project.keys_dir).account_secret)
        token = secrets.token_urlsafe(32)
        authenticator = Authenticator(
            store.access, store.volunteers, store.people, lambda: settings, clock, project_token=token, user=user
        )
        application = web.Application()
        application.add_subapp(
            PLACE,
            build_project_api(store, project, keys, authenticator, clock, settings=lambda: settings).api.application(),
        )
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, 0).start()
            [address] = runner.addresses
            async with Client(f"http://{LOOPBACK}:{address[1]}/", token) as client:
                yield client
        finally:
            await runner.cleanup()
