"""Complete files in a bucket of an S3-compatible store: the other implementation of FileStore.

    s3://BUCKET/PREFIX?endpoint=https://…&region=…

A file for downloads is PREFIX/download/ab/NAME, an output PREFIX/upload/ab/NAME/MD5: no object is ever overwritten with
other content, so an acknowledged output stays readable after any later upload. Credentials come from the
environment (AWS_ACCESS_KEY_ID and so on), and so do endpoint and region if the address lacks them.

Memory is bounded: a file is sent in parts and read in pieces, each by a request of its own with a time limit and few
retries. A store that is away, slow or full so costs a call a minute, and the caller sees UnavailableError.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, urlsplit

import obstore
import structlog
from obstore.exceptions import BaseError
from obstore.store import S3Store

from domain.errors import InvalidInputError, UnavailableError
from domain.units import Instant
from transfer.file_store import PAGE, Area, FileKey, FileStat, StoredFile
from transfer.files import Content, shard

PART_BYTES = 8 * 1024 * 1024  # of an upload; grows for files with more than MOST_PARTS of them
MOST_PARTS = 9_000  # a store accepts 10,000
PARTS_AT_ONCE, PUTS_AT_ONCE = 2, 4  # per process: at most 64 MB of parts in memory
PIECE_BYTES = 4 * 1024 * 1024  # of a download
REQUESTS_AT_ONCE = 16
REQUEST_S, CONNECT_S, RETRY_S, RETRIES = 30, 5, 20, 3
MD5 = "md5"  # metadata of an object
CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_PLACE = re.compile(r"(?P<area>download|upload)/(?P<shard>[0-9a-f]{2})/(?P<name>[^/]+)(?:/(?P<md5>[0-9a-f]{32}))?")

log = structlog.get_logger("transfer.bucket")


class BucketStore:
    """Implements FileStore."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: S3Store | None = None
        self._puts = asyncio.Semaphore(PUTS_AT_ONCE)
        self._requests = asyncio.Semaphore(REQUESTS_AT_ONCE)

    @property
    def place(self) -> str:
        return self._url

    async def put(self, source: BinaryIO, key: FileKey, content: Content) -> None:
        part_bytes = max(PART_BYTES, content.nbytes // MOST_PARTS)
        async with self._puts:
            store = await self._opened()
            with _unavailable("store files", key):
                await obstore.put_async(
                    store,
                    _object(key),
                    source,
                    attributes={MD5: content.md5, "Content-Type": "application/octet-stream"},
                    chunk_size=part_bytes,
                    max_concurrency=PARTS_AT_ONCE,
                )

    async def stats(self, keys: Sequence[FileKey]) -> Sequence[FileStat | None]:
        return await asyncio.gather(*map(self._stat, keys))

    async def _stat(self, key: FileKey) -> FileStat | None:
        async with self._requests:
            store = await self._opened()
            try:
                with _unavailable("look up files", key):
                    found = await obstore.head_async(store, _object(key))
            except FileNotFoundError:
                return None
            return FileStat(found["size"], Instant(found["last_modified"].timestamp()))

    async def content(self, key: FileKey) -> Content | None:
        store = await self._opened()
        try:
            with _unavailable("look up files", key):
                found = await obstore.get_async(store, _object(key), options={"head": True})
            nbytes, md5 = found.meta["size"], found.attributes.get(MD5)
            return Content(nbytes, md5 or await self.md5(key, nbytes))
        except FileNotFoundError:
            return None

    async def md5(self, key: FileKey, nbytes: int) -> str:
        """Return the MD5 of a file's bytes, all of which are read. Raises FileNotFoundError."""
        digest = hashlib.md5(usedforsecurity=False)
        async for piece in self.read(key, 0, nbytes):
            await asyncio.to_thread(digest.update, piece)
        return digest.hexdigest()

    async def read(self, key: FileKey, start: int, stop: int) -> AsyncIterator[bytes]:
        store = await self._opened()
        while start < stop:
            with _unavailable("read files", key):
                piece = await obstore.get_range_async(
                    store, _object(key), start=start, end=min(stop, start + PIECE_BYTES)
                )
            start += len(piece)
            yield bytes(piece)

    def path(self, key: FileKey) -> Path | None:
        del key
        return None

    async def link(self, key: FileKey, valid_s: float) -> str | None:
        store = await self._opened()
        with _unavailable("sign addresses", key):
            return await obstore.sign_async(store, "GET", _object(key), timedelta(seconds=valid_s))

    async def delete(self, keys: Sequence[FileKey]) -> None:
        store = await self._opened()
        for at in range(0, len(keys), PAGE):
            with _unavailable("delete files", keys[at]):
                await obstore.delete_async(store, [_object(key) for key in keys[at : at + PAGE]])

    async def listed(self, area: Area, sub_folder: str = "") -> AsyncIterator[Sequence[StoredFile]]:
        store = await self._opened()
        prefix = f"{area}/{sub_folder}" if sub_folder else area
        pages = obstore.list(store, prefix, chunk_size=PAGE)
        while True:
            with _unavailable("list files", None):
                page = await anext(pages, None)
            if page is None:
                return
            yield [
                StoredFile(
                    one["path"], key_of(one["path"]), FileStat(one["size"], Instant(one["last_modified"].timestamp()))
                )
                for one in page
            ]

    async def _opened(self) -> S3Store:
        """Return the store; the first call checks that the bucket exists: else every file would seem to be missing."""
        if self._store is None:
            if not any(os.environ.get(name) for name in CREDENTIALS):
                raise UnavailableError(
                    f"no credentials for {self._url}: set {CREDENTIALS[0]} and AWS_SECRET_ACCESS_KEY"
                )
            address = urlsplit(self._url)
            given = {name: value for name, value in parse_qsl(address.query) if name in {"endpoint", "region"}}
            try:
                with _unavailable("open the bucket", None):
                    store = S3Store(
                        address.netloc,
                        prefix=address.path.strip("/") or None,
                        client_options={
                            "allow_http": True,  # only of an endpoint that says so
                            "connect_timeout": timedelta(seconds=CONNECT_S),
                            "timeout": timedelta(seconds=REQUEST_S),
                        },
                        retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_S)},
                        **given,  # type: ignore[arg-type]  # both are texts
                    )
                    await anext(obstore.list(store, Area.DOWNLOAD, chunk_size=1), None)
            except FileNotFoundError:
                raise UnavailableError(f"there is no bucket {address.netloc}") from None
            self._store = store
        return self._store


def _object(key: FileKey) -> str:
    """Return the place of a file below the prefix.

    >>> _object(FileKey(Area.UPLOAD, "pi_3_41_77_r0", "d41d8cd98f00b204e9800998ecf8427e"))
    'upload/ba/pi_3_41_77_r0/d41d8cd98f00b204e9800998ecf8427e'
    """
    return "/".join(filter(None, (key.area, shard(key.name), key.name, key.md5)))


def key_of(place: str) -> FileKey | None:
    """Return the key of an object; None if it is no file of the project.

    >>> key_of("download/7f/pi_1.00_x86_64")
    FileKey(area=<Area.DOWNLOAD: 'download'>, name='pi_1.00_x86_64', md5='')
    >>> key_of("upload/7f/readme.txt")
    """
    found = _PLACE.fullmatch(place)
    if found is None or shard(found["name"]) != found["shard"]:
        return None
    key = FileKey(Area(found["area"]), found["name"], found["md5"] or "")
    return key if bool(key.md5) == (key.area is Area.UPLOAD) else None


@contextmanager
def _unavailable(act: str, key: FileKey | None) -> Iterator[None]:
    """Inside the block, every error except a missing file becomes UnavailableError; the log has its details."""
    try:
        yield
    except FileNotFoundError:
        raise
    except ValueError as error:
        raise InvalidInputError("file name", "a name that a bucket accepts", key.name if key else str(error)) from error
    except (BaseError, OSError) as error:
        log.warning("bucket request failed", act=act, file=key.name if key else "", why=str(error)[:500])
        raise UnavailableError(f"the file store cannot {act} at present") from error
