"""What the last ranking of hosts found, over the API."""

from __future__ import annotations

from typing import Any, Protocol

from administration.hosts import percentile_as_json
from administration.ports import Views
from administration.show import run_as_json
from api import shapes
from api.hosts import HostParams
from api.table import Ask, NoParams, Route
from domain.units import HostId
from hoststats.ports import Generations

TAG = "hosts"


class RankingStore(Protocol):
    @property
    def generations(self) -> Generations: ...
    @property
    def views(self) -> Views: ...


class RankingApi:
    def __init__(self, store: RankingStore) -> None:
        self._store = store

    def routes(self) -> list[Route[Any, Any]]:
        return [
            Route(
                "GET",
                "/ranking",
                "ranking",
                "What the last ranking of hosts found; `run` is null before the first.",
                self.last,
                TAG,
                shapes.RankingShown,
                NoParams,
            ),
            Route(
                "GET",
                "/hosts/{host_id}/percentiles",
                "host_percentiles",
                "Where a host stands with each app version; nothing of a newcomer.",
                self.of_host,
                TAG,
                shapes.PercentilesShown,
                HostParams,
                errors=(404,),
            ),
        ]

    async def last(self, ask: Ask[NoParams, None]) -> object:
        last = next(iter(await self._store.generations.runs(1)), None)
        return {"run": None if last is None else run_as_json(last)}

    async def of_host(self, ask: Ask[HostParams, None]) -> object:
        host_id = HostId(ask.params.host_id)
        rows = await self._store.generations.percentiles_of(host_id)
        if not rows:
            await self._store.views.host(host_id)
        return {"percentiles": [percentile_as_json(one) for one in rows]}
