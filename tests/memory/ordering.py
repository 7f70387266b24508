"""The rules of the order of batches, and its views, in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import store.memory.ordering
from domain.batches import BatchState, place_of
from domain.errors import NotFoundError
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import Grant, StoredPlace
from domain.ordering import PlaceInOrder, ServiceLevel
from domain.restrictions import pause_of
from domain.units import AccountId, AppId, BatchId, Instant, Seconds
from domain.usage import Amounts, DecayedUsage, UsageRow
from store.memory.ordering import LimitKey
from store.memory.rows import StoredBatch


def limit_key(scope: Scope, quantity: Quantity, name: str | None) -> LimitKey:
    """Return the sort key of a limit.

    >>> limit_key(Scope.APP, Quantity.JOB_PE, None)
    ('app', 'job_pe', '')
    """
    return str(scope), quantity.name.lower(), name or ""


class MemoryOrderingRules(store.memory.ordering.MemoryOrderingRules):
    async def grants(self) -> Sequence[Grant]:
        return [self._book.grants[account_id] for account_id in sorted(self._book.grants)]

    async def put_grant(
        self, account_id: AccountId, *, granted_su: float, starts_at: Instant, period_s: Seconds
    ) -> None:
        old = self._book.grants.get(account_id, Grant(account_id, granted_su, starts_at, period_s))
        new = replace(old, granted_su=granted_su, period_start_at=starts_at, period_s=period_s)
        self._book.grants[account_id] = new

    async def drop_grant(self, account_id: AccountId) -> None:
        self._book.grants.pop(account_id, None)

    async def limits(self) -> Sequence[Limit]:
        return [self._book.limits[key] for key in sorted(self._book.limits)]

    async def put_limit(self, limit: Limit) -> None:
        self._book.limits[limit_key(limit.scope, limit.quantity, limit.name)] = limit

    async def drop_limit(self, scope: Scope, quantity: Quantity, name: str | None) -> None:
        key = limit_key(scope, quantity, name)
        if key not in self._book.limits:
            raise NotFoundError("limit", " ".join(key).strip())
        del self._book.limits[key]

    async def months_until(self) -> Instant | None:
        return None

    async def usage_report(self, starts_at: Instant, ends_at: Instant, **_: object) -> Sequence[UsageRow]:
        return []  # no history is kept in memory

    def _active(self, batch_id: BatchId) -> StoredBatch:
        batch = self._work.batches.get(batch_id)
        if batch is None or batch.state is not BatchState.ACTIVE:
            raise NotFoundError("active batch", batch_id)
        return batch

    async def set_user_priority(self, batch_id: BatchId, priority: int) -> None:
        batch = self._active(batch_id)
        batch.new = replace(batch.new, user_priority=priority)

    async def set_moved(self, batch_id: BatchId, by_at: Instant) -> None:
        batch = self._active(batch_id)
        tiers = batch.foremost_tier, batch.new.order_tier
        batch.moved_at, batch.foremost_tier = by_at, min(one for one in tiers if one is not None)

    async def reset_usage(self, *, submitter: str | None, account: str | None) -> int:
        """By names, as the other store; both None: all."""
        registry, book, count = self._registry, self._book, 0
        for leaf, old in list(book.usage.items()):
            names = registry.submitters[leaf[0]].name, registry.accounts[leaf[1]].name
            if submitter not in (None, names[0]) or account not in (None, names[1]):
                continue
            book.usage[leaf] = replace(old, usage=DecayedUsage(Amounts(), old.usage.at))
            for key in [key for key, window in book.windows.items() if window.leaf == leaf]:
                del book.windows[key]
            count += 1
        book.serial += 1
        return count

    async def release(self, batch_id: BatchId) -> None:
        batch = self._active(batch_id)
        batch.new = replace(batch.new, after_ok=(), after_any=())

    async def set_service(
        self,
        batch_id: BatchId,
        *,
        level: ServiceLevel | None,
        queue: str | None,
        tiers: Mapping[ServiceLevel, int] | None = None,
    ) -> None:
        batch = self._active(batch_id)
        old, record = batch.new, self._book.breakdowns.get(batch_id)
        batch.new = replace(old, level=level or old.level, queue=queue or old.queue)
        if tiers is not None:
            by_tiers = tiers[batch.new.level] - tiers[old.level]
            place = StoredPlace(batch_id, old.order_tier + by_tiers, old.order_key, batch.hold, batch.sent_most)
            self._work.move_batch(batch, replace(place, unpaid=old.unpaid, job_pe=old.job_pe))
            if record is not None:
                tier = int(str(record["tier"])) + by_tiers
                self._book.breakdowns[batch_id] = {**record, "level": batch.new.level.value, "tier": tier}

    async def set_account(self, batch_id: BatchId, account_id: AccountId) -> None:
        batch = self._work.batches.get(batch_id)
        if batch is None or batch.state is not BatchState.ACTIVE or batch.counts.sent:
            raise NotFoundError("active batch without sent instances", batch_id)
        batch.new = replace(batch.new, account_id=account_id)

    async def set_deadline(self, batch_id: BatchId, deadline_at: Instant) -> None:
        batch = self._work.batches.get(batch_id)
        if batch is None or batch.state is not BatchState.ACTIVE or batch.new.deadline_at is None:
            raise NotFoundError("active batch with a deadline", batch_id)
        batch.new = replace(batch.new, deadline_at=deadline_at)

    async def in_order(self, limit: int) -> Sequence[BatchId]:
        return [batch.batch_id for batch in sorted(self._with_fresh(), key=lambda one: one.order)[:limit]]

    def _with_fresh(self) -> list[StoredBatch]:
        active = [one for one in self._work.batches.values() if one.state is BatchState.ACTIVE]
        return [one for one in active if self._work.has_fresh(one)]

    async def places(
        self, batch_ids: Sequence[BatchId], apps: Collection[AppId], *, without: Collection[BatchId]
    ) -> Mapping[BatchId, PlaceInOrder]:
        free = [one.as_batch() for one in self._with_fresh() if one.new.app_id in apps and one.batch_id not in without]
        free = [one for one in free if one.hold is None and pause_of(self._registry.restrictions, one) is None]
        ordered = [one.batch_id for one in sorted(free, key=place_of)]
        known = {batch_id: PlaceInOrder(place, len(ordered)) for place, batch_id in enumerate(ordered, start=1)}
        return {batch_id: known[batch_id] for batch_id in sorted(batch_ids) if batch_id in known}

    async def with_fresh(self, batch_ids: Sequence[BatchId]) -> Collection[BatchId]:
        return {one.batch_id for one in self._with_fresh() if one.batch_id in batch_ids}

    async def around(
        self, place: tuple[int, float, BatchId], limit: int, *, without: Collection[BatchId]
    ) -> tuple[Sequence[BatchId], Sequence[BatchId]]:
        ordered = sorted(one.order for one in self._with_fresh() if one.batch_id not in without)
        before = [one for *_, one in ordered if self._work.batches[one].order < place]
        after = [one for *_, one in ordered if self._work.batches[one].order > place]
        return before[-limit:], after[:limit]

    async def breakdowns(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Mapping[str, object]]:
        known = self._book.breakdowns
        return {batch_id: known[batch_id] for batch_id in sorted(batch_ids) if batch_id in known}
