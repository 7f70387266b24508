"""Volunteers' computers over the API."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

import msgspec

from domain.clock import Clock
from domain.units import HostId
from operations.api import shapes
from operations.api.paging import Page, key_of, page_of, page_of_all
from operations.api.table import Ask, Route
from operations.console.ports import Listings
from operations.ports import Views
from operations.show_hosts import hav_as_json, held_as_json, host_as_json

TAG = "hosts"
ID = msgspec.Meta(ge=1, le=2**31 - 1)
MOST_HELD = 10_000


class HostsStore(Protocol):
    @property
    def views(self) -> Views: ...
    @property
    def listings(self) -> Listings: ...


class HostParams(msgspec.Struct, forbid_unknown_fields=True):
    host_id: Annotated[int, ID]


class HeldParams(Page, forbid_unknown_fields=True, kw_only=True):
    host_id: Annotated[int, ID]


class HostsApi:
    def __init__(self, store: HostsStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def routes(self) -> list[Route[Any, Any]]:
        one = "/hosts/{host_id}"
        return [
            Route("GET", "/hosts", "list_hosts", "Hosts, by id.", self.list, TAG, shapes.HostPage, Page),
            Route(
                "GET",
                one,
                "host",
                "A host and what is known of it with each app version.",
                self.host,
                TAG,
                shapes.HostDetail,
                HostParams,
                errors=(404,),
            ),
            Route(
                "GET",
                one + "/instances",
                "host_instances",
                "What a host has in progress, by id.",
                self.held,
                TAG,
                shapes.HeldPage,
                HeldParams,
                errors=(404,),
            ),
        ]

    async def list(self, ask: Ask[Page, None]) -> object:
        after = key_of(ask.params.cursor, "hosts", int)
        rows = await self._store.views.hosts(limit=ask.params.limit + 1, after=after)
        return page_of(rows, ask.params, "hosts", lambda host: host.host_id, host_as_json)

    async def host(self, ask: Ask[HostParams, None]) -> object:
        host, havs = await self._store.views.host(HostId(ask.params.host_id))
        now = self._clock.now()
        return {**host_as_json(host), "app_versions": [hav_as_json(one, now) for one in havs]}

    async def held(self, ask: Ask[HeldParams, None]) -> object:
        host_id = HostId(ask.params.host_id)
        await self._store.views.host(host_id)
        rows = await self._store.listings.held_by(host_id, limit=MOST_HELD)
        return page_of_all(rows, ask.params, "instances", lambda one: one.instance_id, held_as_json)
