"""Explanations over the API: decisions run dry, the workers' job arrays, and work that no host can run."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from administration.explain.service import Explain
from administration.unschedulable import refused_lately
from api.paging import Page, page_of_all
from api.table import Ask, NoParams, Route
from domain.clock import Clock
from domain.units import BatchId, HostId, InstanceId, JobId, later
from muster_client import shapes
from web.ports import ProcessReports

TAG = "explanations"


class ExplainParams(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[int, msgspec.Meta(ge=1, le=2**62)]


class ExplainHostParams(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class ExplainingApi:
    def __init__(self, explain: Explain) -> None:
        self._explain = explain

    def routes(self) -> list[Route[Any, Any]]:
        told = {
            "host": ("Why a host gets no work, or what it would get.", self.host, shapes.HostExplained),
            "batch": ("What holds a batch back.", self.batch, shapes.BatchExplained),
            "job": ("What holds a job back.", self.job, shapes.JobExplained),
            "instance": ("How an instance's due date came about.", self.instance, shapes.InstanceExplained),
        }
        return [
            Route(
                "GET",
                f"/explain/{kind}/{{id}}",
                f"explain_{kind}",
                summary,
                handler,
                TAG,
                shape,
                ExplainHostParams if kind == "host" else ExplainParams,
                errors=(404,),
            )
            for kind, (summary, handler, shape) in told.items()
        ]

    async def host(self, ask: Ask[Any, None]) -> object:
        return await self._explain.host(HostId(ask.params.id))

    async def batch(self, ask: Ask[Any, None]) -> object:
        return await self._explain.batch(BatchId(ask.params.id))

    async def job(self, ask: Ask[Any, None]) -> object:
        return await self._explain.job(JobId(ask.params.id))

    async def instance(self, ask: Ask[Any, None]) -> object:
        return await self._explain.instance(InstanceId(ask.params.id))


SILENT_S = 60.0  # a process that said nothing for so long is gone


class ArrayApi:
    def __init__(self, reports: ProcessReports, clock: Clock) -> None:
        self._reports = reports
        self._clock = clock

    def routes(self) -> list[Route[Any, Any]]:
        return [
            Route(
                "GET",
                "/processes",
                "processes",
                "What each process said of itself in the last minute: of a worker its job array by partition.",
                self.processes,
                "operation",
                shapes.ProcessPage,
                Page,
            ),
            Route(
                "GET",
                "/nobody",
                "nobody",
                "Work that every host refuses, and why: what workers met lately.",
                self.nobody,
                "operation",
                shapes.NobodyShown,
                NoParams,
            ),
        ]

    async def processes(self, ask: Ask[Page, None]) -> object:
        found = await self._reports.since(later(self._clock.now(), -SILENT_S))
        return page_of_all(
            found,
            ask.params,
            "processes",
            lambda one: one.name,
            lambda one: {
                "name": one.name,
                "kind": one.kind,
                "reported_at": one.reported_at,
                "report": dict(one.report),
            },
        )

    async def nobody(self, ask: Ask[NoParams, None]) -> object:
        return {"refused": await refused_lately(self._reports, self._clock)}
