"""The page of the work that every host refuses."""

from __future__ import annotations

from aiohttp import web

from domain.errors import NotFoundError
from domain.units import later
from operations.console.desk import Desk
from operations.console.rendering import Page
from operations.nobody import refused_of
from operations.pulse import SILENT_S

LIVE_S = 10
MOST_BATCHES = 50


class NobodyPage:
    """The report."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/nobody", self.show, name="nobody")]

    async def show(self, request: web.Request) -> web.Response:
        now, store = self._desk.clock.now(), self._desk.store
        processes = await store.process_reports.since(later(now, -SILENT_S))
        refused = refused_of([one for one in processes if one.kind == "worker"])
        batches = {}
        for batch_id in list(dict.fromkeys(one.batch_id for one in refused))[:MOST_BATCHES]:
            try:
                batches[batch_id] = await store.views.batch(batch_id)
            except NotFoundError:
                continue
        ranking = self._desk.catalogue.settings.feeder
        values: dict[str, object] = {"refused": refused, "batches": batches, "feeder": ranking}
        return self._desk.show(request, Page("nobody.html", "Nobody can run", "nobody", values=values, every_s=LIVE_S))
