"""The complete files of a project: new ones go to the configured store, and all are found in every store in use.

The settings `storage.url` and `storage.read_url` may change while the project serves. A file is looked up in the store
for new files first; the folder always counts. While files move from one store to another, each is in at least one.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from domain.checking import KnownFile
from domain.clock import Clock
from domain.dispatch import Upload
from domain.errors import AlreadyExistsError, InvalidInputError, UnavailableError
from domain.formatting import size_in_words
from domain.settings import StorageSettings
from domain.units import later
from lifecycle.states import ACCEPTS_OUTPUTS
from transfer.bucket import BucketStore
from transfer.file_store import PART, Area, FileKey, FileStat, FileStore, FolderStore
from transfer.files import Content, checked_name, content_of, md5_of, open_new, parse_output_name
from transfer.ports import KnownFiles
from transfer.upload_folder import LOOK_EVERY_S, SUB_FOLDERS


@dataclass(frozen=True, slots=True)
class Found:
    """A file and the store that has it."""

    store: FileStore
    key: FileKey
    stat: FileStat

    @property
    def path(self) -> Path | None:
        return self.store.path(self.key)

    def pieces(self, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` to `stop`. Raises FileNotFoundError, OSError or UnavailableError."""
        return self.store.read(self.key, start, self.stat.nbytes if stop is None else stop)


class ProjectFiles:
    """Complete files of the folder `files/` and of the buckets in use."""

    def __init__(self, folder: Path, settings: Callable[[], StorageSettings] = StorageSettings) -> None:
        """`folder` also holds temporary copies. `settings()` returns the current settings."""
        self._folder = folder
        self._settings = settings
        self._folder_store = FolderStore(folder)
        self._buckets: dict[str, BucketStore] = {}

    @property
    def redirects(self) -> bool:
        """Whether clients fetch files from the bucket itself."""
        return self._settings().redirect

    @property
    def buckets(self) -> Sequence[BucketStore]:
        """The buckets in use."""
        settings = self._settings()
        urls = [url for url in dict.fromkeys((settings.url, settings.read_url)) if url]
        return [self._buckets.setdefault(url, BucketStore(url)) for url in urls]

    @property
    def stores(self) -> Sequence[FileStore]:
        """The stores in use; new files go to the first."""
        if self._settings().url:
            return (*self.buckets, self._folder_store)
        return (self._folder_store, *self.buckets)

    async def outputs(self, uploads: Sequence[Upload]) -> Sequence[Found | None]:
        """Return where each recorded output is; None if no store has it with its size."""
        keys = [output_key(one) for one in uploads]
        return await self._find(keys, [one.nbytes for one in uploads])

    async def _find(self, keys: Sequence[FileKey], sizes: Sequence[int | None]) -> Sequence[Found | None]:
        found: list[Found | None] = [None] * len(keys)
        stores = self.stores
        for store in stores if len(stores) == 1 else (*stores, stores[0]):  # again: it may have moved meanwhile
            left = [at for at, one in enumerate(found) if one is None]
            for at, stat in zip(left, await store.stats([keys[at] for at in left]), strict=True):
                if stat is not None and sizes[at] in (None, stat.nbytes):
                    found[at] = Found(store, keys[at], stat)
        return found

    async def download(self, name: str) -> Found | None:
        """Return where a file for downloads is. Raises InvalidInputError for a name that no file has."""
        [found] = await self._find([FileKey(Area.DOWNLOAD, checked_name(name))], [None])
        return found

    async def download_content(self, name: str) -> Content | None:
        """Return size and MD5 of a file for downloads. Raises InvalidInputError for a name that no file has."""
        found = await self.download(name)
        return None if found is None else await found.store.content(found.key)

    async def register(self, source: Path, name: str, *, max_bytes: int) -> Content:
        """Store a file for downloads; durable on return. Idempotent for equal content.

        Raises AlreadyExistsError if the name has other content, InvalidInputError for an unsafe name, a source that is
        not a file, or one that is larger than `max_bytes`.
        """
        key = FileKey(Area.DOWNLOAD, checked_name(name))
        content = await asyncio.to_thread(_checked_content, source, name, max_bytes)
        first, *others = self.stores
        contents = {store: await store.content(key) for store in (first, *others)}
        if any(other not in {None, content} for other in contents.values()):
            raise AlreadyExistsError("file", name)
        if contents[first] is None:
            with source.open("rb") as file:
                await first.put(file, key, content)
        return content

    async def keep(self, source: Path, upload: Upload) -> bool:
        """Store a complete output before it is recorded. Returns False if its place in the folder is the store.

        Raises UnavailableError, also if the file has changed, and OSError.
        """
        first = self.stores[0]
        if first is self._folder_store:
            return False
        with source.open("rb") as file:
            content = await asyncio.to_thread(_content, file)
            if content != (upload.nbytes, upload.md5):
                raise UnavailableError(f"{upload.name} changed while it was stored")
            await first.put(file, output_key(upload), content)
        return True

    async def in_bucket(self, upload: Upload) -> bool:
        """Return whether a bucket has this content."""
        [found] = await self.outputs([upload])
        return found is not None and found.store is not self._folder_store

    async def delete_outputs(self, uploads: Sequence[Upload]) -> None:
        """Delete outputs from every store, and what the folder has of a next version."""
        keys = [output_key(one) for one in uploads]
        for store in self.stores:
            await store.delete(keys)

        def delete_parts() -> None:
            for path in map(self._folder_store.path, keys):
                path.with_name(f"{path.name}{PART}").unlink(missing_ok=True)

        await asyncio.to_thread(delete_parts)

    @asynccontextmanager
    async def local(self, found: Sequence[Found]) -> AsyncIterator[Sequence[Path]]:
        """Yield the path of each file: its own, or that of a copy which is deleted when the block ends."""
        with ExitStack() as stack:
            paths: list[Path] = []
            for number, one in enumerate(found):
                path = one.path
                if path is None:
                    folder = tempfile.TemporaryDirectory(prefix="copy-", dir=self._folder.parent)
                    path = Path(stack.enter_context(folder)) / str(number)
                    await copy(one, path)
                paths.append(path)
            yield paths

    @asynccontextmanager
    async def local_outputs(self, uploads: Sequence[Upload]) -> AsyncIterator[Mapping[str, Path]]:
        """Yield a path by name for outputs: that in the folder, or of a copy which is deleted when the block ends."""
        paths = {one.name: self._folder_store.path(output_key(one)) for one in uploads}
        found: list[Found] = []
        if self.buckets:
            found = [one for one in await self.outputs(uploads) if one is not None and one.path is None]
        async with self.local(found) as copies:
            yield {**paths, **{one.key.name: path for one, path in zip(found, copies, strict=True)}}


async def copy(found: Found, target: Path) -> Content:
    """Write a file to `target`, which must not exist; returns size and MD5 of the copy."""
    digest = hashlib.md5(usedforsecurity=False)
    nbytes = 0
    with open_new(target, mode=0o600) as file:
        async for piece in found.pieces():
            nbytes += len(piece)
            await asyncio.to_thread(file.write, piece)
            digest.update(piece)
    return Content(nbytes, digest.hexdigest())


def output_key(upload: Upload) -> FileKey:
    return FileKey(Area.UPLOAD, upload.name, upload.md5)


def _content(file: BinaryIO) -> Content:
    """Return size and MD5 of an open file, and go back to its start."""
    md5 = md5_of(file)
    nbytes = file.tell()
    file.seek(0)
    return Content(nbytes, md5)


def _checked_content(source: Path, name: str, max_bytes: int) -> Content:
    if not source.is_file():
        raise InvalidInputError(str(source), "a readable file", "none")
    if source.stat().st_size > max_bytes:
        raise InvalidInputError(name, f"a file of at most {size_in_words(max_bytes)}", "a larger one")
    return content_of(source)


def is_needless(md5: str, known: KnownFile | None) -> bool:
    """Return whether a bucket's output is neither recorded nor recordable any more: its instance accepts no outputs.

    >>> [is_needless(md5, KnownFile("pi_1_r0", "valid", 1, md5="b")) for md5 in "ab"]
    [True, False]
    >>> is_needless("a", KnownFile("pi_1_r0", "timed_out", None)), is_needless("a", None)
    (False, True)
    """
    if known is None or known.state is None:
        return True
    return known.md5 != md5 and known.state not in ACCEPTS_OUTPUTS


class ObjectCleaner:
    """Deletes outputs from buckets that were stored and never recorded: their server stopped, or the instance ended.

    No record of such an output can follow, so a file that is being acknowledged is never deleted.
    """

    def __init__(
        self, files: ProjectFiles, records: KnownFiles, clock: Clock, settings: Callable[[], StorageSettings]
    ) -> None:
        self._files = files
        self._records = records
        self._clock = clock
        self._settings = settings
        self._log = structlog.get_logger("transfer.project_files")

    async def run_once(self) -> int:
        """Clean the sub-folder whose turn it is; returns how many objects were deleted."""
        now = self._clock.now()
        before = later(now, -self._settings().keep_parts_s)
        sub_folder = f"{int(now // LOOK_EVERY_S) % SUB_FOLDERS:02x}"
        deleted = 0
        for bucket in self._files.buckets:
            async for page in bucket.listed(Area.UPLOAD, sub_folder):
                keys = [one.key for one in page if one.key is not None and one.stat.modified_at < before]
                outputs = [(key, output) for key in keys if (output := parse_output_name(key.name)) is not None]
                found = await self._records.known([(one.name, one.instance_id) for _, one in outputs])
                known = {one.name: one for one in found}
                needless = [key for key, output in outputs if is_needless(key.md5, known.get(output.name))]
                await bucket.delete(needless)
                deleted += len(needless)
        if deleted:
            self._log.info("objects without a record deleted", objects=deleted)
        return deleted
