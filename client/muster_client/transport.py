"""HTTP transport of the client: JSON requests, pagination and event streams."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

TIMEOUT_S = 600.0  # enough to submit a batch of a million jobs in one request
SILENT_S = 60.0  # an event stream that is silent for this long is considered dead
TRIES = 3  # attempts for a submission whose reply was lost
PAGE = 1000
PIECE_BYTES = 1 << 18

Json = dict[str, Any]  # Any: JSON
StrPath = str | os.PathLike[str]


class MusterClientError(Exception):
    """A call failed; the text is the reason."""


class ApiError(MusterClientError):
    """The server refused the request. `status` is the HTTP status, `problem` the problem document.

    `retry_s` is the time to wait before retrying, if the server gave one.
    """

    def __init__(self, status: int, problem: Mapping[str, object], retry_s: float | None = None) -> None:
        self.status = status
        self.problem = problem
        self.retry_s = retry_s
        super().__init__(str(problem.get("detail") or problem.get("title") or f"HTTP status {status}"))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments, not the message, because errors are passed between processes."""
        return type(self), (self.status, dict(self.problem), self.retry_s)

    @property
    def field(self) -> str | None:
        """Return the name of the invalid input field, or None."""
        found = self.problem.get("field")
        return found if isinstance(found, str) else None


class ChangedError(ApiError):
    """An edit with `if_match` was refused, because the object has changed since it was read. Nothing was changed."""

    @property
    def current(self) -> Any:
        """Return what can be edited of the object, as it is now; None if it is gone."""
        return self.problem.get("current")


class UnreachableError(MusterClientError):
    """The server does not reply."""


class Read(dict[str, Any]):
    """A reply that shows an object which can be edited, with its entity tag for `if_match`."""

    etag: str


IfMatch = Mapping[str, object] | str | None  # an object as read, or an entity tag


def tagged(values: dict[str, Any], etag: str | None) -> dict[str, Any]:
    """Return an object with its entity tag; without one, the object itself."""
    if etag is None:
        return values
    read = Read(values)
    read.etag = etag
    return read


def etag_of(read: IfMatch) -> str | None:
    """Return the entity tag of an object as read. Raises ValueError if it was not read from its own address.

    >>> etag_of(tagged({"level": "normal"}, '"17"')), etag_of('"17"'), etag_of(None)
    ('"17"', '"17"', None)
    """
    if read is None or isinstance(read, str):
        return read
    if isinstance(read, Read):
        return read.etag
    raise ValueError("if_match: an object as its own method returns it, such as client.batch(7), or an entity tag")


class Connector(aiohttp.TCPConnector):
    """A connection pool that a forked process does not close, which would break the parent's connections."""

    def __init__(self) -> None:
        self._process_id = os.getpid()
        super().__init__()

    def __del__(self, *given: Any) -> None:
        if self._process_id == os.getpid():
            super().__del__(*given)


class Transport:
    """A connection to one project's API. Raises ApiError if the server refuses, UnreachableError if it does not reply.

    The first call opens it. `async with` or `close` closes it.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url.rstrip('/')}/api/v1"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session for the running event loop, opened if necessary."""
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
            self._session = aiohttp.ClientSession(connector=Connector(), headers=self._headers, timeout=timeout)
        return self._session

    def _detach(self) -> None:
        """Drop the connections without closing them, in a process forked from the process that uses them."""
        session, self._session = self._session, None
        if session is not None:
            session.detach()

    async def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        data: object = None,
        headers: Mapping[str, str] | None = None,
        if_match: IfMatch = None,
    ) -> Any:
        """Return the reply's JSON. `if_match`: only if the object is as it was read. Raises ChangedError."""
        if (tag := etag_of(if_match)) is not None:
            headers = {**(headers or {}), "If-Match": tag}
        sent = msgspec.json.encode(body) if body is not None else data
        url = f"{self._url}/{path}{query_of(query)}"
        try:
            async with self._opened().request(method, url, data=sent, headers=headers) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise UnreachableError(f"{self._url} does not reply: {str(error) or 'timed out'}") from error
        if response.status >= 400:
            kind = ChangedError if response.status == 412 else ApiError
            raise kind(response.status, _document(content), _retry_s(response))
        try:
            found = msgspec.json.decode(content)
            return tagged(found, response.headers.get("ETag")) if isinstance(found, dict) else found
        except msgspec.DecodeError:
            raise UnreachableError(f"the reply of {self._url} is not from Muster: check the project's URL") from None

    async def _submit(self, path: str, body: object) -> Any:
        """Call with an idempotency key: the call is repeated if the reply is lost, but executed only once."""
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        for _ in range(TRIES - 1):
            try:
                return await self._call("POST", path, body, headers=headers)
            except UnreachableError:
                continue
        return await self._call("POST", path, body, headers=headers)

    async def _list(
        self, path: str, kind: str, *, limit: int | None, query: Mapping[str, object] | None = None
    ) -> list[Any]:
        """Return the first `limit` entries of a list; all entries if `limit` is None."""
        found: list[Any] = []
        cursor: str | None = None
        while limit is None or len(found) < limit:
            wanted = PAGE if limit is None else min(PAGE, limit - len(found))
            page = await self._call("GET", path, query={**(query or {}), "limit": wanted, "cursor": cursor})
            found += page[kind]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found

    async def _events(self, path: str) -> AsyncIterator[tuple[str, Any]]:
        """Yield the name and data of each event until the stream ends."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENT_S)
        try:
            async with self._opened().get(f"{self._url}/{path}", timeout=timeout) as response:
                if response.status >= 400:
                    raise ApiError(response.status, _document(await response.read()))
                name = ""
                async for raw in response.content:
                    key, _, value = raw.decode().rstrip("\n").partition(": ")
                    if key == "event":
                        name = value
                    elif key == "data":
                        yield name, msgspec.json.decode(value)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise UnreachableError(f"{self._url} does not reply: {error}") from error

    async def _fetch(self, path: str, to: Path) -> int:
        """Download a file and return its size. On failure or cancellation, remove the partial file."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENT_S)
        nbytes = 0
        try:
            async with self._opened().get(f"{self._url}/{path}", timeout=timeout) as response:
                if response.status >= 400:
                    raise ApiError(response.status, _document(await response.read()), _retry_s(response))
                file = to.open("wb")
                with _removed_on_failure(to), file:
                    async for piece in response.content.iter_chunked(PIECE_BYTES):
                        nbytes += await asyncio.to_thread(file.write, piece)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise UnreachableError(f"{self._url} does not reply: {str(error) or 'timed out'}") from error
        return nbytes


def part(name: object) -> str:
    """Return a name quoted for use in a URL path.

    >>> part("Ada's/group")
    'Ada%27s%2Fgroup'
    """
    return quote(str(name), safe="")


def query_of(query: Mapping[str, object] | None) -> str:
    """Return the query string. Values of None are omitted.

    >>> query_of({"limit": 5, "cursor": None, "preview": True})
    '?limit=5&preview=true'
    """
    given = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (query or {}).items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""


@contextmanager
def _removed_on_failure(path: Path) -> Iterator[None]:
    """Remove the file if it was not written completely."""
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _retry_s(response: aiohttp.ClientResponse) -> float | None:
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else None


def _document(content: bytes) -> dict[str, object]:
    try:
        return msgspec.json.decode(content, type=dict[str, object])
    except msgspec.DecodeError:
        return {"title": content[:200].decode(errors="replace")}
