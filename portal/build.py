"""Builds the volunteers' pages: the project's front page, and one application mounted at /volunteers."""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from administration.access.authentication import Authenticator
from administration.access.who import the_volunteer
from administration.accounts import AccountKeys
from domain.catalogue import CatalogueSource
from domain.clock import Clock
from feeder.array import JobArray
from portal.account import AccountPages, PreferencePages
from portal.addresses import AddressChanges
from portal.computers import ComputerPages, ResultPages
from portal.entry import SiteEntry
from portal.public import PublicPages
from portal.services import LOOK, PortalServices
from portal.teams import TeamPages
from store.postgres import PostgresStore
from web.guard import HEADERS, MOST_FORM_BYTES, ErrorPages, asked_as_known, headers
from web.rendering import Assets, Renderer, sources

PLACE = "/volunteers"
ENTRY = ("start", "join", "join_post", "sign_in", "sign_in_post", "sign_out", "static", "theme")
OPEN = frozenset({*ENTRY, "forgotten", "forgotten_post", "reset", "reset_post", "verify", "verify_post"})


@web.middleware
async def volunteers_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Require a signed-in volunteer, except for the open pages."""
    if request.match_info.route.name not in OPEN:
        the_volunteer(request)
    return await handler(request)


class Site:
    """The volunteers' pages. `application` is mounted below the master URL's path; `routes` are for the path itself."""

    def __init__(self, services: PortalServices, assets: Assets) -> None:
        self._entry = SiteEntry(services)
        self._renderer = services.renderer
        addresses = AddressChanges(services)
        self._public = PublicPages(services, addresses)
        errors = ErrorPages(services.renderer).middleware
        self.application = web.Application(
            middlewares=[
                headers,
                errors,
                services.authenticator.volunteers,
                volunteers_only,
                asked_as_known(LOOK.said),
            ],
            client_max_size=MOST_FORM_BYTES,
        )
        pages = (ComputerPages, ResultPages, TeamPages, PreferencePages)
        account = AccountPages(services, addresses)
        for page in (self._entry, account, *[kind(services) for kind in pages], assets):
            self.application.add_routes(page.routes())

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/", self.front), web.get(PLACE, self.inside), *self._public.routes()]

    async def front(self, request: web.Request) -> web.Response:
        """Return the front page. Clients read it too, so it does not query the database."""
        response = self._renderer.response(request, self._entry.front())
        response.headers.update(HEADERS)
        return response

    async def inside(self, request: web.Request) -> web.Response:
        return web.Response(status=303, headers={"Location": f"{self._renderer.root}/"})


def build_site(
    store: PostgresStore,
    source: CatalogueSource,
    authenticator: Authenticator,
    keys: AccountKeys,
    clock: Clock,
    array: JobArray | None = None,
) -> Site:
    """Build the volunteers' pages. Only the composition root calls this."""
    prefix = urlsplit(source.catalogue().settings.project.url).path.rstrip("/")
    assets = Assets(sources())
    renderer = Renderer(assets, prefix + PLACE, lambda: source.catalogue().settings.project.name, clock, LOOK)
    return Site(PortalServices(source, clock, authenticator, renderer, store, array, keys), assets)
