"""The workers' job arrays, what else each process said of itself last, and what nobody can run, over the API."""

from __future__ import annotations

from typing import Any

from administration.unschedulable import refused_lately
from api import shapes
from api.paging import Page, page_of_all
from api.table import Ask, NoParams, Route
from domain.clock import Clock
from domain.units import later
from web.ports import ProcessReports

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
