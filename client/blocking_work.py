"""What the client that waits does with batches, jobs, hosts and applications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, overload

from api import shapes
from client.client import Client
from client.work import ExplainedKind, LookedFor


class BlockingWork:
    """A client and the loop it runs in."""

    def __init__(self, url: str, token: str) -> None:
        self._client = Client(url, token)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._client.__aexit__(kind, error, trace))
        self._runner.close()

    def submit(self, batch: Mapping[str, object]) -> int:
        """Submit a batch: the keys of a batch file, inputs by the name of a file put before. Its id."""
        return self._runner.run(self._client.submit(batch))

    def submit_and_preview(self, batch: Mapping[str, object]) -> shapes.Submitted:
        """The same, with when it will be done."""
        return self._runner.run(self._client.submit_and_preview(batch))

    def preview(self, batch: Mapping[str, object]) -> shapes.PreviewShown:
        """When the batch would be done if it was submitted now: `q50_at`, `q90_at`, …. Nothing is written."""
        return self._runner.run(self._client.preview(batch))

    def batch(self, batch_id: int) -> shapes.BatchShown:
        """A batch with its counters."""
        return self._runner.run(self._client.batch(batch_id))

    def batches(self, *, limit: int | None = 100) -> list[shapes.BatchShown]:
        """The newest batches, newest first; None: all of them."""
        return self._runner.run(self._client.batches(limit=limit))

    def abort(self, batch_id: int) -> shapes.BatchShown:
        """End a batch; returns it."""
        return self._runner.run(self._client.abort(batch_id))

    def set_batch(
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
        return self._runner.run(
            self._client.set_batch(
                batch_id,
                user_priority=user_priority,
                level=level,
                queue=queue,
                account=account,
                deadline_at=deadline_at,
            )
        )

    def watch(self, batch_id: int) -> Iterator[shapes.ProgressShown]:
        """How far a batch is, each time that changes, until it has ended. One that breaks off is taken up again."""
        events = self._client.watch(batch_id)
        try:
            while True:
                yield self._runner.run(_next(events))
        except StopAsyncIteration:
            return

    def wait(self, batch_id: int) -> shapes.BatchShown:
        """The batch when it has ended."""
        return self._runner.run(self._client.wait(batch_id))

    def jobs(
        self, batch_id: int, *, state: str | None = None, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.JobShown]:
        """Jobs of a batch by id, behind the job `after`, those in one `state` or all, without their instances."""
        return self._runner.run(self._client.jobs(batch_id, state=state, after=after, limit=limit))

    def job(self, job_id: int) -> shapes.JobShown:
        """A job with its instances."""
        return self._runner.run(self._client.job(job_id))

    def job_outputs(self, job_id: int) -> shapes.ResultShown:
        """The outputs that a job's canonical instance brought, or why there is no result."""
        return self._runner.run(self._client.job_outputs(job_id))

    def batch_results(
        self, batch_id: int, *, after: int | None = None, limit: int | None = 1000
    ) -> list[shapes.ResultShown]:
        """The results of a batch's jobs by id, behind the job `after`: the outputs of each, or why there is none."""
        return self._runner.run(self._client.batch_results(batch_id, after=after, limit=limit))

    def fetch_outputs(self, batch_id: int, to: Path, *, after: int | None = None, limit: int | None = None) -> int:
        """Write a tar with the outputs of a batch's valid jobs, of `limit` jobs behind `after`, to a path; its size."""
        return self._runner.run(self._client.fetch_outputs(batch_id, to, after=after, limit=limit))

    def fetch_output(self, job_id: int, name: str, to: Path) -> int:
        """Write the file of one output of a job's result to a path; its size. Where it breaks off nothing is left."""
        return self._runner.run(self._client.fetch_output(job_id, name, to))

    def instance(self, instance_id: int) -> shapes.OneInstance:
        """One instance of a job."""
        return self._runner.run(self._client.instance(instance_id))

    def instance_trickles(self, instance_id: int, *, limit: int | None = 1000) -> list[shapes.TrickleShown]:
        """The trickle messages that an instance's app sent while it ran, in the order they came."""
        return self._runner.run(self._client.instance_trickles(instance_id, limit=limit))

    def forecasts(self, batch_id: int, *, limit: int = 100) -> shapes.ForecastsShown:
        """What is published of a batch, its `forecasts` in order of time, and how good its app's are (`accuracy`)."""
        return self._runner.run(self._client.forecasts(batch_id, limit=limit))

    def forecast_health(self) -> list[shapes.AppForecastsShown]:
        """How forecasting goes, app by app: ages of the last forecasts, coverage and error."""
        return self._runner.run(self._client.forecast_health())

    @overload
    def explain(self, kind: Literal["host"], identifier: int) -> shapes.HostExplained: ...
    @overload
    def explain(self, kind: Literal["batch"], identifier: int) -> shapes.BatchExplained: ...
    @overload
    def explain(self, kind: Literal["job"], identifier: int) -> shapes.JobExplained: ...
    @overload
    def explain(self, kind: Literal["instance"], identifier: int) -> shapes.InstanceExplained: ...
    @overload
    def explain(self, kind: ExplainedKind, identifier: int) -> shapes.Explained: ...

    def explain(self, kind: ExplainedKind, identifier: int) -> shapes.Explained:
        """The decision run dry: why a host gets no work, what holds a batch or job back, how a due date came about."""
        return self._runner.run(self._client.explain(kind, identifier))

    def hosts(
        self, *, limit: int | None = 1000, show: LookedFor | None = None, silent_s: float | None = None
    ) -> list[shapes.ListedHostShown]:
        """Hosts by id, or those that are slow, fail or are silent, as the API's `list_hosts` says."""
        return self._runner.run(self._client.hosts(limit=limit, show=show, silent_s=silent_s))

    def host(self, host_id: int) -> shapes.HostDetail:
        """A host and what is known of it with each app version."""
        return self._runner.run(self._client.host(host_id))

    def host_instances(self, host_id: int, *, limit: int | None = 1000) -> list[shapes.HeldShown]:
        """What a host has in progress."""
        return self._runner.run(self._client.host_instances(host_id, limit=limit))

    def ranking(self) -> shapes.RankingRunShown | None:
        """What the last ranking of hosts found; None before the first."""
        return self._runner.run(self._client.ranking())

    def host_percentiles(self, host_id: int) -> list[shapes.PercentileShown]:
        """Where a host stands with each app version; nothing of a newcomer."""
        return self._runner.run(self._client.host_percentiles(host_id))

    def nobody(self) -> list[shapes.RefusedShown]:
        """Work that every host refuses, and why."""
        return self._runner.run(self._client.nobody())

    def processes(self, *, limit: int | None = 1000) -> list[shapes.ProcessShown]:
        """What each process said of itself in the last minute: of a worker its job array."""
        return self._runner.run(self._client.processes(limit=limit))

    def apps(self, *, limit: int | None = 1000) -> list[shapes.AppShown]:
        """Applications with their current versions."""
        return self._runner.run(self._client.apps(limit=limit))

    def app(self, name: str) -> shapes.AppDetail:
        """An application and each of its current versions."""
        return self._runner.run(self._client.app(name))

    def add_app(self, name: str, **more: Any) -> shapes.NewApp:
        """Add an application; `more`: user_friendly_name, beta, adaptive_copies, one_per_host, one_per_volunteer."""
        return self._runner.run(self._client.add_app(name, **more))

    def set_app(self, name: str, **more: Any) -> shapes.AppShown:
        """Change an application; `more` as in `add_app`, or deprecated."""
        return self._runner.run(self._client.set_app(name, **more))

    def plan_classes(self, *, limit: int | None = 1000) -> list[shapes.PlanClassShown]:
        """Plan classes by name."""
        return self._runner.run(self._client.plan_classes(limit=limit))

    def set_plan_class(self, name: str, **more: Any) -> shapes.PlanClassShown:
        """Define or change a plan class; `more`: the keys of `plan_classes`, else their defaults."""
        return self._runner.run(self._client.set_plan_class(name, **more))

    def add_version(
        self,
        app: str,
        program: Path,
        *,
        platform: str,
        version: int,
        signature: str,
        plan_class: str = "",
        api_version: str = "7.5.0",
    ) -> int:
        """Add a version of an application, 100 is 1.00; its id. `signature`: of the program, see `muster sign`."""
        return self._runner.run(
            self._client.add_version(
                app,
                program,
                platform=platform,
                version=version,
                signature=signature,
                plan_class=plan_class,
                api_version=api_version,
            )
        )

    def put_file(self, path: Path, *, name: str | None = None) -> shapes.FileShown:
        """Bring a file that batches may name as an input."""
        return self._runner.run(self._client.put_file(path, name=name))


async def _next(events: AsyncIterator[shapes.ProgressShown]) -> shapes.ProgressShown:
    return await anext(events)
