"""Files of applications, the history and its files, trickles and forecast curves, in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import store.memory.applications
import store.memory.forecasts
import store.memory.ledger
import store.memory.sweeping
from domain.apps import App, AppFile, PlanClass, VersionState, VersionUse
from domain.batches import BatchState
from domain.dispatch import Trickle
from domain.errors import AlreadyExistsError, NotFoundError
from domain.forecasts import ForecastHealth, ForecastPoint, ForecastRecord
from domain.history import FinishedMonth, OutputPage, month_of
from domain.host_lists import RecentFailures
from domain.jobs import InstanceState, JobState
from domain.units import AppId, AppVersionId, BatchId, InstanceId, Instant
from lifecycle.states import HOST_FAILURES, OUTSTANDING
from store.memory.registry import RegisteredFile
from store.memory.rows import StoredJob


class MemoryApplications(store.memory.applications.MemoryApplications):
    async def apps(self) -> Sequence[App]:
        return list(self._registry.apps.values())

    async def plan_classes(self) -> Mapping[str, PlanClass]:
        return dict(sorted(self._registry.plan_classes.items()))

    async def set_version_state(self, app_version_id: AppVersionId, state: VersionState) -> None:
        versions = self._registry.versions
        if app_version_id not in versions:
            raise NotFoundError("app version", app_version_id)
        versions[app_version_id] = replace(versions[app_version_id], state=state)

    async def set_app(self, app: App) -> None:
        """Change everything except the name, because files are named after it."""
        known = self._registry.apps.get(app.app_id)
        if known is None:
            raise NotFoundError("app", app.app_id)
        self._registry.apps[app.app_id] = replace(app, name=known.name)

    async def add_file(self, name: str, *, nbytes: int, md5: str, signature: str, now: Instant) -> None:
        del now  # no test reads a file's registration time
        file = RegisteredFile(name, nbytes, md5, signature)
        known = self._registry.files.get(name, file)
        if (known.nbytes, known.md5) != (nbytes, md5):
            raise AlreadyExistsError("file", name)
        self._registry.files[name] = known if known.signature else file

    async def sign_file(self, name: str, signature: str) -> None:
        file = self._registry.files.get(name)
        if file is None:
            raise NotFoundError("file", name)
        self._registry.files[name] = replace(file, signature=signature)

    async def in_progress_of_version(self, app_version_id: AppVersionId) -> tuple[int, int]:
        instances = (row for job in self._work.jobs for row in job.instances)
        found = [
            one for one in instances if one.state is InstanceState.IN_PROGRESS and one.app_version_id == app_version_id
        ]
        return len(found), len({one.host_id for one in found})

    async def use_of_versions(self, app_id: AppId, *, since: Instant) -> Mapping[AppVersionId, VersionUse]:
        found: dict[AppVersionId, VersionUse] = {}
        for hav in (one for stored in self._work.hosts.values() for one in stored.havs.values()):
            number, results = hav.app_version_id, (hav.n_valid, hav.n_error, hav.n_timeout)
            if any(results) and self._registry.versions[number].app_id == app_id:
                old, recent = found.get(number, VersionUse(number)), int(hav.relaxed.at >= since)
                counts = zip(
                    (old.hosts, old.recent_hosts, old.valid, old.errors, old.timed_out),
                    (1, recent, *results),
                    strict=True,
                )
                found[number] = VersionUse(number, *(sum(pair) for pair in counts))
        return found

    async def failures_of_versions(self, *, since: Instant) -> Mapping[AppVersionId, RecentFailures]:
        states: dict[AppVersionId, list[InstanceState]] = {}
        last_at: dict[AppVersionId, Instant] = {}
        for row in (row for job in self._work.jobs if job.job_id not in self._work.history for row in job.instances):
            number, at = row.app_version_id, row.reported_at or row.timeout_at
            if row.state not in HOST_FAILURES or number is None or at is None or at < since:
                continue
            states.setdefault(number, []).append(row.state)
            last_at[number] = max(at, last_at.get(number, at))
        failed, invalid, timed_out = InstanceState.FAILED, InstanceState.INVALID, InstanceState.TIMED_OUT
        return {
            one: RecentFailures(found.count(failed), found.count(invalid), found.count(timed_out), last_at[one])
            for one, found in states.items()
        }

    async def app_files(self) -> Sequence[AppFile]:
        """Return every file of every app version, by version and position; each name once."""
        by_name: dict[str, AppFile] = {}
        for version in self._versions().values():
            for file in version.files:
                by_name[file.name] = file
        return list(by_name.values())


class MemoryHistory(store.memory.sweeping.MemoryHistory):
    def _kept(self, month: str) -> list[StoredJob]:
        """Return the jobs of a month, ascending."""
        jobs = (self._work.jobs[job_id - 1] for job_id in sorted(self._work.history - self._work.purged))
        return [job for job in jobs if job.batch.ended_at is not None and month_of(job.batch.ended_at) == month]

    async def months(self) -> Sequence[FinishedMonth]:
        return [self._month(month) for month in sorted(self._work.months)]

    def _month(self, month: str) -> FinishedMonth:
        jobs = self._kept(month)
        rows = [row for job in jobs for row in job.instances]
        uploads = [upload for row in rows for upload in row.uploads]
        file_bytes = sum(upload.nbytes for upload in uploads)
        found = FinishedMonth(month, len(jobs), len(rows), len(uploads), file_bytes)
        return replace(found, purged_at=self._work.months[month])

    async def outputs(self, month: str, *, after: InstanceId, limit: int) -> OutputPage:
        rows = sorted((row for job in self._kept(month) for row in job.instances), key=lambda row: row.instance_id)
        page = [row for row in rows if row.instance_id > after][:limit]
        uploads = tuple(upload for row in page for upload in row.uploads)
        return OutputPage(uploads, page[-1].instance_id if page else None)

    async def purge_month(self, month: str, *, now: Instant) -> None:
        """Purge a month; an empty one is unchanged."""
        if month in self._work.months:
            self._work.purged.update(job.job_id for job in self._kept(month))
            self._work.months[month] = now
            for batch_id in list(self._work.forecasts):
                ended_at = self._work.batches[batch_id].ended_at
                if ended_at is not None and month_of(ended_at) == month:
                    del self._work.forecasts[batch_id]


class MemoryUploads(store.memory.sweeping.MemoryUploads):
    async def unneeded(self, files: Sequence[tuple[str, InstanceId]]) -> Collection[str]:
        return sorted(name for name, instance_id in files if not self._is_needed(name, instance_id))

    def _is_needed(self, name: str, instance_id: InstanceId) -> bool:
        row = self._work.instance_of_any_age(instance_id)
        if row is None:
            return False
        return row.state in OUTSTANDING or name in {one.name for one in row.uploads}


class MemoryTrickles(store.memory.ledger.MemoryTrickles):
    async def of_instance(self, instance_id: InstanceId, *, after: int, limit: int) -> Sequence[Trickle]:
        found = [one for one in self._kept if one.instance_id == instance_id and one.trickle_id > after]
        return found[:limit]


class MemoryForecasts(store.memory.forecasts.MemoryForecasts):
    async def health(self) -> Sequence[ForecastHealth]:
        return [self._health(app) for app in sorted(self._registry.apps.values(), key=lambda app: app.app_id)]

    def _health(self, app: App) -> ForecastHealth:
        active = [
            batch.batch_id
            for batch in self._work.batches.values()
            if batch.state is BatchState.ACTIVE and batch.new.app_id == app.app_id
        ]
        made = [self._last[batch_id][0] for batch_id in active if batch_id in self._last]
        return ForecastHealth(
            app.app_id,
            app.name,
            len(active),
            len(active) - len(made),
            min(made, default=None),
            max(made, default=None),
            self._accuracies.get(app.app_id),
        )

    async def last(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, ForecastRecord]:
        batches, made = self._work.batches, self._work.forecasts
        return {one: replace(made[one][-1], moved_at=batches[one].moved_at) for one in batch_ids if one in self._last}

    async def series(self, batch_id: BatchId, *, limit: int) -> Sequence[ForecastRecord]:
        return self._work.forecasts.get(batch_id, [])[-limit:]

    async def curve(self, batch_id: BatchId, *, spans: int) -> Sequence[ForecastPoint]:
        kept = self._work.forecasts.get(batch_id, [])
        if not kept:
            return []
        first_at, long_s = kept[0].made_at, kept[-1].made_at - kept[0].made_at
        found: dict[int, ForecastRecord] = {}
        for one in kept:
            found.setdefault(int((one.made_at - first_at) * spans / long_s) if long_s else 0, one)
        return [_point(one) for one in found.values()]

    async def job_ends(self, batch_id: BatchId, *, most: int) -> Sequence[Instant]:
        jobs = [one for one in self._work.jobs if one.batch.batch_id == batch_id]
        chosen = jobs[:: max(1, len(jobs) // most)]
        return sorted(
            one.ended_at
            for one in chosen
            if one.ended_at is not None and one.state in (JobState.VALID, JobState.FAILED)
        )


def _point(one: ForecastRecord) -> ForecastPoint:
    over_fraction = (one.jobs_validated + one.jobs_failed) / max(1, one.jobs_total)
    return ForecastPoint(one.made_at, one.q50_at, one.q90_at, one.method, over_fraction)
