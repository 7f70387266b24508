"""Volunteers' computers over the API."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

import msgspec

from domain.clock import Clock
from domain.hosts import Host, HostAppVersion
from domain.listings import HeldInstance
from domain.units import HostId, Instant
from operations.api import shapes
from operations.api.paging import Page, key_of, page_of, page_of_all
from operations.api.table import Ask, Route
from operations.console.ports import Listings
from operations.ports import Views

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
        return {**host_as_json(host), "app_versions": [_hav(one, now) for one in havs]}

    async def held(self, ask: Ask[HeldParams, None]) -> object:
        host_id = HostId(ask.params.host_id)
        await self._store.views.host(host_id)
        rows = await self._store.listings.held_by(host_id, limit=MOST_HELD)
        return page_of_all(rows, ask.params, "instances", lambda one: one.instance_id, _held)


def host_as_json(host: Host) -> dict[str, object]:
    """A host without what identifies its owner's machine to the project."""
    return {
        "host_id": host.host_id,
        "volunteer_id": host.volunteer_id,
        "domain_name": host.domain_name,
        "created_at": host.created_at,
        "last_rpc_at": host.last_rpc_at,
        "ncpus": host.ncpus,
        "flop_per_s": host.flop_per_s,
        "ram_bytes": host.ram_bytes,
        "disk_free_bytes": host.disk_free_bytes,
        "on_fraction": host.on_fraction,
        "active_fraction": host.active_fraction,
        "platforms": list(host.platforms),
        "os_name": host.os_name,
        "os_version": host.os_version,
        "cpu_vendor": host.cpu_vendor,
        "cpu_model": host.cpu_model,
        "client_version": host.client_version,
        "coprocessors": [
            {
                "type": one.type,
                "count": one.count,
                "peak_flop_per_s": one.peak_flop_per_s,
                "ram_bytes": one.ram_bytes,
                "driver_version": one.driver_version,
            }
            for one in host.coprocessors
        ],
    }


def _hav(hav: HostAppVersion, now: Instant) -> dict[str, object]:
    return {
        "app_version_id": hav.app_version_id,
        "consecutive_valid": hav.consecutive_valid,
        "quota_per_day": hav.quota_per_day,
        "sent_today": hav.sent_today,
        "n_valid": hav.n_valid,
        "n_error": hav.n_error,
        "n_timeout": hav.n_timeout,
        "n_due": hav.n_due,
        "tight_n": hav.tight.at_time(now).n,
        "relaxed_n": hav.relaxed.at_time(now).n,
    }


def _held(one: HeldInstance) -> dict[str, object]:
    return {
        "instance_id": one.instance_id,
        "job_id": one.job_id,
        "batch_id": one.batch_id,
        "app": one.app,
        "sent_at": one.sent_at,
        "due_at": one.due_at,
        "est_runtime_s": one.est_runtime_s,
        "tight": one.tight,
    }
