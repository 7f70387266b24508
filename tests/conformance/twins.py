"""Two stores with the same history: each step is done on both, and everything visible must be equal."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from domain.errors import MusterError
from domain.history import FinishedMonth
from domain.host_lists import HostChoice, HostKind
from domain.hosts import DecayedSums
from domain.jobs import InstanceState
from domain.units import BatchId, InstanceId, Instant, JobId, later
from tests.builders import NOW
from tests.stores import Store, batches_of
from tests.worlds import RegisteredHost, fresh_of

Seen = TypeVar("Seen")
MUCH_LATER = Instant(NOW + 1e9)


class Twins:
    def __init__(self, one: Store, other: Store) -> None:
        self.one = one
        self.other = other

    async def both(self, act: Callable[[Store], Awaitable[Seen]]) -> Seen:
        """Run it on both stores: results or refusals must be equal. A refusal is returned, not raised."""
        mine: Seen = await _answer(self.one, act)
        theirs: Seen = await _answer(self.other, act)
        assert_equal(mine, theirs)
        return mine

    async def compare(self, hosts: Sequence[RegisteredHost]) -> None:
        """Compare everything visible through the ports, except the serials of jobs to settle."""
        await self.both(lambda store: store.waiting.ready_batches(100))
        facts = [
            [replace(one, serial=0) for one in await s.unsettled.unsettled(1000, now=NOW)]
            for s in (self.one, self.other)
        ]
        assert_equal(*facts)
        for batch in await self.both(lambda store: batches_of(store, limit=100)):
            await self._compare_batch(batch.batch_id)
        for host in hosts:
            await self._compare_host(host)
        await self.both(lambda store: store.overdue.overdue(now=MUCH_LATER, limit=1000))
        for kind in set(HostKind) - {HostKind.FAILING}:  # AttentionViews lists them
            await self._compare_hosts_of(HostChoice(kind, since=later(NOW, 1000.0)))
        await self.both(lambda store: store.people.submitters())
        for month in await self.both(months_of):
            await self._compare_month(month.month)
        for store in (self.one, self.other):
            assert list(await store.views.check_counters()) == []

    async def _compare_batch(self, batch_id: BatchId) -> None:
        await self.both(lambda store: store.waiting.urgent([batch_id], 100))
        await self.both(lambda store: store.waiting.tail([batch_id], 3))
        await self.both(lambda store: fresh_of(store, batch_id))
        await self.both(lambda store: store.listings.instances(batch_id, tuple(InstanceState), after=None, limit=1000))
        for job in await self.both(lambda store: store.views.jobs(batch_id, limit=100)):
            await self._compare_job(job.job_id)

    async def _compare_job(self, job_id: JobId) -> None:
        await self.both(lambda store: store.views.job(job_id))

    async def _compare_month(self, month: str) -> None:
        await self.both(lambda store: store.history.outputs(month, after=InstanceId(0), limit=1000))

    async def _compare_hosts_of(self, choice: HostChoice) -> None:
        await self.both(lambda store: store.host_lists.hosts(choice, after=None, limit=2))

    async def _compare_host(self, host: RegisteredHost) -> None:
        await self.both(lambda store: store.ledger.read(host.key()))
        await self.both(lambda store: store.views.host(host.host_id))
        own = (host.host_id, host.volunteer_id)
        await self.both(lambda store: store.host_lists.instances(*own, state=None, after=None, limit=100))
        few: dict[str, Any] = {"state": None, "after": None, "limit": 2, "looked_at": 3}
        await self.both(lambda store: store.host_lists.instances(*own, **few))


async def months_of(store: Store) -> list[FinishedMonth]:
    """Return the history's months, without their size in the database."""
    return [replace(month, table_bytes=0) for month in await store.history.months()]


async def _answer(store: Store, act: Callable[[Store], Awaitable[Seen]]) -> Any:
    try:
        return await act(store)
    except MusterError as error:
        return (type(error), str(error))


def assert_equal(mine: object, theirs: object) -> None:
    """Assert equality, except for the last digits of sums; lists equal tuples."""
    found = list(_differences(mine, theirs, ""))
    assert not found, found


def _differences(mine: Any, theirs: Any, where: str) -> Iterator[str]:
    if isinstance(mine, DecayedSums) and isinstance(theirs, DecayedSums):
        pairs = zip((mine.n, mine.total, mine.total_sq), (theirs.n, theirs.total, theirs.total_sq), strict=True)
        if mine.at != theirs.at or not all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs):
            yield f"{where}: {mine} and {theirs}"
    elif is_dataclass(mine) and type(mine) is type(theirs):
        for field in fields(mine):
            yield from _differences(getattr(mine, field.name), getattr(theirs, field.name), f"{where}.{field.name}")
    elif isinstance(mine, Mapping) and isinstance(theirs, Mapping) and mine.keys() == theirs.keys():
        for key in mine:
            yield from _differences(mine[key], theirs[key], f"{where}[{key}]")
    elif isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)) and len(mine) == len(theirs):
        for position, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            yield from _differences(a, b, f"{where}[{position}]")
    elif mine != theirs:
        yield f"{where}: {mine} and {theirs}"
