"""Stores samples of the project's figures over time in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.samples import MOST_SAMPLES, Sample
from domain.units import Instant
from store import rows
from store.pool import OnDatabase
from store.rows import mapper


class PostgresSamples(OnDatabase):
    """Stores samples by step."""

    async def write(self, step_s: int, at: Instant, figures: Mapping[str, float]) -> None:
        """Store a sample; it replaces an earlier one of the same step."""
        await self._database.execute("write_sample", step_s, at, rows.encoded(figures))

    async def last(self, step_s: int, until: Instant) -> Instant | None:
        """Return the instant of the latest sample until `until`."""
        row = await self._database.fetch_one("last_sample", step_s, until)
        return None if row is None else row["at"]

    async def between(self, step_s: int, from_at: Instant, to_at: Instant) -> Sequence[Sample]:
        """Return the samples of a period, in chronological order."""
        found = await self._database.fetch("list_samples", step_s, from_at, to_at, MOST_SAMPLES)
        return [_sample(row) for row in found]

    async def delete(self, step_s: int, *, before: Instant, after: Instant) -> None:
        """Delete samples outside a period."""
        await self._database.execute("delete_samples", step_s, before, after, MOST_SAMPLES)

    async def active_hosts(self, since: Instant) -> int:
        """Return the number of hosts with a request since `since`."""
        found: int = (await self._database.fetch("count_active_hosts", since))[0]["hosts"]
        return found


_sample = mapper(Sample, figures=lambda row: rows.decoded_object(row["figures"]))
