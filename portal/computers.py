"""Shows a volunteer's computers and results: statistics, refusals, and outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import TooManyAttemptsError, the_volunteer
from administration.cursors import cursor_of, place_of
from administration.explain.host import explain_host
from administration.names import chosen
from domain.catalogue import Catalogue
from domain.hosts import HostAppVersion
from domain.ranking import percentile
from domain.units import HostId, Instant, Seconds
from domain.volunteers import Outcome, ResultPlace
from portal.services import (
    OUTCOME_WORDS,
    PortalServices,
    name_of,
    processors_of,
    reasons_in_words,
    reasons_of_dry_run,
    standing_in_words,
    title_of,
    titles_of,
    usual_turnaround_s,
)
from web.handlers import LARGEST_INT, Pages, get, id_of, post, whole_number
from web.rate_limit import Buckets
from web.rendering import Crumb, RenderedPage

PER_PAGE = 50
HELD = 200
DRY_RUNS_PER_S = 0.1  # dry runs per volunteer: rate and burst
DRY_RUNS_AT_ONCE = 10
AT_A_TIME = 1  # per worker, because each dry run fills its own job array


@dataclass(frozen=True, slots=True)
class AppRecord:
    """A computer's statistics for one application."""

    app: str
    valid: int
    failed: int
    late: int
    in_a_row: int
    usual_s: Seconds | None
    standing: str


def records_of(havs: Sequence[HostAppVersion], catalogue: Catalogue, now: Instant) -> list[AppRecord]:
    """Return the statistics of each application and current version for which the computer got work."""
    found = []
    for hav in havs:
        version = catalogue.versions.get(hav.app_version_id)
        app = None if version is None else catalogue.apps.get(version.app_id)
        if version is None or app is None or version not in catalogue.current.get(version.app_id, ()):
            continue
        cuts = catalogue.cut_points.get((version.app_id, version.processor_type))
        standing = percentile(hav, cuts, now=now, settings=catalogue.settings.ranking)
        found.append(
            AppRecord(
                title_of(app),
                hav.n_valid,
                hav.n_error,
                hav.n_timeout,
                hav.consecutive_valid,
                usual_turnaround_s(hav),
                standing_in_words(standing),
            )
        )
    return sorted(found, key=lambda one: one.app.lower())


class ComputerPages(Pages[PortalServices]):
    """Pages that show all computers or one computer, and a dry run for a computer."""

    def __init__(self, services: PortalServices) -> None:
        super().__init__(services)
        self._asked = Buckets(services.clock)
        self._running = asyncio.Semaphore(AT_A_TIME)

    @get("/computers", "computers", asks=("before",))
    async def computers(self, request: web.Request) -> RenderedPage:
        volunteer_id = the_volunteer(request).volunteer.volunteer_id
        text = request.query.get("before")
        before = HostId(whole_number(text, "before", 1, LARGEST_INT)) if text else None
        found = list(await self._services.store.volunteer_views.hosts(volunteer_id, before=before, limit=PER_PAGE + 1))
        more, found = len(found) > PER_PAGE, found[:PER_PAGE]
        values: dict[str, object] = {
            "computers": [
                (one, name_of(one.host), processors_of(one.host), reasons_in_words(one.refused[:1])) for one in found
            ],
            "url": self._services.catalogue.settings.project.url,
            "first": before is not None,
            "next": urlencode({"before": found[-1].host.host_id}) if more else None,
        }
        return RenderedPage("computers.html", "My computers", "computers", values=values)

    @get("/computers/{id}", "computer")
    async def computer(self, request: web.Request) -> RenderedPage:
        services, volunteer_id = self._services, the_volunteer(request).volunteer.volunteer_id
        own = await services.store.volunteer_views.host(volunteer_id, HostId(id_of(request, LARGEST_INT)))
        host_id = own.host.host_id
        (_, havs), held = await asyncio.gather(
            services.store.views.host(host_id),
            services.store.volunteer_views.held(volunteer_id, host_id=host_id, limit=HELD),
        )
        values: dict[str, object] = {
            "own": own,
            "host": own.host,
            "processors": processors_of(own.host),
            "records": records_of(havs, services.catalogue, services.clock.now()),
            "held": held,
            "titles": titles_of(services.catalogue),
            "reasons": reasons_in_words(own.refused),
        }
        crumbs = (Crumb("computers", "My computers"),)
        return RenderedPage("computer.html", name_of(own.host), "computers", crumbs, values)

    @post("/computers/{id}/remove", "computer_remove")
    async def remove(self, request: web.Request) -> web.Response:
        """Delete the computer's record, unless it has jobs in progress."""
        services, volunteer_id = self._services, the_volunteer(request).volunteer.volunteer_id
        own = await services.store.volunteer_views.host(volunteer_id, HostId(id_of(request, LARGEST_INT)))
        await services.store.participation.drop_host(volunteer_id, own.host.host_id, now=services.clock.now())
        return services.go("computers", "computer")

    @get("/computers/{id}/why", "computer_why")
    async def why(self, request: web.Request) -> RenderedPage:
        """Show a dry run for this computer. The number of concurrent dry runs is limited."""
        services, volunteer_id = self._services, the_volunteer(request).volunteer.volunteer_id
        own = await services.store.volunteer_views.host(volunteer_id, HostId(id_of(request, LARGEST_INT)))
        wait_s = self._asked.wait_s(volunteer_id, per_s=DRY_RUNS_PER_S, burst=DRY_RUNS_AT_ONCE)
        if wait_s:
            raise TooManyAttemptsError(wait_s, "this dry run was requested")
        async with self._running:
            shown: Mapping[str, Any] = await explain_host(  # Any: a JSON document
                services.store, services.clock, services.array, own.host.host_id
            )
        values: dict[str, object] = {
            "host": own.host,
            "shown": shown,
            "titles": titles_of(services.catalogue),
            "reasons": reasons_of_dry_run(shown),
        }
        crumbs = (Crumb("computers", "My computers"), Crumb(f"computers/{own.host.host_id}", name_of(own.host)))
        return RenderedPage("computer_why.html", "If it requested work now", "computers", crumbs, values)


RESULTS_HELD = 100
HOSTS = 200  # maximum number listed in the filter


class ResultPages(Pages[PortalServices]):
    """The list of results. The URL contains the filters and the page."""

    @get("/results", "results", asks=("outcome", "computer", "after"))
    async def results(self, request: web.Request) -> RenderedPage | web.Response:
        services, volunteer_id = self._services, the_volunteer(request).volunteer.volunteer_id
        outcome, host_id, after = _chosen(request)
        totals, hosts, held, found = await asyncio.gather(
            services.store.volunteer_views.totals(volunteer_id),
            services.store.volunteer_views.hosts(volunteer_id, before=None, limit=HOSTS),
            services.store.volunteer_views.held(volunteer_id, host_id=host_id, limit=RESULTS_HELD),
            services.store.volunteer_views.results(
                volunteer_id, outcome=outcome, host_id=host_id, after=after, limit=PER_PAGE + 1
            ),
        )
        found, more = found[:PER_PAGE], len(found) > PER_PAGE
        kept = {name: str(value) for name, value in (("outcome", outcome), ("computer", host_id)) if value is not None}
        values: dict[str, object] = {
            "totals": totals,
            "names": {one.host.host_id: name_of(one.host) for one in hosts},
            "held": held,
            "results": found,
            "titles": titles_of(services.catalogue),
            "words": OUTCOME_WORDS,
            "outcome": outcome,
            "computer": host_id,
            "first": after is None,
            "kept": "?" + urlencode(kept) if kept else "",
            "next": "?" + urlencode({**kept, "after": cursor_of(ResultPlace(found[-1].sent_at, found[-1].instance_id))})
            if more
            else None,
        }
        return RenderedPage("results.html", "My results", "results", values=values)


def _chosen(request: web.Request) -> tuple[Outcome | None, HostId | None, ResultPlace | None]:
    query = request.query
    outcome, computer, after = query.get("outcome", ""), query.get("computer", ""), query.get("after", "")
    return (
        chosen(Outcome, outcome, "outcome") if outcome else None,
        HostId(whole_number(computer, "computer", 1, LARGEST_INT)) if computer else None,
        place_of(ResultPlace, after),
    )
