"""Reads the audit trail page by page. One page searches a limited number of entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.access import Act, ActChoice
from store.people import PostgresAccess

LOOKED_AT = 20_000  # entries that one page searches
RECENT = 2_000  # entries whose kinds of actions are offered as a filter


@dataclass(frozen=True, slots=True)
class TrailPage:
    """Entries, newest first. `next_before` is the act_id before which the search continues, None at its end."""

    acts: Sequence[Act]
    next_before: int | None


async def trail_page(store: PostgresAccess, choice: ActChoice, *, before: int | None, limit: int) -> TrailPage:
    """Return up to `limit` entries from the LOOKED_AT entries before `before`; None starts at the newest one.

    With `who`, only the entries of this user count.
    """
    first, end = await store.act_range(choice)
    newest = end if before is None else min(before, end)
    if choice.who:
        lowest = max(first, await store.first_act(choice.who, before=newest, among=LOOKED_AT))
    else:
        lowest = max(first, newest - LOOKED_AT)
    found = await store.acts(choice, limit=limit + 1, before=newest, first=lowest)
    if len(found) > limit:
        return TrailPage(found[:limit], found[limit - 1].act_id)
    return TrailPage(found, lowest if lowest > first else None)
