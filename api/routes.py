"""The JSON API: the commands over HTTP, served from one route table."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib.metadata import version
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from administration.access.authentication import Authenticator
from administration.accounts import AccountKeys
from administration.attention.service import AttentionViews
from administration.batches import Batches
from administration.explain.service import Explain
from administration.forecasts.service import ForecastViews
from administration.notifications.subscriptions import Subscriptions
from administration.results import Results
from administration.simulations.runs import SimulationRuns
from administration.thresholds.service import Thresholds
from api.access import AccessApi
from api.accounts import AccountsApi
from api.apps import AppsApi, PlanClassesApi
from api.batches import BatchesApi
from api.document import TryPage, openapi
from api.events import EventsApi, ProgressHub
from api.explaining import ArrayApi, ExplainingApi
from api.files import Files
from api.hosts import HostsApi
from api.notifications import NotificationsApi
from api.ordering import OrderingApi
from api.reading import MAX_BODY_BYTES
from api.restrictions import RestrictionsApi
from api.results import ResultsApi
from api.serving import Strangers, Table, problems
from api.settings import SettingsApi, SimulationsApi
from api.table import operations_of
from domain.clock import Clock
from domain.settings import Settings
from feeder.array import JobArray
from store.postgres import PostgresStore

OPEN = frozenset({"/", "/openapi.json", "/try.js", "/try.css"})  # reading the API's documentation requires no token


class Api:
    """The sub-application at /api/v1. `array` is the job array of the worker that serves requests."""

    def __init__(
        self,
        store: PostgresStore,
        batches: Batches,
        files: Files,
        results: Results,
        runs: SimulationRuns,
        keys: AccountKeys,
        authenticator: Authenticator,
        clock: Clock,
        *,
        settings: Callable[[], Settings],
        array: JobArray | None = None,
    ) -> None:
        self._authenticator = authenticator
        self._settings = settings
        self.thresholds = Thresholds(store, clock)
        self.subscriptions = Subscriptions(store.notifications, store.access, keys, settings, clock)
        self.hub = ProgressHub(store.views, store.listings, clock, lambda: settings().access.event_streams)
        attention = AttentionViews(store, settings, clock)
        self.table = Table(
            operations_of(
                BatchesApi(store, batches, ForecastViews(store, clock), clock),
                ResultsApi(store, results),
                EventsApi(self.hub, clock),
                AppsApi(store.applications, clock),
                files,
                PlanClassesApi(store.applications),
                HostsApi(store, attention, clock),
                ExplainingApi(Explain(store, clock, array, attention=attention)),
                ArrayApi(store, attention, clock),
                SettingsApi(store, self.thresholds, clock),
                SimulationsApi(store, runs, clock),
                OrderingApi(store, clock),
                AccountsApi(store, keys, clock),
                RestrictionsApi(store, clock),
                AccessApi(authenticator),
                NotificationsApi(self.subscriptions),
            ),
            authenticator,
            clock,
            store.settings,
        )

    @cached_property
    def document(self) -> bytes:
        """Return the OpenAPI document as JSON."""
        project = self._settings().project
        url = f"{urlsplit(project.url).path.rstrip('/')}/api/v1"
        made = openapi(self.table.routes, title=f"{project.name}: Muster's API", version=version("muster"), url=url)
        return msgspec.json.encode(made)

    def application(self) -> web.Application:
        """Return the sub-application to mount at /api/v1."""
        app = web.Application(
            middlewares=[problems, self._authenticator.middleware, Strangers(OPEN).middleware],
            client_max_size=MAX_BODY_BYTES,
        )
        app.add_routes(self.table.definitions())
        app.add_routes([web.get("/openapi.json", self.show_document), *TryPage().routes()])
        app.on_shutdown.append(self._end_streams)
        return app

    async def show_document(self, request: web.Request) -> web.Response:
        return web.Response(body=self.document, content_type="application/json")

    async def _end_streams(self, application: web.Application) -> None:
        await self.hub.close()
