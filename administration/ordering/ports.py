"""Database protocols for showing and changing the order of batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from administration.ports import Applications, People, SettingStore, Views
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import Grant, LeafUsage, WindowUsage
from domain.ordering import PlaceInOrder, ServiceLevel
from domain.units import AccountId, BatchId, Instant, Seconds
from jobs.ports import OrderedWork


class OrderingRules(Protocol):
    """Grants, limits, usage, and the breakdown of each batch's place."""

    async def grants(self) -> Sequence[Grant]: ...

    async def put_grant(
        self, account_id: AccountId, *, granted_su: float, starts_at: Instant, period_s: Seconds
    ) -> None:
        """Replaces the account's grant; its usage stays."""
        ...

    async def drop_grant(self, account_id: AccountId) -> None: ...

    async def limits(self) -> Sequence[Limit]: ...

    async def put_limit(self, limit: Limit) -> None:
        """Replaces the limit of the same scope, quantity and name."""
        ...

    async def drop_limit(self, scope: Scope, quantity: Quantity, name: str | None) -> None:
        """Raises NotFoundError."""
        ...

    async def usage(self) -> Sequence[LeafUsage]: ...

    async def windows(self) -> Sequence[WindowUsage]: ...

    async def set_user_priority(self, batch_id: BatchId, priority: int) -> None:
        """Effective from the next ordering pass. Raises NotFoundError unless the batch is active."""
        ...

    async def set_service(self, batch_id: BatchId, *, level: ServiceLevel | None, queue: str | None) -> None:
        """Change the level, the queue, or both, from the next ordering pass on. Raises NotFoundError likewise."""
        ...

    async def set_account(self, batch_id: BatchId, account_id: AccountId) -> None:
        """Set the account to charge. Raises NotFoundError unless the batch is active and has no sent instance."""
        ...

    async def set_deadline(self, batch_id: BatchId, deadline_at: Instant) -> None:
        """Raises NotFoundError unless the batch is active and has a deadline."""
        ...

    async def in_order(self, limit: int) -> Sequence[BatchId]:
        """Return the first active batches in order."""
        ...

    async def places(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, PlaceInOrder]:
        """Return places among all active batches; no entry for a batch that is not active."""
        ...

    async def breakdowns(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Mapping[str, object]]:
        """Return the stored breakdowns; no entry for a batch without one."""
        ...


class OrderingStore(Protocol):
    """The parts of the database that ordering commands use."""

    @property
    def ordering(self) -> OrderedWork: ...
    @property
    def ordering_rules(self) -> OrderingRules: ...
    @property
    def applications(self) -> Applications: ...
    @property
    def people(self) -> People: ...
    @property
    def settings(self) -> SettingStore: ...
    @property
    def views(self) -> Views: ...
