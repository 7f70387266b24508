"""Every operation of the API: path, query and body are parsed as in production, and most operations run in memory.

An input is a line `operation?query` and the body. Operations that stretch a password (a tenth of a second, on purpose),
stream without end, start a process, or take a file are only parsed.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import msgspec.inspect
from aiohttp import web
from yarl import URL

from administration.accounts import AccountKeys
from administration.batches import Batches
from administration.project import Project
from administration.results import Results
from administration.simulations.runs import SimulationRuns
from api.files import Files
from api.reading import read_body, read_params
from api.routes import Api
from api.serving import problem_of
from api.table import Ask, File, Route, reply
from domain.access import Role
from domain.errors import MusterError
from domain.settings import Settings
from jobs.spec import parse_batch, size_of
from tests.fuzz.loops import lasting_loop
from tests.fuzz.requests import Requests
from tests.fuzz.watch import Run
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.administration.access.world import a_world
from tests.worlds import PROJECT, a_registered_version, a_registered_volunteer, a_submitted_batch
from transfer.project_files import ProjectFiles

ASKS = 300  # a world is replaced after this many requests
READ_ONLY = frozenset(
    {"add_person", "set_person", "invite_again", "add_volunteer", "change_password", "batch_events", "events"}
    | {"submit_batch", "add_version", "put_file", "simulate_thresholds", "fetch_outputs", "results_table"}
)
NOWHERE = Path("/nonexistent")
SAFE = "%&=+;/?:@!$'()*,~-._[]{}|^\\\"<>`"
BATCH = {
    "app": "pi",
    "qos": "throughput",
    "submitter": "ada",
    "name": "b",
    "account": "muster",
    "user_priority": 0,
    "jobs": {
        "count": 3,
        "fpops_est": 1e12,
        "fpops_bound": 1e13,
        "memory_bytes": 1e8,
        "disk_bytes": 1e8,
        "delay_bound_s": 86400,
        "ncpus": 1,
        "quorum": 1,
        "max_errors": 3,
        "max_instances": 10,
        "hr_type": 0,
        "command_line": "--part {i}",
        "validator": {"kind": "numeric", "tolerance": 1e-6},
        "inputs": [{"open_name": "in", "name": "in_1"}],
        "outputs": [{"open_name": "out", "max_bytes": 1000}],
    },
}
EMULATED = {"account": "root", "shares": 1, "children": [{"account": "a", "shares": 2, "usage": 3.5}]}


def an_api(store: MemoryStore | None = None) -> Api:
    """Return the API of a world in memory."""
    world = a_world()
    made = as_postgres(store or world.store)
    stored = ProjectFiles(NOWHERE)
    files = Files(made.applications, stored, Project(NOWHERE), world.clock, max_bytes=1)
    batches = Batches(made, stored, world.clock)
    results = Results(made.views, made.waiting, stored)
    runs = SimulationRuns(made.simulations, world.clock)
    return Api(
        made, batches, files, results, runs, AccountKeys(b"secret"), world.authenticator, world.clock, settings=Settings
    )


async def a_busy_api() -> Api:
    """Return an API with data of every kind."""
    store = MemoryStore()
    await a_registered_version(store)
    await a_registered_volunteer(store)
    await a_submitted_batch(store, 5)
    return an_api(store)


def api_target() -> Run:
    """Check that any input gets an answer or a problem document."""
    loop = lasting_loop()
    requests = Requests(loop)
    worlds: list[tuple[dict[str, Route[Any, Any]], int]] = []

    def run(raw: bytes) -> None:
        if worlds:
            routes, asked = worlds.pop()
        else:
            routes, asked = {route.name: route for route in loop.run_until_complete(a_busy_api()).table.routes}, 0
        if asked < ASKS:
            worlds.append((routes, asked + 1))
        loop.run_until_complete(ask(routes, raw, requests))

    return run


async def ask(routes: dict[str, Route[Any, Any]], raw: bytes, requests: Requests) -> None:
    """Parse and run one input as the table does."""
    line, _, body = raw.partition(b"\n")
    name, _, query = line.decode("utf-8", "surrogateescape").partition("?")
    names = sorted(routes)
    route = routes[name] if name in routes else routes[names[zlib.crc32(name.encode("utf-8", "replace")) % len(names)]]
    request = _request(requests, route, query, body)
    if request is None:
        return
    try:
        params, read = read_params(request, route), await read_body(request, route)
        if route.name == "submit_batch":
            size_of(parse_batch({"submitter": "ada", **read}))
        elif route.name not in READ_ONLY:
            answer = await route.handler(Ask(request, PROJECT, params, read))
            if not isinstance(answer, web.StreamResponse):
                reply(answer, status=route.status)
    except MusterError as error:
        problem_of(error)
    except web.HTTPException:
        return


def _request(requests: Requests, route: Route[Any, Any], query: str, body: bytes) -> web.Request | None:
    """Return the request as the server would pass it on; None if it has no such address."""
    try:
        found = URL(f"/?{quote(query, safe=SAFE, errors='surrogateescape')}", encoded=True).query
    except ValueError:
        return None
    in_path = {name: str(found[name]) for name in route.in_path if name in found}
    kept = [(key, value) for key, value in found.items() if key not in in_path]
    url = URL(f"/api/v1{route.path}?{urlencode(kept, errors='replace')}", encoded=True)
    return requests.of(route.method, url, body, in_path=in_path)


# ------------------------------------------------------------------ inputs that are right


def api_seeds() -> Sequence[bytes]:
    """Return two valid requests of every operation."""
    draw = random.Random(1)
    seeds = []
    for route in an_api().table.routes:
        for _ in range(2):
            query = urlencode(_params(route, draw))
            body = (
                b"" if route.body is None or isinstance(route.body, File) else msgspec.json.encode(_body(route, draw))
            )
            seeds.append(f"{route.name}?{query}\n".encode() + body)
    return seeds


def _params(route: Route[Any, Any], draw: random.Random) -> dict[str, object]:
    made = _example(msgspec.inspect.type_info(route.params), draw)
    assert isinstance(made, dict)
    return {name: value for name, value in made.items() if value is not None}


def _body(route: Route[Any, Any], draw: random.Random) -> object:
    if route.name == "submit_batch":
        return BATCH
    if route.name == "emulate_fairshare":
        return {"system": draw.choice(("flux", "slurm", "pbs", "maui", "nci")), "document": EMULATED}
    if route.name in ("set_ordering", "preview_ordering", "set_thresholds", "preview_thresholds"):
        settings = Settings().as_mapping()
        key = draw.choice(sorted(name for name in settings if name.startswith(("ordering.", "deadline."))))
        return {"values": {key: settings[key]}, "reason": "why not"}
    return _example(msgspec.inspect.type_info(route.body), draw)


WORDS = ("ada", "pi", "muster", "deadline.p_tight", "submitter", "jobs", "a", "1", Role.OPERATOR.value)

_Maker = Callable[[Any, random.Random], object]


def _example(kind: Any, draw: random.Random) -> object:  # Any: one of msgspec's many classes of types
    """Return a value that fits the type, or a word as the default."""
    for known, make in _MAKERS:
        if isinstance(kind, known):
            return make(kind, draw)
    return draw.choice(WORDS)


def _struct(kind: Any, draw: random.Random) -> object:
    wanted = [field for field in kind.fields if field.required or draw.random() < 0.7]
    return {field.encode_name: _example(field.type, draw) for field in wanted}


_MAKERS: tuple[tuple[Any, _Maker], ...] = (
    (msgspec.inspect.Metadata, lambda kind, draw: _example(kind.type, draw)),
    (msgspec.inspect.UnionType, lambda kind, draw: _example(draw.choice(kind.types), draw)),
    (msgspec.inspect.StructType, _struct),
    (msgspec.inspect.IntType, lambda kind, draw: max(1, kind.ge or 1)),
    (msgspec.inspect.LiteralType, lambda kind, draw: draw.choice(kind.values)),
    (msgspec.inspect.EnumType, lambda kind, draw: draw.choice([one.value for one in kind.cls])),
    (msgspec.inspect.ListType, lambda kind, draw: [_example(kind.item_type, draw)]),
    (msgspec.inspect.DictType, lambda kind, draw: {draw.choice(WORDS): _example(kind.value_type, draw)}),
    (msgspec.inspect.FloatType, lambda kind, draw: 1.5),
    (msgspec.inspect.BoolType, lambda kind, draw: True),
    (msgspec.inspect.NoneType, lambda kind, draw: None),
)
