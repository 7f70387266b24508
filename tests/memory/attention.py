"""What may need attention, in memory: late and failing batches, failing hosts, host contacts; no failing versions and
no backups.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from domain.attention import LOOKED_AT, BatchesInNeed, FailingHost, FailingVersion, HostContacts, Upkeep
from domain.batches import Batch, BatchState
from domain.catalogue import Catalogue, current_versions
from domain.forecasts import risk_of
from domain.jobs import InstanceState as S
from domain.restrictions import limit_of
from domain.units import AppId, AppVersionId, HostId, Instant, Seconds
from lifecycle.states import DECIDED, HOST_FAILURES
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredInstance
from store.memory.work import Work
from tests.memory.files import MemoryForecasts


class MemoryAttention:
    def __init__(self, registry: Registry, work: Work, forecasts: MemoryForecasts) -> None:
        self._registry = registry
        self._work = work
        self._forecasts = forecasts

    async def batches(self, *, now: Instant, failed: int, failed_fraction: float, limit: int) -> BatchesInNeed:
        active = [one for one in self._work.batches.values() if one.state is BatchState.ACTIVE]
        last = await self._forecasts.last([one.batch_id for one in active])

        def in_need(one: StoredBatch) -> bool:
            counts = one.counts
            ended = counts.jobs_validated + counts.jobs_failed
            fails = counts.jobs_failed >= max(failed, failed_fraction * ended)
            return fails or risk_of(one.new.deadline_at, last.get(one.batch_id), now) is not None

        no_end = Instant(float("inf"))
        found = sorted(filter(in_need, active), key=lambda one: (one.new.deadline_at or no_end, one.batch_id))
        return BatchesInNeed([one.batch_id for one in found[:limit]], len(found))

    async def apps_without_version(self) -> Sequence[AppId]:
        catalogue = Catalogue(self._registry.apps, current=current_versions(self._registry.versions))
        active = {one.new.app_id for one in self._work.batches.values() if one.state is BatchState.ACTIVE}
        return [one for one in sorted(active) if not catalogue.is_sent(one)]

    async def without_version(self, app_ids: Sequence[AppId], limit: int) -> tuple[Sequence[Batch], int]:
        active = (one.as_batch() for _, one in sorted(self._work.batches.items()) if one.state is BatchState.ACTIVE)
        found = [one for one in active if one.counts.unsent and one.app_id in app_ids]
        return found[:limit], len(found)

    async def versions(self, *, since: Instant, failures: int) -> Sequence[FailingVersion]:
        return []

    async def hosts(
        self, *, since: Instant, results: int, failing_fraction: float, without: Sequence[AppVersionId], limit: int
    ) -> Sequence[FailingHost]:
        """Return the hosts by rate, without the bound of LOOKED_AT."""
        sent: defaultdict[HostId, list[StoredInstance]] = defaultdict(list)
        jobs = (job for job in self._work.jobs if job.job_id not in self._work.history)
        for row in (row for job in jobs for row in job.instances):
            if row.host_id is not None and row.sent_at is not None and row.sent_at >= since:
                sent[row.host_id].append(row)
        found = list[tuple[tuple[float, int, HostId], FailingHost]]()
        for host_id, rows in sent.items():
            host = self._work.hosts[host_id].host
            limited = limit_of(self._registry.restrictions, host)
            decided = [one for one in rows if one.state in DECIDED]
            failed = [one for one in decided if one.state in HOST_FAILURES]
            judged = sum(one.app_version_id not in without for one in decided)
            of_versions = sum(one.app_version_id in without for one in failed)
            banned = limited is not None and limited.max_jobs == 0
            if not banned and judged >= results and len(failed) - of_versions >= failing_fraction * judged:
                counts = Counter(one.state for one in failed)
                kinds = (counts[S.FAILED], counts[S.INVALID], counts[S.TIMED_OUT])
                last_at = max((_ended_at(one) for one in failed), default=since)
                one = FailingHost(
                    host_id, len(failed), len(decided), host.domain_name, *kinds, last_at, since, of_versions
                )
                own = len(failed) - of_versions
                found.append(((-own / judged, -own, host_id), one))
        return [one for _, one in sorted(found)][:limit]

    async def contacts(self, *, now: Instant, since: Instant, silence_s: Seconds, intervals: float) -> HostContacts:
        called = [one.host.last_rpc_at for one in self._work.hosts.values() if one.host.last_rpc_at >= since]
        return HostContacts(len(called), sum(now - at > silence_s for at in called), max(called, default=Instant(0.0)))

    async def upkeep(self, *, attempts: int) -> Upkeep:
        return Upkeep(None, Instant(float("inf")), min(len(self._work.todo), LOOKED_AT), 0)


def _ended_at(row: StoredInstance) -> Instant:
    at = row.timeout_at if row.reported_at is None else row.reported_at
    assert at is not None
    return at
