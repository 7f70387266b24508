"""A volunteer's results: what is in progress, and what became of the others."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import the_volunteer
from administration.cursors import cursor_of, place_of
from domain.errors import InvalidInputError
from domain.units import HostId
from domain.volunteers import Outcome, OwnResult, ResultPlace
from portal.desk import SiteDesk, titles_of
from portal.words import OUTCOME_WORDS, name_of
from web.bodies import whole_number
from web.rendering import Page

PER_PAGE = 50
HELD = 100
HOSTS = 200  # in the list to choose from


class ResultPages:
    """One page, chosen and continued by its address."""

    def __init__(self, desk: SiteDesk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/results", self.results, name="results")]

    async def results(self, request: web.Request) -> web.Response:
        desk, volunteer_id = self._desk, the_volunteer(request).volunteer.volunteer_id
        outcome, host_id, after = _chosen(request)
        totals, hosts, held, found = await asyncio.gather(
            desk.belongings.totals(volunteer_id),
            desk.belongings.hosts(volunteer_id, before=None, limit=HOSTS),
            desk.belongings.held(volunteer_id, host_id=host_id, limit=HELD),
            desk.belongings.results(volunteer_id, outcome=outcome, host_id=host_id, after=after, limit=PER_PAGE + 1),
        )
        kept = {name: str(value) for name, value in (("outcome", outcome), ("computer", host_id)) if value is not None}
        values: dict[str, object] = {
            "totals": totals,
            "names": {one.host.host_id: name_of(one.host) for one in hosts},
            "held": held,
            "results": found[:PER_PAGE],
            "titles": titles_of(desk.catalogue),
            "words": OUTCOME_WORDS,
            "outcome": outcome,
            "computer": host_id,
            "first": after is None,
            "kept": "?" + urlencode(kept) if kept else "",
            "next": "?" + urlencode({**kept, "after": _behind(found[PER_PAGE - 1])}) if len(found) > PER_PAGE else None,
        }
        return desk.show(request, Page("results.html", "My results", "results", values=values))


def _behind(last: OwnResult) -> str:
    return cursor_of(ResultPlace(last.sent_at, last.instance_id))


def _chosen(request: web.Request) -> tuple[Outcome | None, HostId | None, ResultPlace | None]:
    query = request.query
    outcome, computer, after = query.get("outcome", ""), query.get("computer", ""), query.get("after", "")
    if outcome and outcome not in list(Outcome):
        raise InvalidInputError("outcome", f"one of {', '.join(Outcome)}", outcome)
    return (
        Outcome(outcome) if outcome else None,
        HostId(whole_number(computer, "computer", 1, 2**31)) if computer else None,
        place_of(ResultPlace, after),
    )
