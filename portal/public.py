"""Public pages, the statistics files, the news feed, and the web RPCs that programs call with an account key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import structlog
from aiohttp import hdrs, web

from administration.access.sign_in import PASSWORD_HASH
from administration.accounts import ACCOUNT_KEY, NAME, authenticator_hash, checked_email
from administration.volunteers import choice_of, offered, preferring
from domain.errors import AlreadyExistsError, ConflictError, InvalidInputError, MusterError, NotFoundError
from domain.participation import ExportedVolunteer, ProjectFigures
from domain.units import AppId, Instant, Seconds, TeamId, VolunteerId, later
from domain.volunteers import Volunteer, VolunteerRecord
from portal.addresses import AddressChanges
from portal.services import PortalServices, title_of
from scheduler.reply import preferences_of
from transfer.downloads import OwnBytes
from web.guard import HEADERS
from web.handlers import LARGEST_INT, whole_number
from web.rendering import RenderedPage
from wire import attach, web_rpc
from wire.client import decode_preferences
from wire.messages import ProtocolError

log = structlog.get_logger()

TEAMS = 100
NEWS = 50
HOSTS = 200
FIGURES_FOR_S = Seconds(600.0)  # they are counted over whole tables
SILENT_S = Seconds(60.0)  # a process without a heartbeat for this long does not run
FORGOTTEN_S = Seconds(3600.0)  # and is not listed after this
MOST_PREFERENCES = 65_536  # characters
Query = Mapping[str, str]

KINDS = {
    "tables.xml": "text/xml",
    **{f"{one}.gz": "application/gzip" for one in ("user", "team", "host", "user_deleted", "host_deleted")},
}
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Statistics</title></head>
<body><ul>{}</ul></body></html>
"""


class StatisticsFiles:
    """Serves the files of the daily export under stats/, and a list of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/stats/", self.index), web.get("/stats/{name}", self.file)]

    async def index(self, request: web.Request) -> web.Response:
        there = await asyncio.to_thread(lambda: [name for name in KINDS if (self._folder / name).is_file()])
        links = "".join([f'<li><a href="{name}">{name}</a></li>' for name in there])
        return web.Response(text=PAGE.format(links or "<li>no export yet</li>"), content_type="text/html")

    async def file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in KINDS or not await asyncio.to_thread((self._folder / name).is_file):
            return web.Response(status=404, text="no such file\n")
        headers: dict[str, str] = {hdrs.CONTENT_TYPE: KINDS[name], hdrs.CACHE_CONTROL: "public, max-age=3600"}
        return OwnBytes(self._folder / name, headers=headers)


class PublicPages:
    """The web RPCs below the master URL, and the pages that everyone may see."""

    def __init__(self, services: PortalServices, addresses: AddressChanges) -> None:
        self._services = services
        self._addresses = addresses
        self._figures: tuple[Instant, ProjectFigures] | None = None
        self._counting = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/am_get_info.php", self._xml(self.get_info)),
            web.get("/am_set_info.php", self._xml(self.set_info)),
            web.post("/am_set_info.php", self._xml(self.set_info)),
            web.get("/team_lookup.php", self._xml(self.find_teams)),
            web.get("/notices.php", self._xml(self.notices)),
            web.get("/show_user.php", self.show_user),
            web.get("/server_status.php", self.status),
        ]

    def _xml(
        self, handler: Callable[[Query], Awaitable[bytes]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return a handler whose replies are XML. Errors are XML with status 200, as the protocol requires."""

        async def respond(request: web.Request) -> web.Response:
            fields: dict[str, str] = dict(request.query)
            if request.method == "POST":
                fields |= {key: value for key, value in (await request.post()).items() if isinstance(value, str)}
            try:
                body = await handler(fields)
            except MusterError as error:
                body = _error(error)
            return web.Response(body=body, content_type="text/xml", charset="utf-8")

        return respond

    async def get_info(self, query: Query) -> bytes:
        """Return the data of the account with the given key."""
        record, participation = await self._record(query), self._services.store.participation
        own = await participation.participation(record.volunteer.volunteer_id)
        team = None if own.team_id is None else await participation.team(own.team_id)
        exported = own.export_consent_at is not None
        return web_rpc.account_info(record.volunteer, team, preferences_of(record.volunteer), exported=exported)

    async def set_info(self, query: Query) -> bytes:
        """Change an account's name, team (0: none) and password hash; a new address requires a new password hash.

        If the project sends mail, the new address replaces the old one when its owner opens the link sent to it.
        `project_prefs` replaces the preferences for the project. Other fields of the original are ignored: this project
        does not have them.
        """
        record, store = await self._record(query), self._services.store
        volunteer = record.volunteer
        email, hashed = checked_email(query.get("email_addr") or record.email), query.get("password_hash", "").lower()
        name, team_id = query.get("name", "").strip(), query.get("teamid", "")
        if not NAME.fullmatch(name):
            raise InvalidInputError("name", "at most 254 characters, no control characters", name[:100])
        if hashed and not PASSWORD_HASH.fullmatch(hashed):
            raise InvalidInputError("password_hash", "32 hexadecimal digits", hashed[:40])
        if email != record.email and not hashed:
            raise InvalidInputError("password_hash", "the hash of the password and the new address", "none")
        wanted_prefs = self._preferring(volunteer, query.get("project_prefs", ""))
        if team_id:
            number = whole_number(team_id, "teamid", 0, LARGEST_INT)
            wanted = TeamId(number) if number else None
            await store.participation.join_team(volunteer.volunteer_id, wanted, now=self._services.clock.now())
        if name and name != volunteer.name:
            await store.volunteers.rename(volunteer.volunteer_id, name)
        if wanted_prefs is not volunteer:
            async with store.settings.editing(alone=False):
                await store.volunteers.set_volunteer(wanted_prefs, instead_of=volunteer)
        if hashed:
            await self._addresses.change(record, email, hashed)
        return web_rpc.account_changed()

    def _preferring(self, volunteer: Volunteer, text: str) -> Volunteer:
        """Return the volunteer with the preferences of an XML document, as am_get_info.php shows them.

        Raises InvalidInputError.
        """
        if not text:
            return volunteer
        try:
            found = decode_preferences(text[: MOST_PREFERENCES + 1].encode("utf-8", "replace"))
        except ProtocolError as error:
            raise InvalidInputError("project_prefs", "preferences as in am_get_info.php", str(error)) from None
        if found is None or len(text) > MOST_PREFERENCES:
            expected = f"an element project_preferences, in at most {MOST_PREFERENCES} characters"
            raise InvalidInputError("project_prefs", expected, text[:40])
        catalogue = self._services.catalogue
        apps = choice_of([AppId(one) for one in found.app_ids], {one.app_id for one in offered(catalogue)})
        wishes = {name: getattr(found, name) for name in ("no_cpu", "no_gpu", "beta", "max_jobs", "max_cpus")}
        now = self._services.clock.now()
        return preferring(volunteer, now=now, known=catalogue.apps, apps=apps, **wishes)

    async def find_teams(self, query: Query) -> bytes:
        """Return the team with the given number, or the teams with the given text in their names."""
        participation, now = self._services.store.participation, self._services.clock.now()
        if number := query.get("team_id"):
            team_id = TeamId(whole_number(number, "team_id", 1, LARGEST_INT))
            return web_rpc.one_team(await participation.team(team_id), now)
        name = query.get("team_name", "").strip()
        if not 1 <= len(name) <= 100 or "\x00" in name:
            raise InvalidInputError("team_name", "1 to 100 characters", name[:100])
        return web_rpc.teams(await participation.teams(name, now=now, limit=TEAMS), now)

    async def notices(self, query: Query) -> bytes:
        """Return the news as RSS. Ignores the original's parameters, which name an account."""
        project = self._services.catalogue.settings.project
        news = await self._services.store.participation.news(limit=NEWS)
        return web_rpc.notices(project.name, project.url, news, self._services.clock.now())

    async def show_user(self, request: web.Request) -> web.StreamResponse:
        """Show a volunteer who consented to the statistics, or the volunteer who owns the account key `auth`."""
        if request.query.get("format") == "xml":
            return await self._xml(self._user)(request)
        try:
            shown, _ = await self._public(request.query)
        except MusterError:
            return self._page(
                request, RenderedPage("user.html", "Unknown volunteer", "-", values={"one": None}, status=404)
            )
        team = None if shown.team_id is None else await self._services.store.participation.team(shown.team_id)
        return self._page(request, RenderedPage("user.html", shown.name, "-", values={"one": shown, "team": team}))

    async def _user(self, query: Query) -> bytes:
        shown, is_owner = await self._public(query)
        views = self._services.store.volunteer_views
        hosts = await views.hosts(shown.volunteer_id, before=None, limit=HOSTS) if is_owner else None
        return web_rpc.user(shown, self._services.clock.now(), hosts)

    async def _public(self, query: Query) -> tuple[ExportedVolunteer, bool]:
        """Return a volunteer's public data, and whether the caller owns it. Raises NotFoundError without consent."""
        store, is_owner = self._services.store, bool(query.get("auth"))
        if is_owner:
            record = await self._record({"account_key": query["auth"]})
        else:
            volunteer_id = VolunteerId(whole_number(query.get("userid", ""), "userid", 1, LARGEST_INT))
            record = await store.volunteers.volunteer(volunteer_id)
        one = record.volunteer
        own = await store.participation.participation(one.volunteer_id)
        if own.export_consent_at is None and not is_owner:
            raise NotFoundError("public volunteer", one.volunteer_id)
        credit = (await store.volunteer_views.totals(one.volunteer_id)).credit
        public = ExportedVolunteer(one.volunteer_id, one.name, one.created_at, one.external_cpid, own.team_id, credit)
        return public, is_owner

    async def status(self, request: web.Request) -> web.StreamResponse:
        """Show the state of the project, as XML with `xml=1`, otherwise as a page."""
        services, now = self._services, self._services.clock.now()
        figures = await self._counted(now)
        processes = await services.store.process_reports.since(later(now, -FORGOTTEN_S))
        nodes: dict[str, str] = {}
        daemons = []
        for one in sorted(processes, key=lambda one: one.name):
            host, _, name = one.name.partition(": ")  # node names are not public
            node = nodes.setdefault(host, f"node {len(nodes) + 1}")
            daemons.append((node, name or one.kind, now - one.reported_at <= SILENT_S))
        totals = await services.store.listings.totals()
        apps = [
            web_rpc.AppStatus(
                app.app_id,
                title_of(app),
                sum(one.unsent for one in totals if one.app == app.name),
                sum(one.in_progress for one in totals if one.app == app.name),
            )
            for app in sorted(services.catalogue.apps.values(), key=lambda app: app.app_id)
            if not app.deprecated
        ]
        if request.query.get("xml"):
            return web.Response(body=web_rpc.status(figures, daemons, apps), content_type="text/xml", charset="utf-8")
        values: dict[str, object] = {"figures": figures, "daemons": daemons, "apps": apps}
        return self._page(request, RenderedPage("status.html", "Server status", "-", values=values))

    async def _counted(self, now: Instant) -> ProjectFigures:
        """Return the project's counts, at most ten minutes old."""
        async with self._counting:
            if self._figures is None or not 0.0 <= now - self._figures[0] < FIGURES_FOR_S:
                self._figures = now, await self._services.store.participation.figures(now)
            return self._figures[1]

    async def _record(self, query: Query) -> VolunteerRecord:
        """Return the volunteer with the account key. Raises NotFoundError."""
        key = query.get("account_key", "")
        if not ACCOUNT_KEY.fullmatch(key):
            raise NotFoundError("account with this", "key")
        return await self._services.store.volunteers.volunteer(None, key_hash=authenticator_hash(key))

    def _page(self, request: web.Request, page: RenderedPage) -> web.Response:
        response = self._services.renderer.response(request, page)
        response.headers.update(HEADERS)
        return response


def _error(error: MusterError) -> bytes:
    """Return the error as XML, with its number in the protocol."""
    match error:
        case NotFoundError():
            number = attach.ERROR_NO_SUCH_ACCOUNT
        case AlreadyExistsError():
            number = attach.ERROR_ACCOUNT_EXISTS
        case InvalidInputError(field="email"):
            number = attach.ERROR_BAD_EMAIL
        case InvalidInputError() | ConflictError():
            number = attach.ERROR_REFUSED
        case _:
            log.warning("web request failed", why=str(error))
            return attach.encode_error(attach.ERROR_PROJECT_DOWN, "The project is temporarily unavailable")
    return attach.encode_error(number, str(error))
