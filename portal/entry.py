"""The volunteers' entry pages: the front page, joining, signing in and out, the theme."""

from __future__ import annotations

import asyncio

from aiohttp import web
from markupsafe import Markup

from administration.access.sign_in import address_of, checked_password, from_elsewhere, network_of
from administration.access.who import ForgedError, TooManyAttemptsError, WrongPasswordError, volunteer_of
from administration.accounts import add_volunteer, checked_email
from domain.errors import AlreadyExistsError, InvalidInputError, MusterError
from portal.services import PortalServices, apps_offered, title_of, told
from web.handlers import fields_of, get, post
from web.rate_limit import Buckets
from web.rendering import RenderedPage
from web.sign_in import SignInForm, SignInPages, status_of
from wire.attach import password_hash, scheduler_link

JOINS_PER_S = 1 / 60.0  # attempts to join per network: rate and burst
JOINS_AT_ONCE = 60
STRETCHES_AT_ONCE = 2


class SiteEntry(SignInPages[PortalServices]):
    """The pages that need no sign-in."""

    def __init__(self, services: PortalServices) -> None:
        super().__init__(
            services, SignInForm("enter.html", "email", services.authenticator.sign_in_volunteer, told, self._open)
        )
        self._joins = Buckets(services.clock)
        self._stretching = asyncio.Semaphore(STRETCHES_AT_ONCE)

    def front(self) -> RenderedPage:
        """Return the page at the master URL. People read it, and clients find the scheduler's URL in it."""
        catalogue = self._services.catalogue
        project = catalogue.settings.project
        values: dict[str, object] = {
            "url": project.url,
            "link": Markup(scheduler_link(f"{project.url}scheduler")),  # noqa: S704  escaped there
            "apps": [(title_of(app), app.beta) for app in apps_offered(catalogue)],
            "open": project.account_creation,
        }
        return RenderedPage("front.html", project.name, "-", values=values)

    @get("/", "start")
    async def start(self, request: web.Request) -> web.Response:
        return self._services.go(self._services.renderer.style.first[0])

    # ------------------------------------------------------------------ a new account

    @get("/join", "join")
    async def ask_to_join(self, request: web.Request) -> RenderedPage | web.Response:
        if volunteer_of(request) is not None:
            return self._services.go("account")
        return self._join_form({}, None)

    @post("/join", "join_post")
    async def join(self, request: web.Request) -> RenderedPage | web.Response:
        """Create an account and sign in to it."""
        services, fields = self._services, await fields_of(request)
        project = services.catalogue.settings.project
        if from_elsewhere(request, project.url):
            raise ForgedError
        email, password = fields.get("email", "").strip(), fields.get("password", "")
        try:
            self._count(request)
            if not project.account_creation:
                raise InvalidInputError("account", "an account that an operator creates for you", "a new one")
            checked_password(password, least=project.min_password_length, name=checked_email(email))
            hashed = password_hash(password, email)
            async with self._stretching:
                account = await add_volunteer(
                    services.store.volunteers,
                    services.keys,
                    email,
                    name=fields.get("name", "").strip(),
                    password_hash=hashed,
                    now=services.clock.now(),
                )
            if "export" in fields:
                now = services.clock.now()
                await services.store.participation.set_export_consent(account.volunteer_id, now)
            response = services.go("account", "joined")
            await services.authenticator.sign_in_volunteer(request, email, password, response)
        except (InvalidInputError, AlreadyExistsError, TooManyAttemptsError, WrongPasswordError) as error:
            return self._join_form(fields, error)
        return response

    def _count(self, request: web.Request) -> None:
        network = network_of(address_of(request))
        wait_s = self._joins.wait_s(network, per_s=JOINS_PER_S, burst=JOINS_AT_ONCE)
        if wait_s:
            raise TooManyAttemptsError(wait_s, "joining was attempted from your network")

    def _join_form(self, fields: object, wrong: MusterError | None) -> RenderedPage:
        project = self._services.catalogue.settings.project
        values: dict[str, object] = {
            "fields": fields,
            "wrong": told(wrong),
            "known": isinstance(wrong, AlreadyExistsError),
            "open": project.account_creation,
            "least": project.min_password_length,
            "url": project.url,
        }
        return RenderedPage("join.html", "Join", "-", values=values, status=status_of(wrong))

    def _open(self) -> dict[str, object]:
        return {"open": self._services.catalogue.settings.project.account_creation}
