"""The decision run dry, over the API."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from administration.explain.service import Explain
from api import shapes
from api.table import Ask, Route
from domain.units import BatchId, HostId, InstanceId, JobId

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
