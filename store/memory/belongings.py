"""What a volunteer sees of his own, over the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.errors import NotFoundError
from domain.units import HostId, VolunteerId
from domain.views import ListedInProgress
from domain.volunteers import OUTCOMES, Outcome, OwnHost, OwnResult, OwnTotals, ResultPlace
from store.memory.listings import held_instance
from store.memory.rows import StoredHost, StoredInstance
from store.memory.work import Work


class MemoryBelongings:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def hosts(self, volunteer_id: VolunteerId, *, before: HostId | None, limit: int) -> Sequence[OwnHost]:
        own = [one for one in self._own(volunteer_id) if before is None or one.host.host_id < before]
        return [_own_host(one) for one in sorted(own, key=lambda one: one.host.host_id, reverse=True)[:limit]]

    async def host(self, volunteer_id: VolunteerId, host_id: HostId) -> OwnHost:
        stored = self._work.hosts.get(host_id)
        if stored is None or stored.host.volunteer_id != volunteer_id:
            raise NotFoundError("computer", host_id)
        return _own_host(stored)

    async def held(
        self, volunteer_id: VolunteerId, *, host_id: HostId | None, limit: int
    ) -> Sequence[ListedInProgress]:
        own = [one for one in self._own(volunteer_id) if host_id in (None, one.host.host_id)]
        held = [held_instance(row) for one in own for row in one.held.values()]
        return sorted(held, key=lambda one: (one.due_at, one.instance_id))[:limit]

    async def results(
        self,
        volunteer_id: VolunteerId,
        *,
        outcome: Outcome | None,
        host_id: HostId | None,
        after: ResultPlace | None,
        limit: int,
    ) -> Sequence[OwnResult]:
        rows = (row for job in self._work.jobs if job.job_id not in self._work.history for row in job.instances)
        own = [_own_result(row) for row in rows if row.volunteer_id == volunteer_id and row.state in OUTCOMES]
        own.sort(key=_place, reverse=True)
        return [
            one
            for one in own
            if (after is None or _place(one) < (after.sent_at, after.instance_id))
            and host_id in (None, one.host_id)
            and outcome in (None, one.outcome)
        ][:limit]

    async def totals(self, volunteer_id: VolunteerId) -> OwnTotals:
        own = list(self._own(volunteer_id))
        havs = [hav for one in own for hav in one.havs.values()]
        return OwnTotals(
            len(own),
            sum(len(one.held) for one in own),
            sum(hav.n_valid for hav in havs),
            sum(hav.n_error for hav in havs),
            sum(hav.n_timeout for hav in havs),
        )

    def _own(self, volunteer_id: VolunteerId) -> Iterable[StoredHost]:
        return (one for one in self._work.hosts.values() if one.host.volunteer_id == volunteer_id)


def _own_host(stored: StoredHost) -> OwnHost:
    return OwnHost(stored.host, len(stored.held), stored.refused_at, stored.refused)


def _place(one: OwnResult) -> tuple[float, int]:
    return one.sent_at, one.instance_id


def _own_result(row: StoredInstance) -> OwnResult:
    assert row.host_id is not None
    assert row.sent_at is not None
    assert row.due_at is not None
    batch = row.job.batch
    return OwnResult(
        row.instance_id,
        batch.batch_id,
        batch.app_name,
        row.host_id,
        row.state,
        row.sent_at,
        row.due_at,
        row.reported_at,
        row.elapsed_s,
        row.reason or "",
    )
