"""Paginates lists. A cursor encodes the key of the last entry; only this module knows its format."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from domain.errors import InvalidInputError

Row = TypeVar("Row")
Shape = TypeVar("Shape")
Key = int | str

MOST = 1000
MOST_KEY = 2**62


class Page(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST, description="Maximum number of entries per page.")] = 100
    cursor: Annotated[
        Annotated[str, msgspec.Meta(max_length=1000)] | None,
        msgspec.Meta(description="The `next_cursor` of the previous page; omit it for the first page."),
    ] = None


def cursor_of(kind: str, key: Key) -> str:
    """Return the cursor of a page whose last entry has `key`.

    >>> key_of(cursor_of("batches", 7), "batches", int)
    7
    """
    return base64.urlsafe_b64encode(msgspec.json.encode([kind, key])).decode().rstrip("=")


def key_of(cursor: str | None, kind: str, key_type: type[Any]) -> Any:
    """Return the key of the previous page's last entry, None for the first page. Raises InvalidInputError."""
    if cursor is None:
        return None
    wrong = InvalidInputError("cursor", f"a next_cursor of {kind}", cursor)
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found, key = msgspec.json.decode(raw, type=tuple[str, Key])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise wrong from None
    if found != kind or type(key) is not key_type:
        raise wrong
    if isinstance(key, int) and not 0 <= key <= MOST_KEY:
        raise wrong
    return key


def page_of(
    shape: type[Shape],
    rows: Sequence[Row],
    page: Page,
    key: Callable[[Row], Key],
    show: Callable[[Row], Any] = lambda row: row,
) -> Shape:
    """Return a page of a list; its `next_cursor` is None on the last page. `rows` has up to `page.limit` + 1 rows.

    >>> from muster_client import shapes
    >>> page_of(shapes.BatchPage, [7, 6], Page(limit=2), int)
    {'batches': [7, 6], 'next_cursor': None}
    """
    [kind] = {*shape.__annotations__} - {"next_cursor"}
    listed = rows[: page.limit]
    more = cursor_of(kind, key(listed[-1])) if len(rows) > page.limit else None
    return {kind: [show(row) for row in listed], "next_cursor": more}  # type: ignore[return-value]  # as the shape


def page_of_all(
    shape: type[Shape],
    rows: Sequence[Row],
    page: Page,
    key: Callable[[Row], Key],
    show: Callable[[Row], Any] = lambda row: row,
) -> Shape:
    """Return a page, sorted by key, of a list short enough to be read completely for each page."""
    [kind] = {*shape.__annotations__} - {"next_cursor"}
    ordered = sorted(rows, key=key)
    last = key_of(page.cursor, kind, type(key(ordered[0])) if ordered else str)
    if last is not None:
        ordered = [row for row in ordered if key(row) > last]
    return page_of(shape, ordered, page, key, show)
