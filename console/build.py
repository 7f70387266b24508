"""Builds the console as one application, mounted at /console. Only the composition root calls `build_console`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from aiohttp import web

from administration.access.authentication import Authenticator
from administration.access.who import NotSignedInError, person_of
from administration.attention.service import AttentionViews
from administration.batches import Batches
from administration.notifications.subscriptions import Subscriptions
from administration.results import Results
from administration.simulations.runs import SimulationRuns
from administration.thresholds.service import Thresholds
from console.account_pages import AccountTreePages
from console.apps import AppPages
from console.audit_page import AuditPage
from console.batch_forms import BatchForms, SelectedBatches
from console.batch_list import BatchListPage
from console.batch_page import BatchPages
from console.hosts import HostListPage, HostPages
from console.notifications import NotificationPages
from console.ordering_page import OrderingPages
from console.overview import AttentionPage, OverviewPage
from console.people_pages import PeoplePages, TokenPages
from console.percentiles import PercentilePages
from console.repeating import RepeatingPages
from console.restrictions import RestrictionPages
from console.settings_pages import SettingPages
from console.simulate import SimulatePages
from console.upload import UploadPages
from console.volunteers import NewsPages, VolunteerPages
from console.work_pages import InstancesPage, UnschedulablePage, WorkPages
from domain.catalogue import CatalogueSource
from domain.clock import Clock
from domain.errors import MusterError
from feeder.array import JobArray
from store.postgres import PostgresStore
from web.guard import MOST_FORM_BYTES, ErrorPages, asked_as_known, headers, people
from web.handlers import PageServices, get, post
from web.manual import Manual
from web.rendering import SAID, Assets, RenderedPage, Renderer, sources
from web.sign_in import SignInForm, SignInPages, new_password, status_of


class EntryPages(SignInPages[PageServices]):
    """Pages for signing in and out, and for the user's own password."""

    def __init__(self, services: PageServices) -> None:
        super().__init__(services, SignInForm("sign_in.html", "name", services.authenticator.sign_in, _told, dict))

    @get("/password", "password")
    async def password(self, request: web.Request) -> RenderedPage:
        return self._password(request, None)

    @post("/password", "password_change")
    async def change(self, request: web.Request) -> RenderedPage | web.Response:
        wrong = await new_password(request, self._services.authenticator.change_password)
        return self._services.go("", "password") if wrong is None else self._password(request, wrong)

    def _password(self, request: web.Request, wrong: MusterError | None) -> RenderedPage:
        person = person_of(request)
        if person is None:
            raise NotSignedInError
        values: dict[str, object] = {
            "must": person.must_change_password,
            "least": self._services.catalogue.settings.access.min_password_length,
            "wrong": wrong,
        }
        return RenderedPage("password.html", "Your password", "-", values=values, status=status_of(wrong))


def _told(wrong: MusterError | None) -> str | None:
    return None if wrong is None else f"{str(wrong).rstrip('.')}."


def build_console(
    store: PostgresStore,
    source: CatalogueSource,
    batches: Batches,
    results: Results,
    runs: SimulationRuns,
    thresholds: Thresholds,
    subscriptions: Subscriptions,
    authenticator: Authenticator,
    clock: Clock,
    array: JobArray | None = None,
) -> web.Application:
    """Return the console's application, whose root is below the master URL's path. On cleanup, it closes `runs`."""
    prefix = urlsplit(source.catalogue().settings.project.url).path.rstrip("/")
    assets = Assets(sources())
    renderer = Renderer(assets, f"{prefix}/console", lambda: source.catalogue().settings.project.name, clock)
    services = PageServices(source, clock, authenticator, renderer, store, array)
    attention = AttentionViews(store, lambda: source.catalogue().settings, clock)
    batch_pages = BatchPages(services, attention, f"{prefix}/api/v1")
    batch_list = BatchListPage(services, batches, attention)
    pages = (
        OverviewPage(services, attention),
        AttentionPage(services, attention),
        UploadPages(services, batches, attention),
        # must precede the list, where batches/{id} would match batches/new
        BatchForms(services, batches, batch_pages, attention),
        batch_list,
        SelectedBatches(services, batches, batch_list, attention),
        batch_pages,
        RepeatingPages(services, batches, attention),
        InstancesPage(services),
        WorkPages(services, results, f"{prefix}/api/v1"),
        HostListPage(services, attention),
        HostPages(services),
        VolunteerPages(services),
        AppPages(services, attention),
        RestrictionPages(services),
        PercentilePages(services, thresholds, runs),
        UnschedulablePage(services),
        OrderingPages(services),
        SimulatePages(services, runs),
        NewsPages(services),
        NotificationPages(services, subscriptions),
        SettingPages(services),
        PeoplePages(services),
        AccountTreePages(services),
        TokenPages(services),
        AuditPage(services),
        EntryPages(services),
        Manual(lambda: assets.address("console.css")),  # must precede the files, whose route would match its pages
        assets,
    )
    application = web.Application(
        middlewares=[
            headers,
            ErrorPages(renderer).middleware,
            authenticator.middleware,
            people,
            asked_as_known(SAID),
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
