"""The page of the work that every host refuses."""

from __future__ import annotations

from aiohttp import web

from administration.heartbeats import SILENT_S
from administration.unschedulable import is_cut, refused_of
from domain.units import later
from web.desk import Desk
from web.rendering import Page

LIVE_S = 10


class NobodyPage:
    """The report."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/nobody", self.show, name="nobody")]

    async def show(self, request: web.Request) -> web.Response:
        now, store = self._desk.clock.now(), self._desk.store
        processes = await store.process_reports.since(later(now, -SILENT_S))
        workers = [one for one in processes if one.kind == "worker"]
        refused = refused_of(workers, now=now)
        found = await store.views.batches_with(sorted({one.batch_id for one in refused}))
        values: dict[str, object] = {
            "refused": refused,
            "cut": is_cut(workers),
            "batches": {batch.batch_id: batch for batch in found},
            "feeder": self._desk.catalogue.settings.feeder,
            "workers": len(workers),
            "started_at": [one.report["started_at"] for one in workers],
        }
        return self._desk.show(request, Page("nobody.html", "Nobody can run", "nobody", values=values, every_s=LIVE_S))
