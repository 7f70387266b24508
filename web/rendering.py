"""Renders pages: templates, who looks at them, and the static files they name.

Each static file is read and compressed once, and served under an address with a digest of its content, to be kept for a
year.
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

from administration.access.who import csrf_of, person_of
from domain.clock import Clock
from web import moments

KEEP = "public, max-age=31536000, immutable"
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
LEVEL = 6  # of gzip; more takes seconds for the chart library and saves 1 %


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, as it is sent."""

    name: str
    kind: str
    digest: str
    plain: bytes
    packed: bytes


def read_asset(name: str, source: Traversable) -> Asset:
    """The file, compressed. Takes a while."""
    plain = source.read_bytes()
    kind = KINDS[name.rpartition(".")[2]]
    return Asset(name, kind, hashlib.sha256(plain).hexdigest()[:12], plain, gzip.compress(plain, LEVEL, mtime=0))


def sources() -> dict[str, Traversable]:
    """Where each file is."""
    own = {entry.name: entry for entry in files("web").joinpath("static").iterdir()}
    return own | {"plotly.min.js": files("plotly").joinpath("package_data", "plotly.min.js")}


class Assets:
    """Serves them. A large one is read when it is first asked for, in a thread."""

    def __init__(self, sources: Mapping[str, Traversable]) -> None:
        self._sources = sources
        self._kept: dict[str, Asset] = {}
        self._reading = asyncio.Lock()

    def address(self, name: str) -> str:
        """Where a page finds a file, relative to the console's own address."""
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
        """Changes with the file: its digest for our own, the release for the library's, which is large."""
        if name == "plotly.min.js":
            from plotly import __version__  # noqa: PLC0415  takes a while, and not every page has charts

            return str(__version__)
        return hashlib.sha256(self._sources[name].read_bytes()).hexdigest()[:12]


SHARED = "web"  # templates that every face uses
THEME_COOKIE = "muster_theme"
THEMES = ("auto", "light", "dark")

SECTIONS = (  # address, name, what it is for
    ("", "Overview", "How the project is doing"),
    ("batches", "Batches", "What is asked for, and when it will be done"),
    ("hosts", "Hosts", "Volunteers' computers"),
    ("percentiles", "Percentiles", "Who is fast and reliable, and the thresholds"),
    ("unschedulable", "Unschedulable work", "Work that every recent host refused, with the reasons"),
    ("ordering", "Ordering", "Whose batch goes first, and why"),
    ("simulate", "Simulate", "Try rules before trying them on people"),
    ("settings", "Settings", "Every knob, with who turned it"),
)

SAID = {  # what the last form did, by the word in the address it leads to
    "aborted": "The batch is ended. Its unsent jobs are cancelled; hosts are told with their next call.",
    "importance": "Saved. The batch takes its new place with the next ordering, in a minute or so.",
    "deadline": "The deadline is moved. Hosts keep the due dates they were given.",
    "submitted": "The batch is submitted. Its first jobs are in the workers' arrays within seconds.",
    "thresholds": "Saved. Request workers go by it within seconds.",
    "setting": "Saved. Running services follow within seconds.",
    "reset": "The default holds again.",
    "simulation": "The simulation was started; this page follows it.",
    "cancelled": "The simulation is stopped.",
    "password": "Your password is changed. Other sessions of yours have ended.",
    "order": "Saved. Batches are ordered by it from the next ordering on, in a minute or so.",
}


@dataclass(frozen=True, slots=True)
class Crumb:
    """A step above a page."""

    address: str
    name: str


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """What a template is filled with. `section` is the address of the section it belongs to."""

    template: str
    title: str
    section: str = ""
    crumbs: tuple[Crumb, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    charts: bool = False
    every_s: int = 0  # how often live parts are fetched again where there is JavaScript; 0 = never
    status: int = 200


@dataclass(frozen=True, slots=True)
class Look:
    """What pages of one kind have in common: whose templates they are, their sections, what forms did, who looks.

    `first` is the page one comes to, its address and name. `above`: the page above all these is theirs too.
    """

    package: str = "console"
    layout: str = "base.html"
    first: tuple[str, str] = ("", "Overview")
    above: bool = False
    sections: Sequence[tuple[str, str, str]] = SECTIONS
    said: Mapping[str, str] = field(default_factory=lambda: SAID)
    who: Callable[[web.Request], object] = person_of


class Renderer:
    """Makes responses of pages. `root` is the path of the pages, without a slash at its end."""

    def __init__(
        self, assets: Assets, root: str, project_name: Callable[[], str], clock: Clock, look: Look | None = None
    ) -> None:
        self.root = root
        self.look = look or Look()
        self.home = f"{root.rpartition('/')[0] if self.look.above else root}/"
        self._assets = assets
        self._project_name = project_name
        self._clock = clock
        self._environment = environment(self.look.package)

    def inside(self, address: str) -> str:
        """An address of these pages; for any other, which a forged link may name, the first of them."""
        own = address == self.home or address.startswith(f"{self.root}/")
        safe = own and address.isprintable() and "\\" not in address
        return address if safe else f"{self.root}/{self.look.first[0]}"

    def response(self, request: web.Request, page: RenderedPage) -> web.Response:
        """The page, for who asks."""
        kept = {"Cache-Control": "no-store"}
        text = self.text(request, page)
        return web.Response(text=text, status=page.status, content_type="text/html", headers=kept)

    def text(self, request: web.Request, page: RenderedPage) -> str:
        theme = request.cookies.get(THEME_COOKIE, "auto")
        now = self._clock.now()
        return self._environment.get_template(page.template).render(
            **page.values,
            page=page,
            root=self.root,
            home=self.home,
            look=self.look,
            sections=self.look.sections,
            project_name=self._project_name(),
            person=self.look.who(request),
            csrf=csrf_of(request),
            theme=theme if theme in THEMES else "auto",
            themes=THEMES,
            here=request.path_qs,
            said=self.look.said.get(request.query.get("said", "")),
            now=now,
            asset=lambda name: f"{self.root}/{self._assets.address(name)}",
            time=lambda at: moments.moment(at, now),
        )


def environment(package: str = "console") -> jinja2.Environment:
    """Templates of a package and those every face shares, with what they may call; what is put into one is escaped."""
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(one) for one in dict.fromkeys((package, SHARED))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        length=moments.length,
        num=moments.number,
        rate=moments.rate,
        pct=moments.percent,
        qty=moments.quantity,
        plural=lambda count, one, many="": moments.plural(count, one, many),
        stamp=moments.stamp,
        iso=moments.iso,
        length_of=len,
    )
    return made
