"""Serves the route table: authorises and parses requests, calls handlers, and records actions in the audit trail.

Errors are reported as application/problem+json, never as a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from administration.access.authentication import Authenticator
from administration.access.sign_in import address_of
from administration.access.who import NotAllowedError, PasswordToChangeError, Person, present
from api.reading import read_body, read_params
from api.table import NOTED, REPLAYED, SUBJECT, Ask, Route, reply
from api.versions import ChangedError, Conditions, Edits, tag_of
from domain.access import THROUGH, Act, Right
from domain.clock import Clock
from domain.errors import MusterError, UnavailableError
from web import problems as told
from web.moments import iso

NOT_DETAIL = frozenset({"password", "old_password", "new_password", "by"})
DETAIL_CHARS = 2000

log = structlog.get_logger()


class Table:
    """Serves a table of routes."""

    def __init__(
        self, routes: Iterable[Route[Any, Any]], authenticator: Authenticator, clock: Clock, edits: Edits | None = None
    ) -> None:
        """`edits` is needed for routes that are edits (`shown_by`)."""
        self.routes = tuple(routes)
        self._conditions = None if edits is None else Conditions(self.routes, edits)
        self._authenticator = authenticator
        self._clock = clock

    def definitions(self) -> list[web.RouteDef]:
        return [web.route(route.method, route.path, self._handler(route), name=route.name) for route in self.routes]

    def _handler(self, route: Route[Any, Any]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            person = allowed(request, route.right)
            ask = Ask(request, person, read_params(request, route), await read_body(request, route))
            if (route.shown_by or route.edits) and self._conditions is not None:
                async with self._conditions.unchanged(route, ask):
                    answer = await route.handler(ask)
            else:
                answer = await route.handler(ask)
            if isinstance(answer, web.StreamResponse):
                return answer
            if route.method != hdrs.METH_GET and route.right is not Right.READ and not request.get(REPLAYED):
                await self._note(route, ask, answer)
            iso_wanted = ISO_TIMES in request.headers.get("Prefer", "").replace(" ", "").split(",")
            made = reply(with_iso(answer) if iso_wanted else answer, status=route.status)
            made.headers[hdrs.VARY] = "Prefer"
            if iso_wanted:
                made.headers["Preference-Applied"] = ISO_TIMES
            if route.edited is not None:
                made.headers[hdrs.ETAG] = tag_of(route.edited(answer))
            if route.leads_to:
                made.headers[hdrs.LOCATION] = self._address(request, route.leads_to, answer)
            return made

        return handle

    def _address(self, request: web.Request, name: str, answer: Mapping[str, object]) -> str:
        """Return the URL of a created object: the path of route `name`, filled in from the reply's keys."""
        [route] = [one for one in self.routes if one.name == name]
        path = request.app.router[name].url_for(**{key: str(answer[key]) for key in route.in_path})
        return str(path)

    async def _note(self, route: Route[Any, Any], ask: Ask[Any, Any], answer: object) -> None:
        """Record the action. The change is already committed, so a lost database connection is only logged."""
        target = ask.request.get(SUBJECT) or subject_of(route, ask) or _made(answer)
        detail = {**_detail(ask.body), **ask.request.get(NOTED, {})}
        if ask.who != ask.person.name:  # `by` of a request with the project's own token, which no sign-in proves
            detail[THROUGH] = ask.person.name
        act = Act(self._clock.now(), ask.who, route.name, target, detail, address_of(ask.request))
        try:
            await self._authenticator.store.note_act(act)
        except UnavailableError as error:
            log.warning("audit trail entry lost", who=act.who, what=act.what, target=target, why=str(error))


ISO_TIMES = "times=iso"  # a preference (RFC 7240)
LAST_S = 253_402_300_799.0  # the end of the year 9999


def with_iso(value: Any) -> Any:  # Any: a JSON document
    """Return a reply with `NAME_at_iso` beside each time `NAME_at`.

    >>> with_iso({"batches": [{"created_at": 0.0, "ended_at": None}]})
    {'batches': [{'created_at': 0.0, 'created_at_iso': '1970-01-01T00:00:00Z', 'ended_at': None}]}
    """
    match value:
        case Mapping():
            made: dict[str, Any] = {}
            for key, one in value.items():
                made[key] = with_iso(one)
                if str(key).endswith("_at") and isinstance(one, (int, float)) and 0.0 <= one <= LAST_S:
                    made[f"{key}_iso"] = iso(one)
            return made
        case list() | tuple():
            return [with_iso(one) for one in value]
        case _:
            return value


def subject_of(route: Route[Any, Any], ask: Ask[Any, Any]) -> str:
    """Return what an operation changes, as in the pages' audit entries: kind and name, such as "batch 7".

    By default, the path gives both. Parts of `route.subject` whose values are missing are omitted.
    """
    given = [msgspec.structs.asdict(one) for one in (ask.body, ask.params) if isinstance(one, msgspec.Struct)]
    values = {f"new_{key}": value for key, value in given[0].items()} if len(given) > 1 else {}
    values |= {key: value for one in given for key, value in one.items()}
    parts = route.subject.split(", ") if route.subject else subjects_in(route.path)
    kept = [part for part in parts if all(values.get(key) is not None for key in re.findall(r"{(\w+)}", part))]
    return ", ".join(part.format_map(values) for part in kept)


KINDS = {"people": "person", "batches": "batch", "plan-classes": "plan class"}


def subjects_in(path: str) -> list[str]:
    """Return the subjects that a path names.

    >>> subjects_in("/app-versions/{app_version_id}"), subjects_in("/people/{name}/password"), subjects_in("/grants")
    (['app version {app_version_id}'], ['person {name}'], [])
    """
    found = re.findall(r"/([\w-]+)/{(\w+)}", path)
    return [f"{KINDS.get(one) or one.removesuffix('s').replace('-', ' ')} {{{key}}}" for one, key in found]


def _made(answer: object) -> str:
    """Return the subject that a reply names: the changed settings, its first `*_id`, or that of an object in it.

    >>> _made({"batch_id": 7, "forecast": None}), _made({"changed": [{"key": "deadline.p_tight"}]}), _made({})
    ('batch 7', 'setting deadline.p_tight', '')
    >>> _made({"subscription": {"subscription_id": 7, "person_id": 2}, "secret": None})
    'subscription 7'
    """
    if not isinstance(answer, Mapping):
        return ""
    changed = answer.get("changed")
    settings = [f"setting {one['key']}" for one in changed] if isinstance(changed, list) else []
    made = [f"{key.removesuffix('_id').replace('_', ' ')} {answer[key]}" for key in answer if key.endswith("_id")]
    made += [f"{key} {one[f'{key}_id']}" for key, one in answer.items() if isinstance(one, dict) and f"{key}_id" in one]
    return ", ".join(settings or made[:1])


def allowed(request: web.Request, right: Right) -> Person:
    """Return the caller if it has `right`. Raises NotSignedInError, NotAllowedError, PasswordToChangeError."""
    person = present(request)
    if person.must_change_password:
        raise PasswordToChangeError
    if right not in person.rights:
        have = ", ".join(sorted(person.rights))
        raise NotAllowedError(f"this operation needs the scope {right.value}; {person.name} has: {have}")
    return person


def _detail(body: object) -> dict[str, object]:
    """Return the body's values without secrets and author, or a note if they are too long to store."""
    if not isinstance(body, msgspec.Struct):
        return {}
    shown = {
        key: value for key, value in msgspec.structs.asdict(body).items() if key not in NOT_DETAIL and value is not None
    }
    return shown if len(msgspec.json.encode(shown)) <= DETAIL_CHARS else {"left_out": "too long"}


class Strangers:
    """Requires authentication for all paths except the sub-application's `open_paths`."""

    def __init__(self, open_paths: Collection[str]) -> None:
        self._open = frozenset(open_paths)

    @property
    def middleware(self) -> Middleware:
        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            resource = request.match_info.route.resource
            path = "" if resource is None else resource.canonical
            if not any(path.endswith(f"/api/v1{one}") for one in self._open):
                present(request)
            return await handler(request)

        return check


def problem(status: int, title: str, detail: str, **more: object) -> web.Response:
    """Return a problem document (RFC 9457)."""
    body = {**msgspec.to_builtins(told.problem(status, title, detail)), **more}
    return _answer(status, msgspec.json.encode(body))


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Convert the project's errors to problem documents. Other exceptions are logged and reported as status 500."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        answer = problem(error.status, error.reason.lower(), error.text or error.reason)
        if allow := error.headers.get("Allow"):
            answer.headers["Allow"] = allow
        return answer
    except ChangedError as error:
        answer = problem(412, "changed meanwhile", str(error), current=error.current)
        if error.tag is not None:
            answer.headers[hdrs.ETAG] = error.tag
        return answer
    except MusterError as error:
        return problem_of(error)
    except Exception:
        log.exception("request failed", method=request.method, path=request.path)
        return problem(500, "internal error", "internal server error; see the server's log")


def problem_of(error: MusterError) -> web.Response:
    """Return the problem document for one of the project's errors."""
    found = told.problem_of(error)
    answer = _answer(found.status, msgspec.json.encode(found))
    if found.status == web.HTTPUnauthorized.status_code:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="muster"'
    if found.retry_s is not None:
        answer.headers["Retry-After"] = str(max(1, round(found.retry_s)))
    return answer


def _answer(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/problem+json")
