"""Authentication with a store in memory and a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from administration.access.authentication import Authenticator
from administration.access.sign_in import Cost, SignIn, stretched
from administration.access.who import admit, csrf_of, person_of, volunteer_of
from api.serving import problems
from domain.access import PersonRecord, Role
from domain.settings import Settings
from domain.units import Instant, Seconds
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.stores import as_postgres

CHEAP = Cost(2, 8, 1)
PROJECT_TOKEN = "p" * 64
PASSWORD = "correct horse"
Client = TestClient[web.Request, web.Application]


class ForwardClock:
    """Stands still until `forward` is called."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> Instant:
        return self.time

    def monotonic(self) -> Seconds:
        return Seconds(self.time - NOW)

    async def sleep(self, duration_s: float) -> None:
        self.forward(duration_s)

    def forward(self, by_s: float) -> None:
        self.time = Instant(self.time + by_s)


@dataclass(slots=True)
class World:
    store: MemoryStore
    clock: ForwardClock
    authenticator: Authenticator

    async def person(self, name: str = "ada", role: Role = Role.OPERATOR, *, one_time: bool = False) -> PersonRecord:
        until = Instant(self.clock.now() + 100) if one_time else None
        return await self.store.access.add_person(
            name,
            role=role,
            submitter_id=None,
            password=stretched(PASSWORD, CHEAP),
            one_time_until=until,
            now=self.clock.now(),
        )


def a_world(changes: Mapping[str, object] | None = None) -> World:
    store, clock = MemoryStore(), ForwardClock()
    settings = Settings.from_mapping(changes or {})
    known = as_postgres(store)
    signing = SignIn(known.access, known.volunteers, lambda: Settings().access, clock, cost=CHEAP)
    authenticator = Authenticator(
        known.access,
        known.volunteers,
        known.people,
        lambda: settings,
        clock,
        project_token=PROJECT_TOKEN,
        signing=signing,
    )
    return World(store, clock, authenticator)


@asynccontextmanager
async def served(world: World) -> AsyncIterator[Client]:
    """Serve pages for signing in and out, and one page per role."""
    authenticator = world.authenticator

    async def sign_in(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        response = web.Response(text="in")
        await authenticator.sign_in(request, str(form["name"]), str(form["password"]), response)
        return response

    async def sign_out(request: web.Request) -> web.StreamResponse:
        response = web.Response(text="out")
        await authenticator.sign_out(request, response)
        return response

    async def password(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        await authenticator.change_password(request, str(form["old"]), str(form["new"]))
        return web.Response(text="changed")

    async def who(request: web.Request) -> web.StreamResponse:
        person, volunteer = person_of(request), volunteer_of(request)
        name = volunteer.email if volunteer is not None else "anonymous" if person is None else person.name
        return web.json_response({"name": name, "csrf": csrf_of(request)})

    def who_of(role: Role) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handler(request: web.Request) -> web.StreamResponse:
            admit(request, role)
            return await who(request)

        return handler

    app = web.Application(middlewares=[problems, authenticator.middleware])
    app.add_routes(
        [
            web.post("/sign-in", sign_in),
            web.post("/sign-out", sign_out),
            web.post("/password", password),
            web.get("/who", who),
            web.post("/who", who),
            web.get("/viewer", who_of(Role.VIEWER)),
            web.get("/operator", who_of(Role.OPERATOR)),
            web.post("/operator", who_of(Role.OPERATOR)),
        ]
    )
    async with TestClient(TestServer(app)) as client:
        yield client
