"""Renders pages from templates and serves static files.

Each static file is read and compressed once. Its URL contains a digest of its content, so that browsers can cache it
for a year.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable

import jinja2
from aiohttp import web
from markupsafe import Markup

from administration.access.who import csrf_of, person_of
from domain.access import Role
from domain.clock import Clock
from domain.hosts import host_in_words
from domain.refusals import code_in_words
from domain.settings import Settings
from domain.units import HostId
from domain.views import SettingChange
from web import form_words, moments
from web.manual import help_address

KEEP = "public, max-age=31536000, immutable"
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file in plain and compressed form."""

    name: str
    kind: str
    digest: str
    plain: bytes
    packed: bytes


def read_asset(name: str, source: Traversable) -> Asset:
    """Read and compress the file. Slow."""
    plain = source.read_bytes()
    kind = KINDS[name.rpartition(".")[2]]
    return Asset(name, kind, hashlib.sha256(plain).hexdigest()[:12], plain, gzip.compress(plain, mtime=0))


def sources() -> dict[str, Traversable]:
    """Return the location of each file."""
    return {entry.name: entry for entry in files("web").joinpath("static").iterdir()}


class Assets:
    """Serves static files. A file is read, in a thread, when first requested."""

    def __init__(self, sources: Mapping[str, Traversable]) -> None:
        self._sources = sources
        self._kept: dict[str, Asset] = {}
        self._reading = asyncio.Lock()

    def address(self, name: str) -> str:
        """Return a file's URL relative to the console's root."""
        return f"static/{self._version(name)}/{name}"

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/static/{version}/{name}", self.serve, name="static")]

    async def serve(self, request: web.Request) -> web.Response:
        asset = await self._asset(request.match_info["name"])
        headers = {"Cache-Control": KEEP, "Vary": "Accept-Encoding", "ETag": f'"{asset.digest}"'}
        if asset.digest in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            packed = {**headers, "Content-Encoding": "gzip"}
            return web.Response(body=asset.packed, content_type=asset.kind, charset="utf-8", headers=packed)
        return web.Response(body=asset.plain, content_type=asset.kind, charset="utf-8", headers=headers)

    async def _asset(self, name: str) -> Asset:
        if name not in self._sources:
            raise web.HTTPNotFound(text="no such file")
        async with self._reading:
            if name not in self._kept:
                self._kept[name] = await asyncio.to_thread(read_asset, name, self._sources[name])
        return self._kept[name]

    def _version(self, name: str) -> str:
        """Return a string that changes with the file."""
        return hashlib.sha256(self._sources[name].read_bytes()).hexdigest()[:12]


SHARED = "web"  # package of the shared templates
THEME_COOKIE = "muster_theme"
THEMES = ("auto", "light", "dark")

SECTIONS = (  # address, name, description
    ("", "Overview", "State of the project"),
    ("batches", "Batches", "Submitted work and forecasts"),
    ("hosts", "Hosts", "Volunteers' computers"),
    ("volunteers", "Volunteers", "Volunteers and their hosts"),
    ("apps", "Apps", "Applications and their versions"),
    ("restrictions", "Pauses and bans", "Paused work, and banned or limited hosts and volunteers"),
    ("percentiles", "Thresholds", "How fast and reliable a host must be for urgent jobs"),
    ("unschedulable", "Unschedulable work", "Work that no recent host could take, with the reasons"),
    ("ordering", "Ordering", "The order of batches, and the reasons"),
    ("simulate", "Simulate", "Try scheduling rules on simulated hosts"),
    ("news", "News", "What volunteers' clients show as notices"),
    ("notifications", "Notifications", "Messages by e-mail and webhook about batches and apps"),
    ("settings", "Settings", "All settings and their history"),
)

PROJECT = (  # address, name, description, required role
    ("people", "People", "Who may sign in, with roles and sessions", Role.OPERATOR),
    ("accounts", "Accounts", "Shares, usage, grants and limits of accounts and submitters", Role.VIEWER),
    ("tokens", "Tokens", "Credentials of programs that use the API", Role.VIEWER),
    ("audit", "Audit trail", "Who changed what, and when", Role.OPERATOR),
)

SAID = {  # messages by result code of the last form
    "aborted": "The batch has been aborted. Its unsent instances are cancelled; hosts drop theirs at their next "
    "request.",
    "ended": "The selected batches have been ended. Hosts drop their instances at their next request.",
    "importance": "",  # the page of the batch says where it moves
    "unchanged": "Nothing was changed: these are the present values.",
    "deadline": "The deadline has been moved. Instances in progress keep their due dates.",
    "not_first": "The deadline has been moved. Instances in progress keep their due dates.",
    "submitted": "The batch has been submitted.",
    "retried": "The failed jobs are open again. New instances of them are created within a minute.",
    "thresholds": "Saved. It applies to the next requests, within seconds.",
    "setting": "Saved. It takes effect within seconds.",
    "reset": "The setting has been reset to its default, which takes effect within seconds.",
    "cancelled": "The simulation has been stopped.",
    "asked": "A message to the address asks to confirm it. The subscription starts then.",
    "subscription": "Saved. It applies from the next event on.",
    "tested": "A test message follows within seconds. Reload the page to see its outcome.",
    "published": "Published. Clients show it within a day.",
    "withdrawn": "The news is deleted. Clients that have shown it keep it.",
    "password": "Your password has been changed. Your other sessions are signed out.",
    "saved": "Saved.",
    "sessions": "All sessions of this user have ended.",
    "deleted": "Deleted.",
    "revoked": "The token has been revoked. Programs that use it are refused from now on.",
    "usage": "The recorded usage has been reset. The next ordering starts from 0.",
    "paused": "Paused. It takes effect within seconds. Jobs in progress continue.",
    "restricted": "Saved. It applies to the next requests, within seconds.",
    "resumed": "Resumed. Within seconds, its jobs are sent again, in their order.",
    "project_resumed": "The project is resumed. Within seconds, its batches are sent again, in their order.",
    "lifted": "Lifted. It applies to the next requests, within seconds.",
    "version_offered": "Offered. Within seconds, hosts get jobs with it if it is the highest version of its kind.",
    "version_deprecated": "Deprecated. Within seconds, no more jobs are sent with it. Those in progress continue.",
    "version_withdrawn": "Withdrawn. Within seconds, no more jobs are sent with it. Those in progress continue.",
    "version_aborted": "Withdrawn. Within seconds, no more jobs are sent with it. Hosts drop those in progress at "
    "their next requests.",
    "version": "Saved. It takes effect within seconds.",
    "order": "Saved. The next ordering applies it, within about a minute.",
}


@dataclass(frozen=True, slots=True)
class Crumb:
    """A breadcrumb."""

    address: str
    name: str


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A template and its values. `section` is the address of the page's section."""

    template: str
    title: str
    section: str = ""
    crumbs: tuple[Crumb, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    charts: bool = False
    every_s: int = 0  # interval at which live parts are refreshed if JavaScript is enabled; 0 = never
    status: int = 200
    pause: SettingChange | None = None  # the change that paused the project
    hosts: Mapping[HostId, str] = field(default_factory=dict)  # names of the hosts to which the page links


@dataclass(frozen=True, slots=True)
class PageStyle:
    """Common parts of a set of pages: templates, sections, form messages, and the signed-in user.

    `first` is the address and name of the start page. `above`: the page above the root belongs to the set.
    `for_operators`: addresses of sections that only operators may see.
    """

    package: str = "console"
    layout: str = "base.html"
    first: tuple[str, str] = ("", "Overview")
    above: bool = False
    sections: Sequence[tuple[str, str, str]] = SECTIONS
    project: Sequence[tuple[str, str, str, Role]] = PROJECT  # sections that administer the project
    said: Mapping[str, str] = field(default_factory=lambda: SAID)
    who: Callable[[web.Request], object] = person_of
    for_operators: frozenset[str] = frozenset({"volunteers"})


class Renderer:
    """Renders pages to responses. `root` is the path of the pages without a trailing slash."""

    def __init__(
        self, assets: Assets, root: str, project_name: Callable[[], str], clock: Clock, style: PageStyle | None = None
    ) -> None:
        self.root = root
        self.style = style or PageStyle()
        self.home = f"{root.rpartition('/')[0] if self.style.above else root}/"
        self._assets = assets
        self._project_name = project_name
        self._clock = clock
        self._environment = environment(self.style.package)

    def inside(self, address: str) -> str:
        """Return the address if it belongs to these pages, otherwise the start page, because links may be forged."""
        own = address == self.home or address.startswith(f"{self.root}/")
        safe = own and address.isprintable() and "\\" not in address
        return address if safe else f"{self.root}/{self.style.first[0]}"

    def response(self, request: web.Request, page: RenderedPage) -> web.Response:
        """Render the page for the signed-in user."""
        kept = {"Cache-Control": "no-store"}
        text = self.text(request, page)
        return web.Response(text=text, status=page.status, content_type="text/html", headers=kept)

    def text(self, request: web.Request, page: RenderedPage) -> str:
        theme = request.cookies.get(THEME_COOKIE, "auto")
        now = self._clock.now()
        return self._environment.get_template(page.template).render(
            **{"mistake": None, "fields": {}, **page.values},
            page=page,
            root=self.root,
            home=self.home,
            style=self.style,
            sections=self.style.sections,
            project_name=self._project_name(),
            person=self.style.who(request),
            csrf=csrf_of(request),
            theme=theme if theme in THEMES else "auto",
            themes=THEMES,
            here=request.path_qs if request.method == "GET" else f"{self.root}/{page.section.strip('-')}",
            help=help_address(page.template),
            said=self.style.said.get(request.query.get("said", "")),
            now=now,
            asset=lambda name: f"{self.root}/{self._assets.address(name)}",
            time=lambda at: moments.moment(at, now),
            host_link=lambda host_id, page_of="": host_link(self.root, host_id, page.hosts.get(host_id, ""), page_of),
        )


def host_link(root: str, host_id: HostId, name: str, page_of: str = "") -> Markup:
    """Return the link to a host's page, or to one below it, with the host's name and number.

    >>> host_link("/console", HostId(60), "basil-117", "/why")
    Markup('<a href="/console/hosts/60/why">basil-117 (60)</a>')
    """
    return Markup('<a href="{}/hosts/{}{}">{}</a>').format(root, host_id, page_of, host_in_words(host_id, name))


def environment(package: str = "console") -> jinja2.Environment:
    """Return the environment with filters, a package's templates and the shared templates. Values are escaped."""
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(one) for one in dict.fromkeys((package, SHARED))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        in_form=form_words.in_form,
        at_field=form_words.at_field,
        with_code=form_words.with_code,
        with_settings=form_words.with_settings,
        length=moments.length,
        num=moments.number,
        credit=moments.credit,
        rate=moments.rate,
        pct=moments.percent,
        qty=moments.quantity,
        plural=lambda count, one, many="": moments.plural(count, one, many),
        stamp=moments.stamp,
        iso=moments.iso,
        host_words=lambda host: host_in_words(host.host_id, host.domain_name),
        refusal=code_in_words,
        length_of=len,
        default_of=Settings().as_mapping().get,
    )
    return made
