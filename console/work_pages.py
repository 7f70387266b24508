"""One job and one instance: what became of it, and why it is not sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from aiohttp import web

from administration.access.who import present
from administration.explain.service import Explain
from administration.explain.words import instance_in_words
from administration.results import Results, sees_results
from domain.jobs import InstanceState
from domain.units import InstanceId, JobId
from domain.views import JobRow
from web.desk import FEW_HOSTS, Desk, hosts_asked, id_of
from web.rendering import Crumb, Page

Document = Mapping[str, Any]  # Any: a JSON document


TRICKLES_SHOWN = 100


class WorkPages:
    """Jobs and instances."""

    def __init__(self, desk: Desk, results: Results, api: str) -> None:
        """`api` is where the API is, for links to files."""
        self._desk = desk
        self._results = results
        self._api = api
        self._explain = Explain(desk.store, desk.clock)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/jobs/{id}", self.job, name="job"),
            web.get("/jobs/{id}/why", self.why, name="job_why"),
            web.get("/instances/{id}", self.instance, name="instance"),
        ]

    async def job(self, request: web.Request) -> web.Response:
        job_id = JobId(id_of(request))
        job = await self._desk.store.views.job(job_id)
        waits = any(one.state is InstanceState.UNSENT for one in job.instances)
        page = Page(
            "job.html",
            f"Job {job_id}",
            "batches",
            self._above(job.batch_id),
            {"job": job, "waits": waits, "found": await self._found(request, job)},
        )
        return self._desk.show(request, page)

    async def why(self, request: web.Request) -> web.Response:
        """Why its unsent instances wait: the decision run dry for the hosts that called last."""
        job_id = JobId(id_of(request))
        shown: Document = await self._explain.job(job_id, hosts=hosts_asked(request.query))
        crumbs = (*self._above(shown["batch_id"]), Crumb(f"jobs/{job_id}", f"Job {job_id}"))
        return self._desk.show(
            request, Page("job_why.html", "Why is it not sent?", "batches", crumbs, {"shown": shown})
        )

    async def instance(self, request: web.Request) -> web.Response:
        """How its due date came about, term by term, and what became of it."""
        instance_id = InstanceId(id_of(request))
        shown: Document = await self._explain.instance(instance_id, hosts=FEW_HOSTS)
        job_id = shown["job_id"]
        crumbs = (*self._above(shown["batch_id"]), Crumb(f"jobs/{job_id}", f"Job {job_id}"))
        job = await self._desk.store.views.job(JobId(job_id))
        values = {
            "shown": shown,
            "words": instance_in_words(shown).splitlines(),
            "found": await self._found(request, job) if shown["outcome"]["is_canonical"] else None,
            **await self._trickles(request, job, instance_id),
        }
        return self._desk.show(request, Page("instance.html", f"Instance {instance_id}", "batches", crumbs, values))

    async def _found(self, request: web.Request, job: JobRow) -> Document | None:
        """A job's outputs with the addresses of their files; None of what is another submitter's."""
        batch = await self._desk.store.views.batch(job.batch_id)
        if not sees_results(present(request), batch.submitter_id):
            return None
        result = await self._results.of_job(job)
        place = f"{self._api}/jobs/{job.job_id}/outputs"
        links = {one.name: f"{place}/{quote(one.name, safe='')}" for one in result.outputs}
        return {"because": result.because, "outputs": result.outputs, "links": links}

    async def _trickles(self, request: web.Request, job: JobRow, instance_id: InstanceId) -> Document:
        """The first messages its app sent, and whether there are more; none of what is another submitter's."""
        batch = await self._desk.store.views.batch(job.batch_id)
        if not sees_results(present(request), batch.submitter_id):
            return {"trickles": (), "more_trickles": False}
        found = await self._desk.store.trickles.of_instance(instance_id, after=0, limit=TRICKLES_SHOWN + 1)
        return {"trickles": found[:TRICKLES_SHOWN], "more_trickles": len(found) > TRICKLES_SHOWN}

    def _above(self, batch_id: int) -> tuple[Crumb, ...]:
        return (
            Crumb("batches", "Batches"),
            Crumb(f"batches/{batch_id}", f"Batch {batch_id}"),
            Crumb(f"batches/{batch_id}/jobs", "Jobs"),
        )
