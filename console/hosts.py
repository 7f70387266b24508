"""One host: what it said of itself, its statistics per app version, what it was sent, and what it would get now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from administration.cursors import cursor_of, place_of
from administration.explain.service import Explain
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.host_lists import RESULTS_LOOKED_AT
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceState
from domain.ranking import Percentile, percentile
from domain.units import HostId, Instant
from domain.volunteers import ResultPlace
from web.desk import Desk, id_of
from web.rendering import Crumb, Page

PER_PAGE = 50
ALL = "all"
NEVER_SENT = (InstanceState.UNSENT, InstanceState.CANCELLED)
STATES = (ALL, *(state.value for state in InstanceState if state not in NEVER_SENT))
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
        current = version in catalogue.current.get(version.app_id, ())
        relaxed, of_type = hav.relaxed.at_time(now), (version.app_id, version.processor_type)
        rows.append(
            HavRow(
                app,
                version.title,
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


def state_of(text: str) -> InstanceState | None:
    """The state that a word in the address stands for; None for all. Raises InvalidInputError.

    >>> state_of("timed_out"), state_of("all")
    (<InstanceState.TIMED_OUT: 'timed_out'>, None)
    """
    if text not in STATES:
        raise InvalidInputError("state", "one of " + ", ".join(STATES), text)
    return None if text == ALL else InstanceState(text)


class HostPages:
    """One host, and the decision for it run dry."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._explain = Explain(desk.store, desk.clock, desk.array)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/hosts/{id}", self.host, name="host"),
            web.get("/hosts/{id}/why", self.why, name="host_why"),
        ]

    async def host(self, request: web.Request) -> web.Response:
        host_id, state = HostId(id_of(request)), state_of(request.query.get("state", ALL))
        after = place_of(ResultPlace, request.query.get("after", ""))
        store, now = self._desk.store, self._desk.clock.now()
        host, havs = await store.views.host(host_id)
        own = await store.belongings.host(host.volunteer_id, host_id)
        caller = await store.insight.caller(host_id)
        listed = await store.host_lists.listed([host_id])
        sent = await store.host_lists.instances(host_id, host.volunteer_id, state=state, after=after, limit=PER_PAGE)
        chosen = ALL if state is None else state.value
        values: dict[str, object] = {
            "host": host,
            "havs": havs_of(havs, self._desk.catalogue, now),
            "in_progress": listed[host_id].in_progress,
            "refused_at": own.refused_at,
            "refused": own.refused,
            "sent": sent.instances,
            "state": chosen,
            "states": STATES,
            "looked_at": RESULTS_LOOKED_AT,
            "first": urlencode({"state": chosen}) if after else None,
            "next": urlencode({"state": chosen, "after": cursor_of(sent.after)}) if sent.after else None,
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
