"""What looking at and changing the order of batches needs from the database."""

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
    """Grants and limits, usage, and why batches stand where they stand."""

    async def grants(self) -> Sequence[Grant]: ...

    async def put_grant(
        self, account_id: AccountId, *, granted_su: float, starts_at: Instant, period_s: Seconds
    ) -> None:
        """Instead of the one the account has; what it used stays used."""
        ...

    async def drop_grant(self, account_id: AccountId) -> None: ...

    async def limits(self) -> Sequence[Limit]: ...

    async def put_limit(self, limit: Limit) -> None:
        """Instead of the one of the same scope, quantity and name."""
        ...

    async def drop_limit(self, scope: Scope, quantity: Quantity, name: str | None) -> None:
        """Raises NotFoundError."""
        ...

    async def usage(self) -> Sequence[LeafUsage]: ...

    async def windows(self) -> Sequence[WindowUsage]: ...

    async def set_user_priority(self, batch_id: BatchId, priority: int) -> None:
        """From the next ordering on. Raises NotFoundError where there is no such active batch."""
        ...

    async def set_service(self, batch_id: BatchId, *, level: ServiceLevel | None, queue: str | None) -> None:
        """Change the service level, the queue, or both, from the next ordering on. Raises NotFoundError likewise."""
        ...

    async def set_account(self, batch_id: BatchId, account_id: AccountId) -> None:
        """Whose usage the batch is. Raises NotFoundError for no active batch, or one of which something was sent."""
        ...

    async def set_deadline(self, batch_id: BatchId, deadline_at: Instant) -> None:
        """Raises NotFoundError where there is no such active batch with a deadline."""
        ...

    async def in_order(self, limit: int) -> Sequence[BatchId]:
        """The first active batches in their order."""
        ...

    async def places(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, PlaceInOrder]:
        """Where they stand among all active batches; no entry for one that is not active."""
        ...

    async def breakdowns(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Mapping[str, object]]:
        """As they were stored; no entry for a batch without one."""
        ...


class OrderingStore(Protocol):
    """The database as those see it who look at the order of batches, or change it."""

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
