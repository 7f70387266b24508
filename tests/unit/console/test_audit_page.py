"""The audit trail as CSV: all rounds in one file, and an error after the first round is no second response."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.typedefs import Handler

from administration.access.who import PERSON, Person
from console.audit_page import PER_ROUND, AuditPage
from domain.access import Act, ActChoice, Right, Role
from domain.errors import UnavailableError
from domain.units import Instant
from web.handlers import PageServices

TOTAL = PER_ROUND + 5


class Trail:
    """A trail of TOTAL entries; its reads fail after `good` rounds."""

    def __init__(self, good: int) -> None:
        self.left = good

    async def act_range(self, choice: ActChoice) -> tuple[int, int]:
        return 1, TOTAL + 1

    async def acts(self, choice: ActChoice, *, limit: int, before: int, first: int) -> Sequence[Act]:
        self.left -= 1
        if self.left < 0:
            raise UnavailableError
        ids = range(before - 1, max(first, before - limit) - 1, -1)
        return [Act(Instant(1.8e9), "\tada", "ban", "host 7", {"n": -1}, "::1", act_id=one) for one in ids]


async def sent(good: int, raised: list[Exception]) -> str:
    @web.middleware
    async def outer(request: web.Request, handler: Handler) -> web.StreamResponse:
        request[PERSON] = Person("grace", Role.OPERATOR, frozenset(Right))
        try:
            return await handler(request)
        except Exception as error:
            raised.append(error)
            return web.Response(status=500)

    services = cast(PageServices, SimpleNamespace(authenticator=SimpleNamespace(store=Trail(good))))
    page = AuditPage(services)

    async def show(request: web.Request) -> web.StreamResponse:
        return cast(web.StreamResponse, await page.show(request))

    application = web.Application(middlewares=[outer])
    application.router.add_get("/", show)
    async with TestClient(TestServer(application)) as client, client.get("/?as=csv") as answer:
        return await answer.text()


async def test_audit_csv_has_all_rounds() -> None:
    rows = list(csv.DictReader(io.StringIO(await sent(9, []))))
    assert [int(row["act_id"]) for row in rows] == list(range(TOTAL, 0, -1))
    assert rows[0] == {
        "act_id": str(TOTAL),
        "acted_at": "2027-01-15T08:00:00Z",
        "who": "'\tada",
        "what": "ban",
        "subject": "host 7",
        "address": "::1",
        "detail": '{"n":-1}',
    }


async def test_audit_csv_breaks_off_at_a_late_error() -> None:
    raised: list[Exception] = []
    with pytest.raises(aiohttp.ClientPayloadError):
        await sent(1, raised)
    assert raised == []


async def test_audit_csv_error_at_first_is_raised() -> None:
    raised: list[Exception] = []
    await sent(0, raised)
    assert [type(error) for error in raised] == [UnavailableError]
