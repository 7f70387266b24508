"""The decision run dry, and thresholds, over the API."""

from __future__ import annotations

from aiohttp import web

from domain.clock import Clock
from domain.units import BatchId, HostId, InstanceId, JobId
from operations.api.bodies import ThresholdsBody, read_body, whole_number
from operations.api.replies import reply
from operations.explain.service import Explain
from operations.thresholds.keys import FORESEEN, changes_of
from operations.thresholds.service import Thresholds
from operations.thresholds.shown import preview_as_json
from store.postgres import PostgresStore


class Explaining:
    """The handlers under /explain and /thresholds."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._explain = Explain(store, clock)
        self._thresholds = Thresholds(store, clock)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/explain/host/{id}", self.host),
            web.get("/explain/batch/{id}", self.batch),
            web.get("/explain/job/{id}", self.job),
            web.get("/explain/instance/{id}", self.instance),
            web.get("/thresholds", self.show),
            web.get("/thresholds/preview", self.preview),
            web.put("/thresholds", self.set),
        ]

    async def host(self, request: web.Request) -> web.Response:
        return reply(await self._explain.host(HostId(_id(request))))

    async def batch(self, request: web.Request) -> web.Response:
        return reply(await self._explain.batch(BatchId(_id(request))))

    async def job(self, request: web.Request) -> web.Response:
        return reply(await self._explain.job(JobId(_id(request))))

    async def instance(self, request: web.Request) -> web.Response:
        return reply(await self._explain.instance(InstanceId(_id(request))))

    async def show(self, request: web.Request) -> web.Response:
        return reply({"thresholds": await self._thresholds.show()})

    async def preview(self, request: web.Request) -> web.Response:
        """GET /thresholds/preview?p_tight=0.85: nothing is changed."""
        changes = changes_of(((key, _number(value)) for key, value in request.query.items()), FORESEEN)
        return reply(preview_as_json(await self._thresholds.preview(changes)))

    async def set(self, request: web.Request) -> web.Response:
        """PUT /thresholds with `values`, `why` and, unless the API is to be named, `by`."""
        body = await read_body(request, ThresholdsBody)
        changed = await self._thresholds.set(changes_of(body.values.items()), who=body.by, why=body.why)
        return reply({"changed": changed})


def _id(request: web.Request) -> int:
    return whole_number(request.match_info["id"], "id", 1, 2**62)


def _number(text: str) -> object:
    """A number where the text reads as one; what is no number is refused with the threshold's name.

    >>> _number("0.85"), _number("high")
    (0.85, 'high')
    """
    try:
        return float(text)
    except ValueError:
        return text
