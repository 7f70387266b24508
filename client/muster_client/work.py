"""Batches, jobs, hosts and applications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Literal, overload

from muster_client import shapes
from muster_client.transport import StrPath, Transport, UnreachableError, part, query_of

ExplainedKind = Literal["host", "batch", "job", "instance"]
LookedFor = Literal["slow", "failing", "silent"]  # kinds of hosts


class Work(Transport):
    async def submit(self, batch: Mapping[str, object]) -> int:
        """Submit a batch: the keys of a batch file, inputs by the name of a file put before. Its id.

        Where the answer is lost it is sent again, and submitted once.
        """
        return int((await self._submit("batches", batch))["batch_id"])

    async def submit_and_preview(self, batch: Mapping[str, object]) -> shapes.Submitted:
        """The same, with when it will be done."""
        found: shapes.Submitted = await self._submit("batches", batch)
        return found

    async def preview(self, batch: Mapping[str, object]) -> shapes.PreviewShown:
        """When the batch would be done if it was submitted now: `q50_at`, `q90_at`, …. Nothing is written."""
        found: shapes.PreviewShown = (await self._call("POST", "batches?preview=true", batch))["forecast"]
        return found

    async def batch(self, batch_id: int) -> shapes.BatchShown:
        """A batch with its counters."""
        found: shapes.BatchShown = await self._call("GET", f"batches/{batch_id}")
        return found

    async def batches(self, *, limit: int | None = 100) -> list[shapes.BatchShown]:
        """The newest batches, newest first; None: all of them."""
        return await self._list("batches", "batches", limit=limit)

    async def abort(self, batch_id: int) -> shapes.BatchShown:
        """End a batch; returns it."""
        found: shapes.BatchShown = await self._call("POST", f"batches/{batch_id}/abort")
        return found

    async def set_batch(
        self,
        batch_id: int,
        *,
        user_priority: int | None = None,
        level: str | None = None,
        queue: str | None = None,
        account: str | None = None,
        deadline_at: float | None = None,
    ) -> shapes.Importance:
        """How important a batch is: user priority (-1024 to 0, to 1023 with a permission), service level, queue.

        Its account as long as nothing of it was sent, and the deadline of one that has a deadline.
        """
        body = {
            "user_priority": user_priority,
            "level": level,
            "queue": queue,
            "account": account,
            "deadline_at": deadline_at,
        }
        found: shapes.Importance = await self._call("PATCH", f"batches/{batch_id}", body)
        return found

    async def watch(self, batch_id: int) -> AsyncIterator[shapes.ProgressShown]:
        """How far a batch is, each time that changes, until it has ended. One that breaks off is taken up again."""
        broken = 0
        while True:
            try:
                async for name, data in self._events(f"batches/{batch_id}/events"):
                    if name == "end":
                        return
                    broken = 0
                    yield data
            except UnreachableError:
                broken += 1
                if broken == 3:
                    raise

    async def wait(self, batch_id: int) -> shapes.BatchShown:
        """The batch when it has ended."""
        async for _ in self.watch(batch_id):
            pass
        return await self.batch(batch_id)

    async def jobs(
        self, batch_id: int, *, state: str | None = None, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.JobShown]:
        """Jobs of a batch by id, behind the job `after`, those in one `state` or all, without their instances."""
        return await self._list(f"batches/{batch_id}/jobs", "jobs", limit=limit, query={"state": state, "after": after})

    async def job(self, job_id: int) -> shapes.JobShown:
        """A job with its instances."""
        found: shapes.JobShown = await self._call("GET", f"jobs/{job_id}")
        return found

    async def job_outputs(self, job_id: int) -> shapes.ResultShown:
        """The outputs that a job's canonical instance brought, or why there is no result."""
        found: shapes.ResultShown = await self._call("GET", f"jobs/{job_id}/outputs")
        return found

    async def batch_results(
        self, batch_id: int, *, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.ResultShown]:
        """The results of a batch's jobs by id, behind the job `after`: the outputs of each, or why there is none."""
        return await self._list(f"batches/{batch_id}/results", "results", limit=limit, query={"after": after})

    async def fetch_outputs(
        self, batch_id: int, to: StrPath, *, after: int | None = None, limit: int | None = None
    ) -> int:
        """Write a tar with the outputs of a batch's valid jobs, of `limit` jobs behind `after`, to a path; its size.

        JOB/OUTPUT, and at its end `missing.jsonl`, which names what is missing. Where it breaks off nothing is left.
        """
        return await self._fetch(f"batches/{batch_id}/outputs{query_of({'after': after, 'limit': limit})}", Path(to))

    async def fetch_output(self, job_id: int, name: str, to: StrPath) -> int:
        """Write the file of one output of a job's result to a path; its size. Where it breaks off nothing is left."""
        return await self._fetch(f"jobs/{job_id}/outputs/{part(name)}", Path(to))

    async def instance(self, instance_id: int) -> shapes.OneInstance:
        """One instance of a job."""
        found: shapes.OneInstance = await self._call("GET", f"instances/{instance_id}")
        return found

    async def instance_trickles(self, instance_id: int, *, limit: int | None = 1000) -> list[shapes.TrickleShown]:
        """The trickle messages that an instance's app sent while it ran, in the order they came."""
        return await self._list(f"instances/{instance_id}/trickles", "trickles", limit=limit)

    async def forecasts(self, batch_id: int, *, limit: int = 100) -> shapes.ForecastsShown:
        """What is published of a batch, its `forecasts` in order of time, and how good its app's are (`accuracy`)."""
        path = f"batches/{batch_id}/forecasts"
        found: shapes.ForecastsShown = await self._call("GET", path, query={"limit": limit})
        return found

    async def forecast_health(self) -> list[shapes.AppForecastsShown]:
        """How forecasting goes, app by app: ages of the last forecasts, coverage and error."""
        found: list[shapes.AppForecastsShown] = (await self._call("GET", "forecasts"))["apps"]
        return found

    @overload
    async def explain(self, kind: Literal["host"], identifier: int) -> shapes.HostExplained: ...
    @overload
    async def explain(self, kind: Literal["batch"], identifier: int) -> shapes.BatchExplained: ...
    @overload
    async def explain(self, kind: Literal["job"], identifier: int) -> shapes.JobExplained: ...
    @overload
    async def explain(self, kind: Literal["instance"], identifier: int) -> shapes.InstanceExplained: ...
    @overload
    async def explain(self, kind: ExplainedKind, identifier: int) -> shapes.Explained: ...

    async def explain(self, kind: ExplainedKind, identifier: int) -> shapes.Explained:
        """The decision run dry: why a host gets no work, what holds a batch or job back, how a due date came about."""
        found: shapes.Explained = await self._call("GET", f"explain/{kind}/{identifier}")
        return found

    async def hosts(
        self, *, limit: int | None = 1000, show: LookedFor | None = None, silent_s: float | None = None
    ) -> list[shapes.ListedHostShown]:
        """Hosts by id, or those that are slow, fail or are silent, as the API's `list_hosts` says."""
        return await self._list("hosts", "hosts", limit=limit, query={"show": show, "silent_s": silent_s})

    async def host(self, host_id: int) -> shapes.HostDetail:
        """A host and what is known of it with each app version."""
        found: shapes.HostDetail = await self._call("GET", f"hosts/{host_id}")
        return found

    async def host_instances(self, host_id: int, *, limit: int | None = 1000) -> list[shapes.HeldShown]:
        """What a host has in progress."""
        return await self._list(f"hosts/{host_id}/instances", "instances", limit=limit)

    async def ranking(self) -> shapes.RankingRunShown | None:
        """What the last ranking of hosts found; None before the first."""
        found: shapes.RankingRunShown | None = (await self._call("GET", "ranking"))["run"]
        return found

    async def host_percentiles(self, host_id: int) -> list[shapes.PercentileShown]:
        """Where a host stands with each app version; nothing of a newcomer."""
        found: list[shapes.PercentileShown] = (await self._call("GET", f"hosts/{host_id}/percentiles"))["percentiles"]
        return found

    async def unschedulable(self) -> list[shapes.RefusedShown]:
        """Return work that every recent host refused, with the reasons."""
        found: list[shapes.RefusedShown] = (await self._call("GET", "unschedulable"))["refused"]
        return found

    async def processes(self, *, limit: int | None = 1000) -> list[shapes.ProcessShown]:
        """What each process said of itself in the last minute: of a worker its job array."""
        return await self._list("processes", "processes", limit=limit)

    async def apps(self, *, limit: int | None = 1000) -> list[shapes.AppShown]:
        """Applications with their current versions."""
        return await self._list("apps", "apps", limit=limit)

    async def app(self, name: str) -> shapes.AppDetail:
        """An application and each of its current versions."""
        found: shapes.AppDetail = await self._call("GET", f"apps/{part(name)}")
        return found

    async def add_app(self, name: str, **more: Any) -> shapes.NewApp:
        """Add an application; `more`: user_friendly_name, beta, adaptive_copies, one_per_host, one_per_volunteer."""
        found: shapes.NewApp = await self._call("POST", "apps", {"name": name, **more})
        return found

    async def set_app(self, name: str, **more: Any) -> shapes.AppShown:
        """Change an application; `more` as in `add_app`, or deprecated."""
        found: shapes.AppShown = await self._call("PATCH", f"apps/{part(name)}", more)
        return found

    async def plan_classes(self, *, limit: int | None = 1000) -> list[shapes.PlanClassShown]:
        """Plan classes by name."""
        return await self._list("plan-classes", "plan_classes", limit=limit)

    async def set_plan_class(self, name: str, **more: Any) -> shapes.PlanClassShown:
        """Define or change a plan class; `more`: the keys of `plan_classes`, else their defaults."""
        found: shapes.PlanClassShown = await self._call("PUT", f"plan-classes/{part(name)}", more)
        return found

    async def add_version(
        self,
        app: str,
        program: StrPath,
        *,
        platform: str,
        version: int,
        signature: str,
        plan_class: str = "",
        api_version: str = "7.5.0",
    ) -> int:
        """Add a version of an application, 100 is 1.00; its id. `signature`: of the program, see `muster sign`."""
        executable = Path(program)
        query = {
            "platform": platform,
            "version": version,
            "file": executable.name,
            "signature": signature,
            "plan_class": plan_class,
            "api_version": api_version,
        }
        with await asyncio.to_thread(executable.open, "rb") as file:
            found = await self._call("POST", f"apps/{part(app)}/versions", query=query, data=file)
        return int(found["app_version_id"])

    async def put_file(self, path: StrPath, *, name: str | None = None) -> shapes.FileShown:
        """Bring a file that batches may name as an input."""
        local = Path(path)
        with await asyncio.to_thread(local.open, "rb") as file:
            found: shapes.FileShown = await self._call("PUT", f"files/{part(name or local.name)}", data=file)
        return found
