"""Streams lists as CSV files, one page of rows in memory at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import msgspec
import structlog
from aiohttp import web

from domain.errors import InvalidInputError, MusterError
from domain.formatting import inert
from web.guard import HEADERS
from web.moments import iso

Row = Mapping[str, object]

log = structlog.get_logger()


def is_csv(query: Mapping[str, str]) -> bool:
    """Return whether a list is wanted as a file. Raises InvalidInputError.

    >>> is_csv({"as": "csv"}), is_csv({})
    (True, False)
    """
    if (form := query.get("as", "")) not in ("", "csv"):
        raise InvalidInputError("as", "csv, or no value for the page", form)
    return bool(form)


def cell(column: str, value: object) -> str:
    """Return the text of a cell: times (`*_at`) as ISO 8601, lists and objects as JSON.

    >>> cell("name", "=1+1"), cell("user_priority", -5), cell("created_at", 0.0), cell("labels", ["a"])
    ("'=1+1", '-5', '1970-01-01T00:00:00Z', '["a"]')
    """
    match value:
        case None:
            return ""
        case str():
            return str(inert(value))
        case bool():
            return str(value).lower()
        case int() | float():
            return iso(value) if column.endswith("_at") else str(value)
        case _:
            return msgspec.json.encode(value).decode()


def lines_of(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """Return rows as CSV lines without a heading."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([cell(name, row.get(name)) for name in columns] for row in rows)
    return text.getvalue().encode()


async def send_csv(
    request: web.Request, name: str, columns: Sequence[str], pages: AsyncIterator[Iterable[Row]]
) -> web.StreamResponse:
    """Send a list as the file `name`.csv. Errors before the first page are raised; later ones break the connection."""
    first = await anext(pages, ())
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}.csv"'}
    response = web.StreamResponse(headers=headers)
    response.content_type, response.charset = "text/csv", "utf-8"
    try:
        await response.prepare(request)
        await response.write(f"{','.join(columns)}\n".encode() + lines_of(columns, first))
        async for page in pages:
            await response.write(lines_of(columns, page))
        await response.write_eof()
    except ConnectionResetError:
        pass  # the client disconnected
    except MusterError as error:
        log.warning("CSV file not completed", path=request.path, why=str(error))
        if request.transport is not None:
            request.transport.abort()
    return response
