"""Changes the importance of a batch: user priority, service level, queue, account, deadline."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from administration.names import chosen
from domain.batches import Account, Batch, BatchState, QoS, Submitter
from domain.bounds import FURTHEST_S
from domain.errors import InvalidInputError, NotFoundError
from domain.ordering import ServiceLevel
from domain.settings import Settings
from domain.units import AccountId, BatchId, Instant
from jobs.ordering.admission import check_rights, permissions_of
from jobs.spec import HIGHEST_PRIORITY, LOWEST_PRIORITY
from priority.charging import queues
from store.postgres import PostgresStore


class ImportanceBody(msgspec.Struct, forbid_unknown_fields=True):
    """The fields to change; None: unchanged. `release`: no longer wait for other batches."""

    user_priority: int | None = None
    level: str | None = None
    queue: str | None = None
    account: str | None = None
    deadline_at: float | None = None
    release: bool = False

    def given(self) -> dict[str, object]:
        """Return the fields to change, for the audit trail."""
        fields = msgspec.structs.asdict(self).items()
        return {name: value for name, value in fields if value is not None and value is not False}


async def set_importance(store: PostgresStore, batch_id: BatchId, asked: ImportanceBody, *, now: Instant) -> None:
    """Change the given fields, all or none, at the next ordering pass.

    The account can change until the first instance is sent. The deadline can change only if the batch has one;
    instances already sent keep their due dates. Raises InvalidInputError for values out of range, missing permissions
    or a change made too late, and NotFoundError if the batch is not active.
    """
    if not asked.given():
        expected = "a user priority, a level, a queue, an account or a deadline to change, or release"
        raise InvalidInputError("batch", expected, "none of them")
    _check_priority(asked.user_priority)
    level = None if asked.level is None else chosen(ServiceLevel, asked.level, "level")
    known = queues(Settings.from_stored(await store.settings.settings())[0].ordering.queues)
    if asked.queue is not None and asked.queue not in known:
        raise InvalidInputError("queue", "one of " + ", ".join(known), asked.queue)
    batch = await store.views.batch(batch_id)
    if batch.state is not BatchState.ACTIVE:
        raise NotFoundError("active batch", batch_id)
    deadline_at = None if asked.deadline_at is None else _deadline_of(batch, Instant(asked.deadline_at), now)
    account_id = await _allowed(store, batch, asked.account, level, asked.user_priority)
    rules = store.ordering_rules
    if account_id is not None:
        await rules.set_account(batch_id, account_id)
    if deadline_at is not None:
        await rules.set_deadline(batch_id, deadline_at)
    if level is not None or asked.queue is not None:
        await rules.set_service(batch_id, level=level, queue=asked.queue)
    if asked.user_priority is not None:
        await rules.set_user_priority(batch_id, asked.user_priority)
    if asked.release:
        await rules.release(batch_id)


def _deadline_of(batch: Batch, at: Instant, now: Instant) -> Instant:
    """Return the batch's new deadline. Raises InvalidInputError if it has passed or the batch has none."""
    if not now < at <= now + FURTHEST_S:
        expected = f"a time after now ({now:.0f}) and at most {now + FURTHEST_S:.0f}"
        raise InvalidInputError("deadline_at", expected, at)
    if batch.qos is not QoS.SHORT_DEADLINE:
        expected = f"a batch with qos {QoS.SHORT_DEADLINE}; other batches have no deadline"
        raise InvalidInputError("deadline_at", expected, batch.qos)
    return at


def _check_priority(user_priority: int | None) -> None:
    if user_priority is not None and not LOWEST_PRIORITY <= user_priority <= HIGHEST_PRIORITY:
        expected = f"a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}"
        raise InvalidInputError("user_priority", expected, user_priority)


async def _allowed(
    store: PostgresStore, batch: Batch, account: str | None, level: ServiceLevel | None, user_priority: int | None
) -> AccountId | None:
    """Return the new account, None if it does not change. Raises InvalidInputError for missing permissions.

    A moved batch needs permissions for its level and priority in the new account.
    """
    submitters = {one.submitter_id: one for one in await store.people.submitters()}
    submitter, accounts = submitters[batch.submitter_id], await store.people.accounts()
    account_id = batch.account_id
    if account is not None:
        account_id = await _account_of(store, batch, submitter, account, accounts)
    moves = account_id != batch.account_id
    old_level, old_priority = (batch.level, batch.user_priority) if moves else (ServiceLevel.NORMAL, 0)
    priority = old_priority if user_priority is None else user_priority
    check_rights(level or old_level, priority, permissions_of(submitter, account_id, accounts))
    return account_id if moves else None


async def _account_of(
    store: PostgresStore, batch: Batch, submitter: Submitter, name: str, accounts: Sequence[Account]
) -> AccountId:
    """Return the account with this name if the submitter may use it. Raises InvalidInputError."""
    further = await store.people.memberships(submitter.submitter_id)
    mine = {one.name: one.account_id for one in accounts if one.account_id in {submitter.account_id, *further}}
    if name not in mine:
        expected = f"an account of submitter {submitter.name} ({', '.join(sorted(mine))})"
        raise InvalidInputError("account", expected, name)
    if mine[name] != batch.account_id and batch.counts.sent:
        expected = "a batch without sent instances: usage stays with the account it was charged to"
        raise InvalidInputError("account", expected, f"{batch.counts.sent} sent instances")
    return mine[name]
