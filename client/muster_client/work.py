"""Client methods for batches, jobs, hosts and applications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from muster_client import shapes
from muster_client.transport import IfMatch, StrPath, Transport, UnreachableError, part, query_of

ExplainedKind = Literal["host", "batch", "job", "instance"]
HostListKind = Literal["without_work", "slow", "failing", "silent", "restricted"]  # kinds of host lists


class Work(Transport):
    async def submit(self, batch: Mapping[str, object]) -> int:
        """Submit a batch and return its id. `batch` has the keys of a batch file; inputs are names of uploaded files.

        If the reply is lost, the request is repeated, but the batch is submitted only once.
        """
        return int((await self._submit("batches", batch))["batch_id"])

    async def submit_and_preview(self, batch: Mapping[str, object]) -> shapes.Submitted:
        """Submit a batch and return it with its forecast."""
        found: shapes.Submitted = await self._submit("batches", batch)
        return found

    async def preview(self, batch: Mapping[str, object]) -> shapes.PreviewShown:
        """Return the forecast for the batch if it were submitted now: `q50_at`, `q90_at`, …. Nothing is stored."""
        found: shapes.PreviewShown = (await self._call("POST", "batches?preview=true", batch))["forecast"]
        return found

    async def batch(self, batch_id: int) -> shapes.OneBatchShown:
        """Return a batch with its job counts."""
        found: shapes.OneBatchShown = await self._call("GET", f"batches/{batch_id}")
        return found

    async def batches(self, *, limit: int | None = 100, **chosen: object) -> list[shapes.BatchShown]:
        """Return batches, newest first; all batches if `limit` is None.

        `chosen`: state, qos, app, submitter, account, queue, at_risk, blocked, failed, q (a part of the name) and sort,
        as the API's `list_batches` defines them.
        """
        return await self._list("batches", "batches", limit=limit, query=chosen)

    async def abort(self, batch_id: int, *, if_match: IfMatch = None) -> shapes.BatchShown:
        """Abort a batch and return it."""
        found: shapes.BatchShown = await self._call("POST", f"batches/{batch_id}/abort", if_match=if_match)
        return found

    async def clone_batch(self, batch_id: int, **changes: Any) -> shapes.Submitted:
        """Submit the jobs of a batch again, in a new batch, and return it with its forecast.

        `changes`: name, qos, deadline_s, submitter, account, queue, level, user_priority; others are as in the batch.
        If the reply is lost, the request is repeated, but the batch is submitted only once.
        """
        found: shapes.Submitted = await self._submit(f"batches/{batch_id}/clone", changes)
        return found

    async def preview_clone(self, batch_id: int, **changes: Any) -> shapes.PreviewShown:
        """Return the forecast for a clone with these changes. Nothing is stored."""
        path = f"batches/{batch_id}/clone?preview=true"
        found: shapes.PreviewShown = (await self._call("POST", path, changes))["forecast"]
        return found

    async def retry_batch(self, batch_id: int, *, if_match: IfMatch = None) -> shapes.Retried:
        """Open the failed jobs of a batch again, with new instances."""
        found: shapes.Retried = await self._call("POST", f"batches/{batch_id}/retry", if_match=if_match)
        return found

    async def batch_errors(self, batch_id: int) -> shapes.BatchErrors:
        """Return the errors of a batch, grouped by exit status and the end of standard error."""
        found: shapes.BatchErrors = await self._call("GET", f"batches/{batch_id}/errors")
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
        release: bool = False,
        why: str | None = None,
        if_match: IfMatch = None,
    ) -> shapes.Importance:
        """Change a batch's user priority (-1024 to 0, or to 1023 with a permission), service level and queue.

        The account can change until the first job is sent, the deadline only if the batch has one. `release`: it no
        longer waits for other batches. `why`: the reason, for the audit trail.
        """
        body = {
            "user_priority": user_priority,
            "level": level,
            "queue": queue,
            "account": account,
            "deadline_at": deadline_at,
            "release": release,
            "why": why,
        }
        found: shapes.Importance = await self._call("PATCH", f"batches/{batch_id}", body, if_match=if_match)
        return found

    async def watch(self, batch_id: int) -> AsyncIterator[shapes.ProgressShown]:
        """Yield a batch's progress after each change until it has ended. Reconnects if the stream breaks."""
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

    async def wait(self, batch_id: int) -> shapes.OneBatchShown:
        """Wait until a batch has ended and return it."""
        async for _ in self.watch(batch_id):
            pass
        return await self.batch(batch_id)

    async def jobs(
        self, batch_id: int, *, state: str | None = None, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.JobShown]:
        """Return a batch's jobs in order of id, after id `after`, in one `state` or all, without their instances."""
        return await self._list(f"batches/{batch_id}/jobs", "jobs", limit=limit, query={"state": state, "after": after})

    async def instances(
        self, batch_id: int, *, state: str | None = None, limit: int | None = 1000
    ) -> list[shapes.ListedInstanceShown]:
        """Return a batch's instances, retries and copies first, in one `state` or all."""
        return await self._list(f"batches/{batch_id}/instances", "instances", limit=limit, query={"state": state})

    async def job(self, job_id: int) -> shapes.JobShown:
        """Return a job with its instances."""
        found: shapes.JobShown = await self._call("GET", f"jobs/{job_id}")
        return found

    async def job_outputs(self, job_id: int) -> shapes.ResultShown:
        """Return the outputs of a job's canonical instance, or why there is no result."""
        found: shapes.ResultShown = await self._call("GET", f"jobs/{job_id}/outputs")
        return found

    async def batch_results(
        self, batch_id: int, *, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.ResultShown]:
        """Return the results of a batch's jobs after job id `after`: each job's outputs, or why it has none."""
        return await self._list(f"batches/{batch_id}/results", "results", limit=limit, query={"after": after})

    async def results_table(self, batch_id: int, to: StrPath) -> int:
        """Download a CSV table of a batch's jobs and results; return its size. A partial file is removed."""
        return await self._fetch(f"batches/{batch_id}/results.csv", Path(to))

    async def fetch_outputs(
        self, batch_id: int, to: StrPath, *, after: int | None = None, limit: int | None = None
    ) -> int:
        """Download the outputs of a batch's valid jobs as a tar archive, for `limit` jobs after job id `after`; return
        its size.

        It contains JOB/OUTPUT files and, at the end, `missing.jsonl` with the missing files. A partial file is removed.
        """
        return await self._fetch(f"batches/{batch_id}/outputs{query_of({'after': after, 'limit': limit})}", Path(to))

    async def fetch_output(self, job_id: int, name: str, to: StrPath) -> int:
        """Download one output of a job and return its size. A partial file is removed."""
        return await self._fetch(f"jobs/{job_id}/outputs/{part(name)}", Path(to))

    async def instance(self, instance_id: int) -> shapes.OneInstance:
        """Return an instance of a job."""
        found: shapes.OneInstance = await self._call("GET", f"instances/{instance_id}")
        return found

    async def instance_trickles(self, instance_id: int, *, limit: int | None = 1000) -> list[shapes.TrickleShown]:
        """Return the trickle messages of an instance, in order of arrival."""
        return await self._list(f"instances/{instance_id}/trickles", "trickles", limit=limit)

    async def forecasts(self, batch_id: int, *, limit: int = 100) -> shapes.ForecastsShown:
        """Return a batch's `forecasts` in chronological order, and the `accuracy` of its app's forecasts."""
        path = f"batches/{batch_id}/forecasts"
        found: shapes.ForecastsShown = await self._call("GET", path, query={"limit": limit})
        return found

    async def forecast_health(self) -> list[shapes.AppForecastsShown]:
        """Return the health of each app's forecasts: ages of the latest forecasts, coverage and error."""
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
        """Explain, with a dry run, why a host gets no work, why a batch or job waits, or how a due date was set."""
        found: shapes.Explained = await self._call("GET", f"explain/{kind}/{identifier}")
        return found

    async def hosts(
        self,
        *,
        limit: int | None = 1000,
        show: HostListKind | None = None,
        silent_s: float | None = None,
        **chosen: object,
    ) -> list[shapes.ListedHostShown]:
        """Return hosts in order of id, or only some, such as slow ones, as the API's `list_hosts` defines them.

        `chosen`: platform (a part of its name), label, volunteer (an e-mail address) and sort.
        """
        query = {"show": show, "silent_s": silent_s, **chosen}
        return await self._list("hosts", "hosts", limit=limit, query=query)

    async def host(self, host_id: int) -> shapes.HostDetail:
        """Return a host with its statistics per app version."""
        found: shapes.HostDetail = await self._call("GET", f"hosts/{host_id}")
        return found

    async def set_host_labels(
        self, host_id: int, labels: Sequence[str], *, if_match: IfMatch = None
    ) -> shapes.HostLabels:
        """Replace the labels of a host, for queues bound to hosts."""
        found: shapes.HostLabels = await self._call(
            "PUT", f"hosts/{host_id}/labels", {"labels": list(labels)}, if_match=if_match
        )
        return found

    async def host_instances(self, host_id: int, *, limit: int | None = 1000) -> list[shapes.HeldShown]:
        """Return the instances in progress on a host."""
        return await self._list(f"hosts/{host_id}/instances", "instances", limit=limit)

    async def host_results(
        self, host_id: int, *, state: str | None = None, limit: int | None = 1000
    ) -> list[shapes.HostResult]:
        """Return the finished instances of a host, the last sent first, in one `state` or all."""
        return await self._list(f"hosts/{host_id}/results", "results", limit=limit, query={"state": state})

    async def ranking(self) -> shapes.RankingRunShown | None:
        """Return the latest host ranking; None before the first ranking."""
        found: shapes.RankingRunShown | None = (await self._call("GET", "ranking"))["run"]
        return found

    async def host_percentiles(self, host_id: int) -> list[shapes.PercentileShown]:
        """Return a host's percentile for each app version; empty if the host is not ranked."""
        found: list[shapes.PercentileShown] = (await self._call("GET", f"hosts/{host_id}/percentiles"))["percentiles"]
        return found

    async def attention(self) -> shapes.AttentionShown:
        """Return what needs an operator's attention, worst first."""
        found: shapes.AttentionShown = await self._call("GET", "attention")
        return found

    async def unschedulable(self) -> shapes.UnschedulableShown:
        """Return work that all recently active hosts refused, with the reasons, and paused work."""
        found: shapes.UnschedulableShown = await self._call("GET", "unschedulable")
        return found

    async def processes(self, *, limit: int | None = 1000) -> list[shapes.ProcessShown]:
        """Return each process's latest heartbeat within the last minute; a worker's includes its job array."""
        return await self._list("processes", "processes", limit=limit)

    async def samples(
        self,
        *series: str,
        over: str | None = None,
        from_at: float | None = None,
        to_at: float | None = None,
    ) -> shapes.SamplesShown:
        """Return the project's figures over time, all if no `series` is named.

        `over` is hour (the default), day, week, month or year; `from_at` and `to_at` choose a part instead.
        """
        query = {"series": ",".join(series) or None, "range": over, "from_at": from_at, "to_at": to_at}
        found: shapes.SamplesShown = await self._call("GET", "samples", query=query)
        return found

    async def apps(self, *, limit: int | None = 1000) -> list[shapes.AppShown]:
        """Return all applications with their current versions."""
        return await self._list("apps", "apps", limit=limit)

    async def app(self, name: str) -> shapes.AppDetail:
        """Return an application with its current versions."""
        found: shapes.AppDetail = await self._call("GET", f"apps/{part(name)}")
        return found

    async def add_app(self, name: str, **more: Any) -> shapes.NewApp:
        """Add an application. `more`: user_friendly_name, beta, adaptive_copies, one_per_host, one_per_volunteer."""
        found: shapes.NewApp = await self._call("POST", "apps", {"name": name, **more})
        return found

    async def set_app(self, name: str, *, if_match: IfMatch = None, **more: Any) -> shapes.AppShown:
        """Change an application. `more` has the fields of `add_app`, and deprecated."""
        found: shapes.AppShown = await self._call("PATCH", f"apps/{part(name)}", more, if_match=if_match)
        return found

    async def app_versions(self, app: str, *, limit: int | None = 1000) -> list[shapes.VersionShown]:
        """Return all versions of an application, newest first."""
        return await self._list(f"apps/{part(app)}/versions", "versions", limit=limit)

    async def app_use(self, app: str) -> list[shapes.VersionUseShown]:
        """Return hosts, results and failures of each version of an application, newest first."""
        found: list[shapes.VersionUseShown] = (await self._call("GET", f"apps/{part(app)}/use"))["use"]
        return found

    async def app_version(self, app_version_id: int) -> shapes.OneVersion:
        """Return an app version with its files."""
        found: shapes.OneVersion = await self._call("GET", f"app-versions/{app_version_id}")
        return found

    async def set_app_version(self, app_version_id: int, *, state: str, if_match: IfMatch = None) -> shapes.OneVersion:
        """Deprecate, withdraw or offer a version; `state`: offered, deprecated, withdrawn or aborted."""
        found: shapes.OneVersion = await self._call(
            "PATCH", f"app-versions/{app_version_id}", {"state": state}, if_match=if_match
        )
        return found

    async def plan_classes(self, *, limit: int | None = 1000) -> list[shapes.PlanClassShown]:
        """Return plan classes by name."""
        return await self._list("plan-classes", "plan_classes", limit=limit)

    async def plan_class(self, name: str) -> shapes.PlanClassShown:
        """Return a plan class."""
        found: shapes.PlanClassShown = await self._call("GET", f"plan-classes/{part(name)}")
        return found

    async def set_plan_class(self, name: str, *, if_match: IfMatch = None, **more: Any) -> shapes.PlanClassShown:
        """Define or change a plan class. `more`: the keys of `plan_classes`, which have defaults."""
        found: shapes.PlanClassShown = await self._call("PUT", f"plan-classes/{part(name)}", more, if_match=if_match)
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
        """Add an app version (100 means 1.00) and return its id. `muster sign` makes the program's `signature`."""
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
        """Upload a file that batches can use as an input."""
        local = Path(path)
        with await asyncio.to_thread(local.open, "rb") as file:
            found: shapes.FileShown = await self._call("PUT", f"files/{part(name or local.name)}", data=file)
        return found
