"""Explanations of decisions, workers' job arrays, and unschedulable work over the API."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from administration.attention.service import AttentionViews
from administration.explain.service import Explain
from administration.restrictions import paused
from administration.samples import samples_shown
from administration.show import shown
from administration.unschedulable import refused_as_json, refused_lately
from api.paging import Page, page_of_all
from api.table import Ask, NoParams, operation
from domain.clock import Clock
from domain.samples import LATEST_AT, SERIES
from domain.units import BatchId, HostId, InstanceId, JobId, later
from muster_client import shapes
from store.postgres import PostgresStore


class ExplainParams(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[int, msgspec.Meta(ge=1, le=2**62)]


class ExplainHostParams(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class ExplainingApi:
    TAG = "explanations"

    def __init__(self, explain: Explain) -> None:
        self._explain = explain

    @operation("GET", "/explain/host/{id}", "Why a host gets no work, or which jobs it would get.", errors=(404,))
    async def explain_host(self, ask: Ask[ExplainHostParams, None]) -> shapes.HostExplained:
        return await self._explain.host(HostId(ask.params.id))

    @operation("GET", "/explain/batch/{id}", "Why a batch is not progressing.", errors=(404,))
    async def explain_batch(self, ask: Ask[ExplainParams, None]) -> shapes.BatchExplained:
        return await self._explain.batch(BatchId(ask.params.id))

    @operation("GET", "/explain/job/{id}", "Why a job is not sent.", errors=(404,))
    async def explain_job(self, ask: Ask[ExplainParams, None]) -> shapes.JobExplained:
        return await self._explain.job(JobId(ask.params.id))

    @operation("GET", "/explain/instance/{id}", "How an instance's due date was computed.", errors=(404,))
    async def explain_instance(self, ask: Ask[ExplainParams, None]) -> shapes.InstanceExplained:
        return await self._explain.instance(InstanceId(ask.params.id))


SILENT_S = 60.0  # a process without a heartbeat for this long has ended


At = Annotated[float, msgspec.Meta(ge=0.0, le=LATEST_AT)]


class SamplesParams(msgspec.Struct, forbid_unknown_fields=True):
    series: Annotated[
        str,
        msgspec.Meta(
            max_length=1000,
            description="Names of figures, separated by commas; default: all. "
            + " ".join(f"`{name}`: {meaning}." for name, meaning in SERIES.items()),
        ),
    ] = ""
    range: Annotated[
        Literal["hour", "day", "week", "month", "year"],
        msgspec.Meta(description="The time before now. Longer ranges have longer steps."),
    ] = "hour"
    from_at: Annotated[
        At | None, msgspec.Meta(description="Start of a part of the time, together with `to_at`, instead of a range.")
    ] = None
    to_at: Annotated[At | None, msgspec.Meta(description="End of the part.")] = None


class ArrayApi:
    TAG = "operation"

    def __init__(self, store: PostgresStore, attention: AttentionViews, clock: Clock) -> None:
        self._store = store
        self._reports, self._samples = store.process_reports, store.samples
        self._attention = attention
        self._clock = clock

    @operation("GET", "/attention", "What needs an operator's attention, worst first: batches, versions, hosts, disks.")
    async def attention(self, ask: Ask[NoParams, None]) -> shapes.AttentionShown:
        return await self._attention.shown(ask.person)

    @operation(
        "GET",
        "/processes",
        "The last heartbeat of each process in the last minute; a worker's heartbeat includes its job array by "
        "partition.",
    )
    async def processes(self, ask: Ask[Page, None]) -> shapes.ProcessPage:
        found = await self._reports.since(later(self._clock.now(), -SILENT_S))
        return page_of_all(
            shapes.ProcessPage,
            found,
            ask.params,
            lambda one: one.name,
            lambda one: shown(shapes.ProcessShown, one, report=dict(one.report)),
        )

    @operation("GET", "/samples", "The project's figures over time: rates, active work, hosts, refusals by code.")
    async def samples(self, ask: Ask[SamplesParams, None]) -> shapes.SamplesShown:
        params = ask.params
        ends = (params.from_at, params.to_at)
        return await samples_shown(self._samples, params.series, params.range, ends, self._clock.now())

    @operation("GET", "/unschedulable", "Work that every recent host refused, with the reasons, and paused work.")
    async def unschedulable(self, ask: Ask[NoParams, None]) -> shapes.UnschedulableShown:
        found = await refused_lately(self._store, self._clock)
        refused = [refused_as_json(one) for one in found.groups]
        return {"refused": refused, "left_out": found.left_out, "paused": await paused(self._store)}
