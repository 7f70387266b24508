"""Changes how important a batch is to its submitter."""

from __future__ import annotations

from typing import Protocol

from domain.errors import InvalidInputError
from domain.units import BatchId
from jobs.ordering.admission import check_rights, permissions_of
from jobs.spec import HIGHEST_PRIORITY, LOWEST_PRIORITY
from operations.ordering.ports import OrderingRules
from operations.ports import People, Views


class UserPriorityStore(Protocol):
    """What is read and written of the database."""

    @property
    def ordering_rules(self) -> OrderingRules: ...
    @property
    def people(self) -> People: ...
    @property
    def views(self) -> Views: ...


async def set_user_priority(store: UserPriorityStore, batch_id: BatchId, priority: int) -> None:
    """Change it, from the next ordering on.

    Raises InvalidInputError where it is out of range or its submitter may not, NotFoundError for no active batch.
    """
    if not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        expected = f"a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}"
        raise InvalidInputError("user_priority", expected, priority)
    batch = await store.views.batch(batch_id)
    submitters = {one.submitter_id: one for one in await store.people.submitters()}
    accounts = await store.people.accounts()
    check_rights(batch.level, priority, permissions_of(submitters[batch.submitter_id], batch.account_id, accounts))
    await store.ordering_rules.set_user_priority(batch_id, priority)
