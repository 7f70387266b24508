"""Selects and sorts batches for the lists of the API, the commands and the console."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from administration.names import checked_text
from domain.batches import BatchState, QoS
from domain.errors import InvalidInputError
from domain.units import BatchId, Instant
from domain.views import ALL_SENT, BatchChoice, BatchPlace, BatchSort, ListedBatch, NotSent
from store.postgres import PostgresStore

Id = TypeVar("Id", bound=int)

LOOKED_AT = 20_000  # batches that one page searches for selected ones


async def batch_choice(
    store: PostgresStore,
    sort: BatchSort = BatchSort.NEWEST,
    *,
    state: BatchState | None = None,
    qos: QoS | None = None,
    app: str = "",
    submitter: str = "",
    account: str = "",
    queue: str = "",
    at_risk_at: Instant | None = None,
    blocked: bool = False,
    failed: bool = False,
    text: str = "",
) -> BatchChoice:
    """Return the selection for a list; empty names select all. Raises InvalidInputError for unknown names.

    Ended batches are listed only by id, because the other orders are computed over the active batches.
    """
    if state not in (None, BatchState.ACTIVE):
        _refuse("sort", "id or -id for batches that have ended", sort.value if sort.key != "id" else None)
        _refuse("at_risk", "no value for batches that have ended", None if at_risk_at is None else True)
        _refuse("blocked", "no value for batches that have ended", blocked or None)
    people = store.people
    return BatchChoice(
        state,
        qos,
        _named("app", app, [(one.name, one.app_id) for one in await store.applications.apps()]) if app else None,
        _named("submitter", submitter, [(one.name, one.submitter_id) for one in await people.submitters()])
        if submitter
        else None,
        _named("account", account, [(one.name, one.account_id) for one in await people.accounts()])
        if account
        else None,
        checked_text(queue, "queue") or None,
        at_risk_at,
        blocked,
        checked_text(text.strip(), "q"),
        failed=failed,
    )


async def list_page(
    store: PostgresStore,
    choice: BatchChoice,
    sort: BatchSort,
    *,
    after: BatchPlace | None,
    limit: int,
    looked_at: int = LOOKED_AT,
    not_sent: NotSent = ALL_SENT,
    first: Collection[BatchId] = (),
) -> tuple[Sequence[ListedBatch], BatchPlace | None]:
    """Return a page of batches, and the place after which the next one starts; None on the last page.

    A page of selected batches searches `looked_at` batches: it may be short, or empty. `first`: the batches that are
    sent first, in sequence.
    """
    by_id, end = sort.key == "id", None
    if by_id and choice.is_sparse:
        end = await store.listings.place_at(sort, after=after, number=looked_at)
    found = await store.listings.batches(
        choice, sort, after=after, limit=limit + 1, until=end, not_sent=not_sent, first=first
    )
    return found[:limit], found[limit - 1].place if len(found) > limit else end


def _refuse(field: str, expected: str, got: object) -> None:
    if got is not None:
        raise InvalidInputError(field, expected, got)


def _named(field: str, name: str, known: Iterable[tuple[str, Id]]) -> Id:
    """Return the id of the object with this name. Raises InvalidInputError.

    >>> _named("app", "pi", [("pi", 1)])
    1
    """
    for one, found in known:
        if one == name:
            return found
    raise InvalidInputError(field, f"the name of an existing {field}", name)
