"""Stores uploads, as growing parts and as complete files with a verified MD5, and deletes abandoned ones.

A file recorded in the database is kept until it is purged; all files of an instance in progress are kept, too. Each
cleaning round examines one of the 256 subdirectories, chosen by the time, so that restarts do not skip any.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from domain.clock import Clock
from domain.settings import StorageSettings
from domain.units import InstanceId, Instant, Seconds, later
from transfer.file_store import PART, RECORDED_MODE
from transfer.files import Content, content_of, make_folder, md5_of, parse_output_name, stored_path, sync, sync_folder
from transfer.ports import UnneededFiles

_OPEN_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Leftover:
    """An unfinished file: a part, or a complete file that the database may not have recorded."""

    name: str
    whole: bool
    nbytes: int


class Finish(StrEnum):
    """The state of an upload after its last byte."""

    WHOLE = "whole"
    TOO_SHORT = "too_short"  # another connection is continuing the part
    WRONG_MD5 = "wrong_md5"  # the part was deleted
    OTHER_CONTENT = "other_content"  # another complete file has this name; the complete part waits for `replace`


class UploadFolder:
    """The directory of uploads."""

    def __init__(self, folder: Path, *, sync: Callable[[BinaryIO | FileIO], None] = sync) -> None:
        """Use the directory `folder`; `sync` flushes an open file to disk."""
        self._folder = folder
        self._sync = sync

    def path(self, name: str) -> Path:
        """Return the path of the complete file, which may not exist. Raises InvalidInputError for an unsafe name."""
        return stored_path(self._folder, name)

    def part_size(self, name: str) -> int | None:
        """Return the part's size in bytes; None if there is no part. A part of full size may still be unverified."""
        return _size_of(self._part(name))

    def whole(self, name: str) -> Content | None:
        """Return the complete file's size and MD5, read from disk; None if the file is not complete.

        Its directory is synced too, because the process that renamed the file may have died before syncing.
        """
        try:
            found = content_of(self.path(name))
        except FileNotFoundError:
            return None
        sync_folder(self.path(name).parent)
        return found

    def read(self, name: str) -> bytes | None:
        """Return the contents of the complete file, None if the file is not complete."""
        try:
            return self.path(name).read_bytes()
        except FileNotFoundError:
            return None

    def begin(self, name: str, offset: int) -> int:
        """Prepare to continue at `offset` by truncating the part there. Return the part's new size.

        A size below `offset` means that earlier bytes are missing; in that case nothing was truncated.
        """
        make_folder(self.path(name).parent)
        with self._locked_part(name, create=True) as part:
            size = os.fstat(part.fileno()).st_size
            if size < offset:
                if size == 0:
                    self._part(name).unlink()
                return size
            os.ftruncate(part.fileno(), offset)
            return offset

    def append(self, name: str, chunk: bytes, *, at: int) -> bool:
        """Append bytes to a part of size `at`. Return False if its size differs: another connection continues it.

        Raises OSError if the disk is full; in that case nothing was appended.
        """
        try:
            with self._locked_part(name, create=False) as part:
                if part.seek(0, os.SEEK_END) != at:
                    return False
                try:
                    _write_all(part, chunk)
                except OSError:
                    os.ftruncate(part.fileno(), at)
                    raise
                return True
        except FileNotFoundError:
            return False

    def sync(self, name: str) -> None:
        """Flush the received bytes to disk."""
        try:
            with self._locked_part(name, create=False) as part:
                self._sync(part)
        except FileNotFoundError:
            return  # completed, or deleted for a wrong MD5

    def finish(self, name: str, *, nbytes: int, md5: str) -> Finish:
        """Turn a part of full size into the complete file, which is on disk on return."""
        path, part_path = self.path(name), self._part(name)
        try:
            with self._locked_part(name, create=False) as part:
                if os.fstat(part.fileno()).st_size != nbytes:
                    return Finish.TOO_SHORT
                if not _has_md5(part, md5):
                    part_path.unlink()
                    return Finish.WRONG_MD5
                if not path.exists():
                    self._sync(part)
                    part_path.rename(path)
                elif content_of(path) == (nbytes, md5):
                    part_path.unlink()
        except FileNotFoundError:
            pass  # another connection finished the same upload first: check its result
        found = self.whole(name)
        if found is None:
            return Finish.TOO_SHORT
        return Finish.WHOLE if found == (nbytes, md5) else Finish.OTHER_CONTENT

    def replace(self, name: str, *, nbytes: int, md5: str) -> bool:
        """Replace the complete file with a part of full size. Return False if the part has changed."""
        try:
            with self._locked_part(name, create=False) as part:
                if os.fstat(part.fileno()).st_size != nbytes or not _has_md5(part, md5):
                    return False
                self._sync(part)
                self._part(name).replace(self.path(name))
        except FileNotFoundError:
            return False
        sync_folder(self.path(name).parent)
        return True

    def is_marked(self, name: str) -> bool:
        """Return whether the file is marked as recorded. This is only a hint, see `mark_recorded`."""
        try:
            return not self.path(name).stat().st_mode & stat.S_IWUSR
        except FileNotFoundError:
            return False

    def mark_recorded(self, name: str) -> None:
        """Mark the file as recorded, so that the leftover cleaner does not query it.

        Raises FileNotFoundError if the cleaner removed the file before it was recorded.
        """
        self.path(name).chmod(RECORDED_MODE)

    def unfinished(self, sub_folder: str, before: Instant) -> list[Leftover]:
        """Return a subdirectory's parts, and its complete files not marked as recorded, unchanged since `before`."""
        found: list[Leftover] = []
        try:
            entries = os.scandir(self._folder / sub_folder)
        except FileNotFoundError:
            return found
        with entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # completed or purged since it was listed
                name, whole = entry.name.removesuffix(PART), not entry.name.endswith(PART)
                if stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IWUSR and status.st_mtime < before:
                    found.append(Leftover(name, whole, status.st_size))
        return found

    def unfinish(self, name: str) -> bool:
        """Rename a complete file to a part. Return False if it is missing or marked as recorded, or a part exists."""
        with self._locked_part(name, create=True) as part:
            if os.fstat(part.fileno()).st_size:
                return False
            if self.is_marked(name) or not self.path(name).exists():
                self._part(name).unlink()
                return False
            self.path(name).rename(self._part(name))
            return True

    def finish_again(self, name: str) -> None:
        """Undo `unfinish`, because the file is recorded in the database."""
        with suppress(FileNotFoundError), self._locked_part(name, create=False):  # missing: uploaded again meanwhile
            if self.path(name).exists():
                self._part(name).unlink()
                return
            self._part(name).rename(self.path(name))

    def drop_part(self, name: str, before: Instant) -> bool:
        """Delete a part unless it has changed since `before`."""
        try:
            with self._locked_part(name, create=False) as part:
                if os.fstat(part.fileno()).st_mtime >= before:
                    return False
                self._part(name).unlink()
                return True
        except FileNotFoundError:
            return False

    def drop_whole(self, name: str) -> None:
        """Delete the complete file, which was stored in a bucket and recorded."""
        self.path(name).unlink(missing_ok=True)

    def _part(self, name: str) -> Path:
        path = self.path(name)
        return path.with_name(f"{path.name}{PART}")

    @contextmanager
    def _locked_part(self, name: str, *, create: bool) -> Iterator[FileIO]:
        """Open and lock the part, ensuring that it still has that name. Raises FileNotFoundError if there is none."""
        path = self._part(name)
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        while True:
            with os.fdopen(os.open(path, flags, _OPEN_MODE), "r+b", buffering=0) as part:
                fcntl.flock(part, fcntl.LOCK_EX)
                if _is_at(part, path):
                    yield part
                    return


def _is_at(file: FileIO, path: Path) -> bool:
    """Return whether the path still refers to the open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _has_md5(part: FileIO, md5: str) -> bool:
    part.seek(0)
    return md5_of(part) == md5


def _write_all(file: FileIO, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]


SUB_FOLDERS: Final = 256
LOOK_EVERY_S: Final = Seconds(300.0)  # one subdirectory per round, so all of them in 21 hours
PAGE: Final = 1_000  # files per database query


@dataclass(frozen=True, slots=True)
class LeftoverReport:
    """The result of one round: how many old unfinished files a subdirectory had, and how many were deleted."""

    old: int = 0
    deleted: int = 0
    deleted_bytes: int = 0


class LeftoverCleaner:
    """Deletes abandoned uploads. One process per upload directory is enough; several do no harm."""

    def __init__(
        self, folder: UploadFolder, files: UnneededFiles, clock: Clock, settings: Callable[[], StorageSettings]
    ) -> None:
        self._folder = folder
        self._files = files
        self._clock = clock
        self._settings = settings
        self._log = structlog.get_logger("transfer.upload_folder")

    async def run_once(self) -> LeftoverReport:
        """Clean the subdirectory whose turn it is."""
        now = self._clock.now()
        sub_folder = f"{int(now // LOOK_EVERY_S) % SUB_FOLDERS:02x}"
        return await self.clean(sub_folder, before=later(now, -self._settings().keep_parts_s))

    async def clean(self, sub_folder: str, *, before: Instant) -> LeftoverReport:
        """Delete a subdirectory's unneeded files, except those that changed since `before`."""
        old = [one for one in await asyncio.to_thread(self._folder.unfinished, sub_folder, before) if _instance(one)]
        deleted: list[Leftover] = []
        for start in range(0, len(old), PAGE):
            deleted += await self._delete(old[start : start + PAGE], before)
        if deleted:
            self._log.info("unfinished files deleted", files=len(deleted), nbytes=sum(one.nbytes for one in deleted))
        return LeftoverReport(len(old), len(deleted), sum(one.nbytes for one in deleted))

    async def _delete(self, old: Sequence[Leftover], before: Instant) -> list[Leftover]:
        """Delete unneeded files. A complete file first becomes a part and is checked again: it may now be in use."""
        unneeded = await self._unneeded(old)
        parts = [one for one in unneeded if not one.whole or await asyncio.to_thread(self._folder.unfinish, one.name)]
        still = await self._unneeded(parts)
        for one in parts:
            if one not in still and one.whole:
                await asyncio.to_thread(self._folder.finish_again, one.name)
        return [one for one in still if await asyncio.to_thread(self._folder.drop_part, one.name, before)]

    async def _unneeded(self, files: Sequence[Leftover]) -> list[Leftover]:
        if not files:
            return []
        names = set(await self._files.unneeded([(one.name, _instance(one) or InstanceId(0)) for one in files]))
        return [one for one in files if one.name in names]


def _instance(file: Leftover) -> InstanceId | None:
    output = parse_output_name(file.name)
    return None if output is None else output.instance_id
