"""Volunteers' hosts and the latest host ranking over the API."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import msgspec

from administration.attention.service import AttentionViews
from administration.cursors import cursor_of as place_text
from administration.cursors import place_of
from administration.hosts import checked_labels, choice_of, hav_as_json, listed_as_json
from administration.show import run_as_json, shown
from api.paging import Page, cursor_of, key_of, page_of, page_of_all
from api.table import Ask, NoParams, operation
from api.versions import edited_part
from domain.access import Right
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.host_lists import HostKind, HostPlace, HostSort
from domain.jobs import InstanceState
from domain.units import HostId, Seconds
from domain.volunteers import ResultPlace
from muster_client import shapes
from store.postgres import PostgresStore

ID = msgspec.Meta(ge=1, le=2**31 - 1)
MOST_HELD = 10_000
MOST_SILENT_S = 3650 * 86400.0


class ListParams(Page, forbid_unknown_fields=True, kw_only=True):
    show: Annotated[
        Literal["without_work", "slow", "failing", "silent", "restricted"] | None,
        msgspec.Meta(
            description="`without_work`: hosts with no job in progress that sent a request in the last day, "
            "newest first. `slow`: the slowest tenth of each app and processor in the last full "
            "ranking, once per app version, slowest first. `failing`: those of the item `failing_hosts` of "
            "`GET /attention`, at least half of whose results of the last day failed, the worst first. `silent`: no "
            "request for `silent_s`, newest first. `restricted`: hosts that are banned or limited, or whose volunteer "
            "is, newest first. A page may be empty and have a `next_cursor`. Default: all hosts."
        ),
    ] = None
    platform: Annotated[
        str,
        msgspec.Meta(
            description="Part of a platform's name, in upper or lower case: only hosts that have such a platform; not "
            "among slow, failing or restricted ones."
        ),
    ] = ""
    label: Annotated[
        str, msgspec.Meta(description="Only hosts with this label; not among slow, failing or restricted ones.")
    ] = ""
    volunteer: Annotated[str, msgspec.Meta(description="Only hosts of the volunteer with this e-mail address.")] = ""
    sort: Annotated[
        HostSort | None,
        msgspec.Meta(
            description="The order, except of slow, failing and restricted hosts; `-` for descending. Default: all "
            "hosts by id, others newest first. A filtered page in the order `-id` reads at most 10,000 hosts: it may "
            "be empty and have a `next_cursor`."
        ),
    ] = None
    silent_s: Annotated[
        Annotated[float, msgspec.Meta(ge=0.0, le=MOST_SILENT_S)] | None,
        msgspec.Meta(description="Minimum time since the last request, for `show=silent`; default: one week."),
    ] = None


class HostParams(msgspec.Struct, forbid_unknown_fields=True):
    host_id: Annotated[int, ID]


class LabelsBody(msgspec.Struct, forbid_unknown_fields=True):
    labels: list[str]


class HeldParams(Page, forbid_unknown_fields=True, kw_only=True):
    host_id: Annotated[int, ID]


class HostResultsParams(HeldParams, forbid_unknown_fields=True, kw_only=True):
    state: Annotated[
        Literal["reported", "inconclusive", "valid", "invalid", "failed", "timed_out", "aborted", "too_late"] | None,
        msgspec.Meta(description="Only instances in this state, among the newest; pages may be short."),
    ] = None


class HostsApi:
    TAG = "hosts"

    def __init__(self, store: PostgresStore, attention: AttentionViews, clock: Clock) -> None:
        self._store = store
        self._attention = attention
        self._clock = clock

    @operation(
        "GET",
        "/hosts",
        "Hosts, filtered and sorted, or only hosts without work, slow, failing, silent or restricted hosts.",
    )
    async def list_hosts(self, ask: Ask[ListParams, None]) -> shapes.HostPage:
        params = ask.params
        if params.silent_s is not None and params.show != "silent":
            raise InvalidInputError("silent_s", "no value unless show is silent", params.silent_s)
        filtered = params.platform or params.label or params.volunteer
        if params.show is not None or params.sort not in (None, HostSort.OLDEST) or filtered:
            return await self._looked_for(HostKind(params.show or HostKind.ALL), params)
        after = key_of(params.cursor, "hosts", int)
        rows = [one.host_id for one in await self._store.views.hosts(limit=params.limit + 1, after=after)]
        listed = await self._store.host_lists.listed(rows)
        return page_of(
            shapes.HostPage, rows, params, lambda host_id: host_id, lambda host_id: listed_as_json(listed[host_id])
        )

    async def _looked_for(self, kind: HostKind, params: ListParams) -> shapes.HostPage:
        sort = params.sort or HostSort.NEWEST
        of_kind = f"{kind} hosts {sort}"
        place = place_of(HostPlace, key_of(params.cursor, of_kind, str) or "")
        choice = choice_of(
            kind,
            now=self._clock.now(),
            within_s=None if params.silent_s is None else Seconds(params.silent_s),
            email=params.volunteer,
            platform=params.platform,
            label=params.label,
            sort=sort,
        )
        found = await self._attention.hosts(choice, after=place, limit=params.limit)
        more = None if found.after is None else cursor_of(of_kind, place_text(found.after))
        return {"hosts": [listed_as_json(one) for one in found.hosts], "next_cursor": more}

    @operation(
        "GET",
        "/hosts/{host_id}",
        "A host with its statistics for each app version.",
        errors=(404,),
        edited=edited_part("labels"),
    )
    async def host(self, ask: Ask[HostParams, None]) -> shapes.HostDetail:
        host, havs = await self._store.views.host(HostId(ask.params.host_id))
        own, now = await self._store.volunteer_views.host(host.volunteer_id, host.host_id), self._clock.now()
        versions = [hav_as_json(one, now) for one in havs]
        return shown(shapes.HostDetail, host, app_versions=versions, credit=own.credit.total)

    @operation(
        "PUT",
        "/hosts/{host_id}/labels",
        "Replace the labels of a host, for queues bound to hosts (ordering.queue_hosts).",
        right=Right.OPERATE,
        errors=(404,),
        shown_by="host",
    )
    async def set_host_labels(self, ask: Ask[HostParams, LabelsBody]) -> shapes.HostLabels:
        labels = checked_labels(ask.body.labels)
        await self._store.ordering_rules.set_host_labels(HostId(ask.params.host_id), labels)
        return {"host_id": ask.params.host_id, "labels": labels}

    @operation("GET", "/hosts/{host_id}/instances", "The instances in progress on a host, by id.", errors=(404,))
    async def host_instances(self, ask: Ask[HeldParams, None]) -> shapes.HeldPage:
        host_id = HostId(ask.params.host_id)
        await self._store.views.host(host_id)
        rows = await self._store.listings.held_by(host_id, limit=MOST_HELD)
        return page_of_all(
            shapes.HeldPage, rows, ask.params, lambda one: one.instance_id, partial(shown, shapes.HeldShown)
        )

    @operation(
        "GET",
        "/hosts/{host_id}/results",
        "The finished instances of a host that are not in the history, the last sent first. Pages may be short.",
        errors=(404,),
    )
    async def host_results(self, ask: Ask[HostResultsParams, None]) -> shapes.HostResultPage:
        host_id, asked = HostId(ask.params.host_id), ask.params
        host, _ = await self._store.views.host(host_id)
        found = await self._store.host_lists.instances(
            host_id,
            host.volunteer_id,
            state=None if asked.state is None else InstanceState(asked.state),
            after=place_of(ResultPlace, key_of(asked.cursor, "results", str) or ""),
            limit=asked.limit,
        )
        more = None if found.after is None else cursor_of("results", place_text(found.after))
        ended = [one for one in found.instances if one.state is not InstanceState.IN_PROGRESS]
        return {"results": [shown(shapes.HostResult, one) for one in ended], "next_cursor": more}

    @operation("GET", "/ranking", "The last host ranking; `run` is null before the first ranking.")
    async def ranking(self, ask: Ask[NoParams, None]) -> shapes.RankingShown:
        last = next(iter(await self._store.generations.runs(1)), None)
        return {"run": None if last is None else run_as_json(last)}

    @operation(
        "GET",
        "/hosts/{host_id}/percentiles",
        "A host's percentiles for each app version; empty for hosts that are not ranked.",
        errors=(404,),
    )
    async def host_percentiles(self, ask: Ask[HostParams, None]) -> shapes.PercentilesShown:
        host_id = HostId(ask.params.host_id)
        rows = await self._store.generations.percentiles_of(host_id)
        if not rows:
            await self._store.views.host(host_id)
        return {"percentiles": [shown(shapes.PercentileShown, one) for one in rows]}
