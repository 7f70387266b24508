"""Creates the measured project: hosts with histories, batches of every kind, and a backlog."""

from __future__ import annotations

import stat
from collections import defaultdict
from pathlib import Path

import asyncpg

from administration.apps import VersionDraft, add_app_version
from administration.project import Project
from administration.signing import with_project_key
from benchmarks.statements import statements
from domain.apps import App
from domain.batches import QoS
from domain.clock import Clock
from domain.jobs import JobClass, ValidatorKind, instance_name
from domain.submission import NewBatch
from domain.units import DAY_S, HOUR_S, AppId, BatchId, Flop, Instant, JobClassId, Seconds, later
from runtime.project import install
from store.postgres import PostgresStore

HOSTS = 20_000
BATCHES = 50
APP = "testapp"  # app in the captured requests
PLATFORM = "x86_64-pc-linux-gnu"
JOB_FLOP = Flop(3.6e12)  # about an hour
DELAY_BOUND_S = Seconds(7 * DAY_S)
CHUNK = 100_000  # jobs per statement
LEAST_PER_BATCH = 100  # minimum size of a batch that tops up the backlog
SQL = statements("dispatch")
SEED = "SELECT setseed(0.5)"

# The rate is limited only by processing: there are no quotas or limits on jobs in progress.
SETTINGS: dict[str, object] = {
    "scheduler.daily_quota": 1_000_000,
    "scheduler.daily_quota_start": 1_000_000,
    "scheduler.shared_quota_start": 0,
    "server.host_requests_per_s": 0,  # simulated hosts send requests as fast as they are answered
    "server.address_requests_per_s": 0,
    "scheduler.in_progress_per_cpu": 10_000,
    "scheduler.max_clock_skew_s": 3650 * DAY_S,  # the captured request contains its original time
}
# Hosts without validated results, all at one address. Each job is charged to quotas that never run out.
NEW_HOSTS: dict[str, object] = {"scheduler.shared_quota_start": 100_000_000, "server.trusted_proxies": ""}
LONG_VALID = 250  # valid results of a host with a long history
NEVER_VALID = -1_000_000  # initial n_valid, which does not reach 0 in any run
# Per ten batches. An "afap" batch without a forecast is sent only to the better half of the hosts.
KINDS: tuple[tuple[QoS, float | None], ...] = (
    (QoS.THROUGHPUT, None),
    (QoS.LONG_DEADLINE, 5 * DAY_S),
    (QoS.THROUGHPUT, None),
    (QoS.AFAP, 2 * DAY_S),
    (QoS.SHORT_DEADLINE, None),
    (QoS.THROUGHPUT, None),
    (QoS.LONG_DEADLINE, 6 * DAY_S),
    (QoS.THROUGHPUT, None),
    (QoS.AFAP, None),
    (QoS.SHORT_DEADLINE, None),
)


async def install_project(folder: Path, *, url: str, slots: int, clock: Clock, new_hosts: bool = False) -> Project:
    """Create an empty project on an embedded database. With `new_hosts`, hosts use shared quotas."""
    settings = {"project.url": url, "feeder.slots": slots, **SETTINGS, **(NEW_HOSTS if new_hosts else {})}
    return await install(folder / "project", None, settings, who="benchmark", clock=clock)


class World:
    """The measured project's database. Every request asks for `jobs` jobs, and every host initially has as many jobs
    in progress.

    `new_hosts`: no host has validated results.
    """

    def __init__(
        self,
        store: PostgresStore,
        connection: asyncpg.Connection,
        clock: Clock,
        *,
        jobs: int,
        new_hosts: bool = False,
    ) -> None:
        self._store = store
        self._connection = connection
        self._clock = clock
        self._jobs = jobs
        self._valid = NEVER_VALID if new_hosts else LONG_VALID
        self._app_id = AppId(0)
        self._batches = 0

    async def fill(self, project: Project, waiting_jobs: int) -> None:
        """Create the initial contents."""
        now = self._clock.now()
        await self._store.applications.add_app(App(AppId(0), APP, "Test application"))
        app = await self._store.applications.app(APP)
        self._app_id = app.app_id
        program = project.data_dir / "program.sh"
        program.write_text("#!/bin/sh\ntouch boinc_finish_called\n", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        new = VersionDraft(APP, PLATFORM, 100, program)
        version_id = await add_app_version(
            self._store.applications, project, new, clock=self._clock, sign=with_project_key(project)
        )
        await self._connection.execute(SEED)
        await self._connection.execute(SQL["volunteers"], (HOSTS + 1) // 2, now - 90 * DAY_S)
        await self._connection.execute(SQL["hosts"], HOSTS, now - 90 * DAY_S, now - HOUR_S, self._jobs)
        quota = SETTINGS["scheduler.daily_quota"]
        await self._connection.execute(SQL["histories"], HOSTS, version_id, now, quota, self._valid)
        await self._connection.execute(SQL["cut_points"], now, app.app_id)
        held = HOSTS * self._jobs
        batch_id, class_id = await self._batch(QoS.THROUGHPUT, held, forecast_s=None)
        sent_at, due_at = now - HOUR_S, now - HOUR_S + DELAY_BOUND_S
        await self._connection.execute(
            SQL["held_jobs"], batch_id, class_id, held, sent_at, HOSTS, version_id, due_at, timeout=3600.0
        )
        share, more = divmod(waiting_jobs, BATCHES)
        for number in range(BATCHES):
            await self._batch_of_waiting(share + (number < more))
        await self._connection.execute("VACUUM (ANALYZE)", timeout=3600.0)
        await self._connection.execute("CHECKPOINT", timeout=3600.0)

    async def waiting(self) -> int:
        """Return the number of unsent instances according to the counters."""
        return int(await self._connection.fetchval(SQL["waiting"]))

    async def top_up(self, waiting_jobs: int, *, most: int | None = None) -> int:
        """Add batches, at most `most` jobs per call, until this many jobs wait. Return how many jobs were added."""
        missing = waiting_jobs - await self.waiting()
        if missing < LEAST_PER_BATCH:
            return 0
        added = min(missing, most or missing)
        per_batch = max(LEAST_PER_BATCH, waiting_jobs // BATCHES)
        for start in range(0, added, per_batch):
            await self._batch_of_waiting(min(per_batch, added - start))
        return added

    async def held(self) -> dict[int, list[str]]:
        """Return the names of the results in progress on each host."""
        names: dict[int, list[str]] = defaultdict(list)
        for row in await self._connection.fetch(SQL["held_instances"]):
            name = instance_name(APP, row["batch_id"], row["job_id"], row["instance_id"])
            names[row["host_id"]].append(name)
        return names

    async def _batch_of_waiting(self, count: int) -> None:
        if not count:
            return
        qos, forecast_s = KINDS[self._batches % len(KINDS)]
        batch_id, class_id = await self._batch(qos, count, forecast_s=forecast_s)
        for start in range(0, count, CHUNK):
            some = min(CHUNK, count - start)
            await self._connection.execute(
                SQL["waiting_jobs"], batch_id, class_id, some, self._clock.now(), timeout=3600.0
            )

    async def _batch(self, qos: QoS, count: int, *, forecast_s: float | None) -> tuple[BatchId, JobClassId]:
        """Insert a batch and its class as a submission does. Later batches are later in the order."""
        now = self._clock.now()
        let_at = later(now, 60.0 * self._batches)
        number, self._batches = self._batches, self._batches + 1
        account = (await self._store.people.accounts())[0]
        submitter = (await self._store.people.submitters())[0]
        new = NewBatch(
            submitter.submitter_id,
            account.account_id,
            self._app_id,
            f"batch {number}",
            qos,
            count,
            created_at=now,
            order_tier=0,
            order_key=let_at,
            logical_start_at=now,
            logical_end_at=let_at,
            submitter_logical_at=now,
            charged_s=Seconds(0.0),
            batch_flop=Flop(count * JOB_FLOP),
            deadline_at=Instant(now + 3 * DAY_S) if qos is QoS.SHORT_DEADLINE else None,
        )
        async with self._store.submissions.submission() as writer:
            batch_id = await writer.add_batch(new)
            job_class = JobClass(
                JobClassId(0), batch_id, JOB_FLOP, Flop(100 * JOB_FLOP), 1e8, 1e8, DELAY_BOUND_S,
                validator=ValidatorKind.ACCEPT,
            )  # fmt: skip
            [class_id] = await writer.add_classes(batch_id, [job_class])
        if forecast_s is not None:
            await self._connection.execute(SQL["publish_forecast"], batch_id, now + forecast_s)
        return batch_id, class_id
