"""Hosts and one host: what it said of itself, its statistics per app version, its jobs, and what it would get now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from domain.catalogue import Catalogue
from domain.hosts import Host, HostAppVersion
from domain.ranking import Percentile, percentile
from domain.units import HostId, Instant
from operations.api.bodies import whole_number
from operations.console.desk import Desk, id_of
from operations.console.rendering import Crumb, Page
from operations.explain.service import Explain
from operations.names import checked_text

PER_PAGE = 50
HELD = 200
Document = Mapping[str, Any]  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class HavRow:
    """What is known of a host with one app version."""

    app: str
    version: str
    current: bool
    hav: HostAppVersion
    percentile: Percentile | None  # None: of a version that no new work is given for
    flop_per_s: float | None
    relative: float | None  # its turnaround over the usual one; None before there is a result


def havs_of(havs: Sequence[HostAppVersion], catalogue: Catalogue, now: Instant) -> list[HavRow]:
    """The host's statistics by app and version, the latest version first."""
    rows = []
    for hav in havs:
        version = catalogue.versions.get(hav.app_version_id)
        if version is None:
            continue
        app = catalogue.apps[version.app_id].name if version.app_id in catalogue.apps else str(version.app_id)
        name = f"{version.version_num / 100:.2f} {version.platform} {version.plan_class.name}".rstrip()
        current = version in catalogue.current.get(version.app_id, ())
        relaxed, of_type = hav.relaxed.at_time(now), (version.app_id, version.processor_type)
        rows.append(
            HavRow(
                app,
                name,
                current,
                hav,
                percentile(hav, catalogue.cut_points.get(of_type), now=now, settings=catalogue.settings.ranking)
                if current
                else None,
                1.0 / hav.speed.mean if hav.speed.n > 0 and hav.speed.mean > 0 else None,
                exp(relaxed.mean) if relaxed.n > 0 else None,
            )
        )
    return sorted(rows, key=lambda row: (row.app, not row.current, row.version))


class HostPages:
    """Hosts, one host, and the decision for it run dry."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._explain = Explain(desk.store, desk.clock)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/hosts", self.hosts, name="hosts"),
            web.get("/hosts/{id}", self.host, name="host"),
            web.get("/hosts/{id}/why", self.why, name="host_why"),
        ]

    async def hosts(self, request: web.Request) -> web.Response:
        """Newest first. A number in the search leads to that host, an e-mail to that volunteer's."""
        text = checked_text(request.query.get("q", "").strip(), "q")
        if text.isascii() and text.isdigit():
            return self._desk.go(f"hosts/{int(text[:18])}")
        before = request.query.get("before")
        found = list(
            await self._desk.store.listings.hosts(
                before=HostId(whole_number(before, "before", 1, 2**31)) if before else None,
                limit=PER_PAGE + 1,
                email=text,
            )
        )
        more, found = len(found) > PER_PAGE, found[:PER_PAGE]
        kept = {"q": text} if text else {}
        values: dict[str, object] = {
            "hosts": found,
            "text": text,
            "first": "?" + urlencode(kept) if before else None,
            "next": "?" + urlencode({**kept, "before": found[-1].host_id}) if more else None,
        }
        return self._desk.show(request, Page("hosts.html", "Hosts", "hosts", values=values))

    async def host(self, request: web.Request) -> web.Response:
        host_id = HostId(id_of(request))
        store, now = self._desk.store, self._desk.clock.now()
        host, havs = await store.views.host(host_id)
        caller = await store.insight.caller(host_id)
        values: dict[str, object] = {
            "host": host,
            "havs": havs_of(havs, self._desk.catalogue, now),
            "held": await store.listings.held_by(host_id, limit=HELD),
            "calls_per_hour": caller.calls_per_hour(now),
            "availability": host.cpu_availability_fraction,
        }
        return self._desk.show(request, Page("host.html", _name(host), "hosts", (Crumb("hosts", "Hosts"),), values))

    async def why(self, request: web.Request) -> web.Response:
        """What it would be given if it called now, and why not more: the real decision, run dry."""
        host_id = HostId(id_of(request))
        shown: Document = await self._explain.host(host_id)
        crumbs = (Crumb("hosts", "Hosts"), Crumb(f"hosts/{host_id}", f"Host {host_id}"))
        return self._desk.show(request, Page("host_why.html", "If it called now", "hosts", crumbs, {"shown": shown}))


def _name(host: Host) -> str:
    return f"Host {host.host_id}"
