"""One batch: how far it is, when it will be done, what holds it back, its jobs. Live where there is JavaScript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from administration.access.who import person_of, present
from administration.explain.service import Explain
from administration.forecasts.service import ForecastViews
from administration.forecasts.words import holds_in_words, not_shown, terms_in_words
from administration.results import sees_results
from console.bars import bar_of
from console.batch_charts import forecasts_chart, progress_chart, until_forecast
from console.places import sentence, standings
from domain.access import Role
from domain.batches import BatchState
from domain.errors import InvalidInputError
from domain.forecasts import ForecastState, state_of
from domain.jobs import InstanceState
from domain.ordering import ServiceLevel
from domain.settings import Settings
from domain.units import BatchId, Instant, JobId, Seconds
from priority.charging import queues
from web.bodies import whole_number
from web.desk import LARGEST_ID, Desk, hosts_asked, id_of
from web.rendering import Crumb, Page

LIVE_S = 3
FORECASTS = 20  # in the table
SPANS = 120  # in the chart
JOBS = 50
FIRST_INSTANCES = 10
LOOK = 2000  # jobs that are looked through for a page of those in one state
STATES = ("all", "open", "valid", "failed", "cancelled")
Document = Mapping[str, Any]  # Any: a JSON document


class BatchPage:
    """A batch, why it waits, and its jobs."""

    def __init__(self, desk: Desk, api: str) -> None:
        """`api` is where the API is, for the link to all results."""
        self._desk = desk
        self._api = api
        self._forecasts = ForecastViews(desk.store, desk.clock)
        self._explain = Explain(desk.store, desk.clock)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/batches/{id}", self.show, name="batch"),
            web.get("/batches/{id}/why", self.why, name="batch_why"),
            web.get("/batches/{id}/jobs", self.jobs, name="batch_jobs"),
        ]

    async def show(self, request: web.Request) -> web.Response:
        batch_id = BatchId(id_of(request))
        store = self._desk.store
        batch = await store.views.batch(batch_id)
        shown: Document = await self._forecasts.of_batch(batch_id, limit=FORECASTS)
        submitter = await store.views.submitter_name(batch.submitter_id)
        account = await store.views.account_name(batch.account_id)
        ahead = await store.insight.work_ahead(batch_id)
        classes = await store.views.classes_of_batch(batch_id)
        curve = await store.forecasts.curve(batch_id, spans=SPANS)
        delay_bound_s = max((one.delay_bound_s for one in classes), default=Seconds(0.0))
        told = [one for one in curve if state_of(one, delay_bound_s) is ForecastState.SHOWN]
        first = await store.listings.instances(batch_id, tuple(InstanceState), after=None, limit=FIRST_INSTANCES + 1)
        standing = (await standings(store.ordering_rules, [batch_id]))[batch_id]
        since = Instant(self._desk.clock.now() - self._settings.ranking.active_s)
        short = (await store.insight.short([batch_id], active_since=since)).get(batch_id)
        shown = {**shown, "at_risk": short.reason if short is not None else shown["at_risk"]}
        last = shown["forecasts"][-1] if shown["forecasts"] else None
        person, counts = person_of(request), batch.counts
        now, estimator = self._desk.clock.now(), self._settings.estimator
        values: dict[str, object] = {
            "batch": batch,
            "bar": bar_of(counts.jobs_total, counts.jobs_validated, counts.jobs_failed, counts.in_progress),
            "shown": shown,
            "last": last,
            "over": progress_chart(shown, told, now),
            "went": forecasts_chart(shown, told, now, delay_bound_s=delay_bound_s),
            "until_forecast": until_forecast(shown, now, look_s=estimator.look_s, timer_s=estimator.timer_s),
            "not_shown": not_shown(ForecastState(shown["forecast_state"])),
            "holds": last["holds"] if last else [],
            "terms": list(terms_in_words(last["terms"])) if last else [],
            "hold_words": list(holds_in_words(last["holds"])) if last else [],
            "submitter": submitter,
            "account": account,
            "ahead": ahead,
            "standing": standing,
            "stands": sentence(standing, now),
            "classes": classes,
            "instances": first[:FIRST_INSTANCES],
            "more_instances": len(first) > FIRST_INSTANCES,
            "results": f"{self._api}/batches/{batch_id}/outputs"
            if sees_results(present(request), batch.submitter_id)
            else None,
            "may": person is not None and person.may(Role.SUBMITTER) and person.owns(batch.submitter_id),
            "levels": [level.value for level in ServiceLevel],
            "queues": sorted(queues(self._settings.ordering.queues)),
        }
        every_s = LIVE_S if batch.state is BatchState.ACTIVE else 0
        page = Page(
            "batch.html",
            batch.name or f"Batch {batch_id}",
            "batches",
            (Crumb("batches", "Batches"),),
            values,
            charts=True,
            every_s=every_s,
        )
        return self._desk.show(request, page)

    @property
    def _settings(self) -> Settings:
        return self._desk.catalogue.settings

    async def why(self, request: web.Request) -> web.Response:
        """What holds it back: the decision run dry for the hosts that called last."""
        batch_id = BatchId(id_of(request))
        shown: Document = await self._explain.batch(batch_id, hosts=hosts_asked(request.query))
        standing = (await standings(self._desk.store.ordering_rules, [batch_id]))[batch_id]
        name = shown["name"] or f"Batch {batch_id}"
        crumbs = (Crumb("batches", "Batches"), Crumb(f"batches/{batch_id}", name))
        stands = sentence(standing, self._desk.clock.now())
        values = {"shown": shown, "name": name, "standing": standing, "stands": stands}
        return self._desk.show(request, Page("batch_why.html", "What holds it back", "batches", crumbs, values))

    async def jobs(self, request: web.Request) -> web.Response:
        """Its jobs by id, or those in one state."""
        batch_id = BatchId(id_of(request))
        state = request.query.get("state", "all")
        if state not in STATES:
            raise InvalidInputError("state", "one of " + ", ".join(STATES), state)
        batch = await self._desk.store.views.batch(batch_id)
        after = whole_number(request.query["after"], "after", 1, LARGEST_ID) if "after" in request.query else None
        values: dict[str, object] = {"batch": batch, "state": state, "states": STATES}
        values |= await self._chosen(batch_id, state, JobId(after) if after is not None else None)
        name = batch.name or f"Batch {batch_id}"
        crumbs = (Crumb("batches", "Batches"), Crumb(f"batches/{batch_id}", name))
        return self._desk.show(request, Page("jobs.html", "Jobs", "batches", crumbs, values))

    async def _chosen(self, batch_id: BatchId, state: str, after: JobId | None) -> dict[str, object]:
        """A page of jobs; of those in one state at most so many are looked through, and the next page goes on."""
        look = JOBS if state == "all" else LOOK
        found = list(await self._desk.store.views.jobs(batch_id, limit=look + 1, after=after))
        looked = found[:look]
        chosen = [job for job in looked if state in ("all", job.state.value)]
        last = chosen[JOBS - 1].job_id if len(chosen) >= JOBS else looked[-1].job_id if looked else None
        more = len(found) > look or len(chosen) > JOBS
        page: Sequence[object] = chosen[:JOBS]
        return {"jobs": page, "next": last if more else None, "looked": len(looked), "after": after}
