"""What became of each instance of a batch? All of them or those in one state, retries first, page by page."""

from __future__ import annotations

from urllib.parse import urlencode

from aiohttp import web

from administration.cursors import cursor_of, place_of
from domain.errors import InvalidInputError
from domain.jobs import InstanceState
from domain.units import BatchId
from domain.views import InstancePlace
from web.desk import Desk, id_of
from web.rendering import Crumb, Page

PER_PAGE = 50
ALL = "all"
STATES = (ALL, *(state.value for state in InstanceState))


def states_of(text: str) -> tuple[InstanceState, ...]:
    """The states that a word in the address stands for. Raises InvalidInputError.

    >>> states_of("timed_out")
    (<InstanceState.TIMED_OUT: 'timed_out'>,)
    """
    if text not in STATES:
        raise InvalidInputError("state", "one of " + ", ".join(STATES), text)
    return tuple(InstanceState) if text == ALL else (InstanceState(text),)


class InstancesPage:
    """A batch's instances."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/batches/{id}/instances", self.show, name="batch_instances")]

    async def show(self, request: web.Request) -> web.Response:
        batch_id = BatchId(id_of(request))
        state = request.query.get("state", ALL)
        states, after = states_of(state), place_of(InstancePlace, request.query.get("after", ""))
        batch = await self._desk.store.views.batch(batch_id)
        found = await self._desk.store.listings.instances(batch_id, states, after=after, limit=PER_PAGE + 1)
        page = found[:PER_PAGE]
        last = InstancePlace(page[-1].retries, page[-1].instance_id) if len(found) > PER_PAGE else None
        values: dict[str, object] = {
            "batch": batch,
            "instances": page,
            "state": state,
            "states": STATES,
            "first": after is None,
            "next": urlencode({"state": state, "after": cursor_of(last)}) if last else None,
        }
        crumbs = (Crumb("batches", "Batches"), Crumb(f"batches/{batch_id}", batch.name or f"Batch {batch_id}"))
        return self._desk.show(request, Page("instances.html", "Instances", "batches", crumbs, values))
