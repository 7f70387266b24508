"""Reads what may need an operator's attention, by key, from counters and bounded reads. Takes no locks."""

from __future__ import annotations

from collections.abc import Sequence

from domain.attention import LOOKED_AT, BatchesInNeed, FailingVersion, HostContacts, Upkeep
from domain.units import Instant, Seconds
from store.pool import OnDatabase
from store.rows import mapper


class PostgresAttention(OnDatabase):
    """Implements administration.attention's facts."""

    async def batches(self, *, now: Instant, failed: int, failed_fraction: float, limit: int) -> BatchesInNeed:
        """Return the batches; `failed` and `failed_fraction` of the ended jobs must have failed to count as failing."""
        rows = await self._database.fetch("batches_in_need", now, failed, failed_fraction, limit)
        return BatchesInNeed([row["batch_id"] for row in rows], rows[0]["found"] if rows else 0)

    async def versions(self, *, since: Instant, failures: int) -> Sequence[FailingVersion]:
        """Return the versions with at least this many failures since an instant, among the latest LOOKED_AT."""
        return [_version(row) for row in await self._database.fetch("failing_versions", since, LOOKED_AT, failures)]

    async def contacts(self, *, now: Instant, since: Instant, silence_s: Seconds, intervals: float) -> HostContacts:
        """Count hosts by a scan of all hosts: do not call it for every page."""
        return _contacts(await self._database.fetch_first("host_contacts", now, since, silence_s, intervals))

    async def upkeep(self, *, attempts: int) -> Upkeep:
        return _upkeep(await self._database.fetch_first("upkeep", LOOKED_AT, attempts))


_version = mapper(FailingVersion)
_contacts = mapper(HostContacts)
_upkeep = mapper(Upkeep)
