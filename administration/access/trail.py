"""Reads the audit trail page by page, and as CSV. One page searches a limited number of entries."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from domain.access import Act, ActChoice
from domain.formatting import inert
from domain.units import utc
from store.people import PostgresAccess

LOOKED_AT = 20_000  # entries that one page searches
PER_ROUND = 1000  # entries that the CSV reads at once
CSV_COLUMNS = ("act_id", "acted_at", "who", "what", "subject", "address", "detail")


@dataclass(frozen=True, slots=True)
class TrailPage:
    """Entries, newest first. `next_before` is the act_id before which the search continues, None at its end."""

    acts: Sequence[Act]
    next_before: int | None


async def trail_page(store: PostgresAccess, choice: ActChoice, *, before: int | None, limit: int) -> TrailPage:
    """Return up to `limit` entries from the LOOKED_AT entries before `before`; None starts at the newest one."""
    first, end = await store.act_range(choice)
    newest = end if before is None else min(before, end)
    lowest = max(first, newest - LOOKED_AT)
    found = await store.acts(choice, limit=limit + 1, before=newest, first=lowest)
    if len(found) > limit:
        return TrailPage(found[:limit], found[limit - 1].act_id)
    return TrailPage(found, lowest if lowest > first else None)


async def trail_csv(store: PostgresAccess, choice: ActChoice) -> AsyncIterator[str]:
    """Yield all chosen entries as CSV, newest first, with a heading."""
    yield csv_lines([CSV_COLUMNS])
    before: int | None = None
    while True:
        page = await trail_page(store, choice, before=before, limit=PER_ROUND)
        yield csv_lines(
            (
                one.act_id,
                f"{utc(one.acted_at):%Y-%m-%dT%H:%M:%SZ}",
                one.who,
                one.what,
                one.target,
                one.address,
                msgspec.json.encode(one.detail).decode(),
            )
            for one in page.acts
        )
        if page.next_before is None:
            return
        before = page.next_before


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV. Text that a spreadsheet would compute as a formula gets an apostrophe in front.

    >>> csv_lines([(-1, "=1+1", "ada")])
    "-1,'=1+1,ada\\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([inert(cell) for cell in row] for row in rows)
    return text.getvalue()
