"""Shows a job, an instance, the instances of a batch, and unschedulable work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web

from administration.access.who import present
from administration.cursors import cursor_of, place_of
from administration.explain.job import explain_instance, explain_job
from administration.explain.verdict import examples
from administration.explain.words import instance_in_words, unsent_in_words
from administration.heartbeats import SILENT_S
from administration.restrictions import paused
from administration.results import Results, sees_results
from administration.show import shown
from administration.thresholds.in_force import lowered_gates
from administration.unschedulable import conclusion_of, refused_lately
from domain.batches import Batch
from domain.errors import InvalidInputError
from domain.jobs import InstanceState
from domain.ranking import Gate
from domain.refusals import BEHIND_GATE
from domain.units import BatchId, InstanceId, JobId, later
from domain.views import InstancePlace, JobRow
from muster_client import shapes
from web.csv_export import is_csv, send_csv
from web.handlers import Pages, PageServices, get, id_of
from web.rendering import Crumb, RenderedPage

Document = Mapping[str, Any]  # Any: a JSON document


TRICKLES_SHOWN = 100


class WorkPages(Pages[PageServices]):
    """Pages about jobs and instances."""

    def __init__(self, services: PageServices, results: Results, api: str) -> None:
        """`api` is the path of the API, for links to files."""
        super().__init__(services)
        self._results = results
        self._api = api

    @get("/jobs/{id}", "job")
    async def job(self, request: web.Request) -> RenderedPage:
        job_id = JobId(id_of(request))
        job = await self._services.store.views.job(job_id)
        batch = await self._services.store.views.batch(job.batch_id)
        waits = any(one.state is InstanceState.UNSENT for one in job.instances)
        return RenderedPage(
            "job.html",
            f"Job {job_id}",
            "batches",
            _above(batch),
            {"job": job, "waits": waits, "found": await self._found(request, job, batch)},
            hosts=await self._services.host_names(one.host_id for one in job.instances),
        )

    @get("/jobs/{id}/why", "job_why")
    async def why(self, request: web.Request) -> RenderedPage:
        """Show dry runs for the hosts with the latest requests."""
        job_id = JobId(id_of(request))
        store, clock = self._services.store, self._services.clock
        shown: Document = await explain_job(store, clock, job_id)
        batch = await self._services.store.views.batch(shown["batch_id"])
        crumbs = (*_above(batch), Crumb(f"jobs/{job_id}", f"Job {job_id}"))
        retries = {
            bool(one["retries"])
            for one in shown["waiting"]
            if one["sample"] and any(why["code"] in BEHIND_GATE for why in one["sample"]["held_back"])
        }
        lowered = lowered_gates(self._services.catalogue, [batch.app_id])
        values = {"shown": shown, "lowered": [one for one in lowered if (one.gate is Gate.RETRY) in retries]}
        hosts = await self._services.host_names(
            host_id for one in shown["waiting"] for host_id in (*one["sibling_hosts"], *examples(one["sample"]))
        )
        return RenderedPage("job_why.html", "Why is it not sent?", "batches", crumbs, values, hosts=hosts)

    @get("/instances/{id}", "instance")
    async def instance(self, request: web.Request) -> RenderedPage:
        """Show an instance, with the computation of its due date and its outcome."""
        instance_id = InstanceId(id_of(request))
        store, clock = self._services.store, self._services.clock
        shown: Document = await explain_instance(store, clock, instance_id)
        job_id = shown["job_id"]
        batch = await self._services.store.views.batch(shown["batch_id"])
        crumbs = (*_above(batch), Crumb(f"jobs/{job_id}", f"Job {job_id}"))
        job = await self._services.store.views.job(JobId(job_id))
        values = {
            "shown": shown,
            "words": instance_in_words(shown).splitlines(),
            "found": await self._found(request, job, batch) if shown["outcome"]["is_canonical"] else None,
            **await self._trickles(request, batch, instance_id),
        }
        hosts = await self._services.host_names([shown["host_id"]])
        return RenderedPage("instance.html", f"Instance {instance_id}", "batches", crumbs, values, hosts=hosts)

    async def _found(self, request: web.Request, job: JobRow, batch: Batch) -> Document | None:
        """Return a job's outputs with links to the files; None if the job is another submitter's."""
        if not sees_results(present(request), batch.submitter_id):
            return None
        result = await self._results.of_job(job)
        place = f"{self._api}/jobs/{job.job_id}/outputs"
        links = {one.name: f"{place}/{quote(one.name, safe='')}" for one in result.outputs}
        return {"because": result.because, "outputs": result.outputs, "links": links}

    async def _trickles(self, request: web.Request, batch: Batch, instance_id: InstanceId) -> Document:
        """Return the first trickle messages and whether there are more; no messages of another submitter's job."""
        if not sees_results(present(request), batch.submitter_id):
            return {"trickles": (), "more_trickles": False}
        found = await self._services.store.trickles.of_instance(instance_id, after=0, limit=TRICKLES_SHOWN + 1)
        return {"trickles": found[:TRICKLES_SHOWN], "more_trickles": len(found) > TRICKLES_SHOWN}


def _above(batch: Batch) -> tuple[Crumb, ...]:
    own = Crumb(f"batches/{batch.batch_id}", batch.name or f"Batch {batch.batch_id}")
    return Crumb("batches", "Batches"), own, Crumb(f"{own.address}/jobs", "Jobs")


LIVE_S = 10


class UnschedulablePage(Pages[PageServices]):
    """Lists work that all recently active hosts refused."""

    @get("/unschedulable", "unschedulable")
    async def show(self, request: web.Request) -> RenderedPage | web.Response:
        now, store = self._services.clock.now(), self._services.store
        processes = await store.process_reports.since(later(now, -SILENT_S))
        workers = [one for one in processes if one.kind == "worker"]
        found = await refused_lately(store, self._services.clock, processes)
        catalogue, pauses = self._services.catalogue, await paused(store)
        names = await store.listings.names([BatchId(int(one["name"])) for one in pauses if one["kind"] == "batch"])
        values: dict[str, object] = {
            "lost": found.lost,
            "listed": sum(bool(one.lost) for one in found.groups),
            "left_out": found.left_out,
            "paused": pauses,
            "names": {str(one): name for one, name in names.items()},
            "certain": [one for one in found.groups if one.is_certain],
            "not_judged": [one for one in found.groups if not one.is_certain],
            "verdict": conclusion_of(found.groups, found.batches, left_out=found.left_out),
            "batches": found.batches,
            "feeder": catalogue.settings.feeder,
            "workers": len(workers),
            "started_at": [one.report["started_at"] for one in workers],
        }
        return RenderedPage("unschedulable.html", "Unschedulable work", "unschedulable", values=values, every_s=LIVE_S)


PER_PAGE = 50
PER_READ = 1000  # rows of a CSV file that are read at once
ALL = "all"
STATES = (ALL, *(state.value for state in InstanceState))
LISTED_BY_RETRIES = {InstanceState.UNSENT, InstanceState.IN_PROGRESS}


def states_of(text: str) -> tuple[InstanceState, ...]:
    """Parse the state in the URL. Raises InvalidInputError.

    >>> states_of("timed_out")
    (<InstanceState.TIMED_OUT: 'timed_out'>,)
    """
    if text not in STATES:
        raise InvalidInputError("state", "one of " + ", ".join(STATES), text)
    return tuple(InstanceState) if text == ALL else (InstanceState(text),)


class InstancesPage(Pages[PageServices]):
    """Lists the instances of a batch."""

    @get("/batches/{id}/instances", "batch_instances", asks=("state", "after", "as"))
    async def show(self, request: web.Request) -> RenderedPage | web.StreamResponse:
        batch_id = BatchId(id_of(request))
        state = request.query.get("state", ALL)
        states, after = states_of(state), place_of(InstancePlace, request.query.get("after", ""))
        batch = await self._services.store.views.batch(batch_id)
        if is_csv(request.query):
            columns = [*shapes.ListedInstanceShown.__annotations__]
            return await send_csv(request, f"batch-{batch_id}-instances", columns, self._pages(batch_id, states))
        listings, most = self._services.store.listings, PER_PAGE + 1
        has_ended = not LISTED_BY_RETRIES.intersection(states)
        if has_ended:
            before = None if after is None else after.instance_id
            found = await listings.latest(batch_id, states, before=before, limit=most)
        else:
            found = await listings.instances(batch_id, states, after=after, limit=most)
        page = found[:PER_PAGE]
        last = InstancePlace(page[-1].retries, page[-1].instance_id) if len(found) > PER_PAGE else None
        values: dict[str, object] = {
            "batch": batch,
            "unsent": unsent_in_words(batch.counts.unsent, await self._services.store.listings.extras(batch_id)),
            "instances": page,
            "state": state,
            "has_ended": has_ended,
            "tabs": [
                (one, {"unsent": batch.counts.unsent, "in_progress": batch.counts.in_progress}.get(one))
                for one in STATES
            ],
            "first": after is None,
            "next": urlencode({"state": state, "after": cursor_of(last)}) if last else None,
        }
        crumbs = (Crumb("batches", "Batches"), Crumb(f"batches/{batch_id}", batch.name or f"Batch {batch_id}"))
        hosts = await self._services.host_names(one.host_id for one in page)
        return RenderedPage("instances.html", "Instances", "batches", crumbs, values, hosts=hosts)

    async def _pages(
        self, batch_id: BatchId, states: tuple[InstanceState, ...]
    ) -> AsyncIterator[Sequence[shapes.ListedInstanceShown]]:
        """Yield the batch's instances in these states."""
        place: InstancePlace | None = None
        while found := await self._services.store.listings.instances(batch_id, states, after=place, limit=PER_READ):
            yield [shown(shapes.ListedInstanceShown, one) for one in found]
            place = InstancePlace(found[-1].retries, found[-1].instance_id)
