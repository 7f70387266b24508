"""Changes how important a batch is: user priority, service level, queue."""

from __future__ import annotations

from typing import Protocol

from domain.errors import InvalidInputError
from domain.ordering import ServiceLevel
from domain.settings import Settings
from domain.units import BatchId
from jobs.ordering.admission import check_rights, permissions_of
from jobs.spec import HIGHEST_PRIORITY, LOWEST_PRIORITY
from operations.ordering.ports import OrderingRules
from operations.ports import People, SettingStore, Views
from priority.parameters import queues


class ImportanceStore(Protocol):
    """What is read and written of the database."""

    @property
    def ordering_rules(self) -> OrderingRules: ...
    @property
    def people(self) -> People: ...
    @property
    def settings(self) -> SettingStore: ...
    @property
    def views(self) -> Views: ...


async def set_importance(
    store: ImportanceStore,
    batch_id: BatchId,
    *,
    user_priority: int | None = None,
    level: str | None = None,
    queue: str | None = None,
) -> None:
    """Change what is given, from the next ordering on.

    Raises InvalidInputError where it is out of range or its submitter may not, NotFoundError for no active batch.
    """
    if user_priority is None and level is None and queue is None:
        raise InvalidInputError("batch", "a user priority, a level or a queue to change", "none of them")
    if user_priority is not None and not LOWEST_PRIORITY <= user_priority <= HIGHEST_PRIORITY:
        expected = f"a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}"
        raise InvalidInputError("user_priority", expected, user_priority)
    if level is not None and level not in list(ServiceLevel):
        raise InvalidInputError("level", "one of " + ", ".join(ServiceLevel), level)
    known = queues(Settings.from_stored(await store.settings.settings())[0].ordering.queues)
    if queue is not None and queue not in known:
        raise InvalidInputError("queue", "one of " + ", ".join(known), queue)
    batch = await store.views.batch(batch_id)
    submitters = {one.submitter_id: one for one in await store.people.submitters()}
    accounts = await store.people.accounts()
    allowed = permissions_of(submitters[batch.submitter_id], batch.account_id, accounts)
    wanted = None if level is None else ServiceLevel(level)
    check_rights(wanted or ServiceLevel.NORMAL, user_priority or 0, allowed)
    if wanted is not None or queue is not None:
        await store.ordering_rules.set_service(batch_id, level=wanted, queue=queue)
    if user_priority is not None:
        await store.ordering_rules.set_user_priority(batch_id, user_priority)
