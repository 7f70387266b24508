"""What hosts have uploaded: growing parts, and whole files whose MD5 was right; deletes what nothing will complete.

A file the database knows of stays until it is purged, and so does everything of an instance in progress. A round of the
deletion looks at one of the 256 sub-folders, chosen by the time, so that restarts leave none out.
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
from transfer.downloads import Content, content_of
from transfer.files import make_folder, md5_of, parse_output_name, stored_path, sync, sync_folder
from transfer.ports import UnneededFiles

_OPEN_MODE = 0o644
_RECORDED_MODE = 0o444  # a hint that saves the leftover cleaner a query; no answer to a client depends on it


PART = ".part"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that is not finished: a part, or a whole file the database may not know of."""

    name: str
    whole: bool
    nbytes: int


class Finish(StrEnum):
    """How an upload stands when its last byte has arrived."""

    WHOLE = "whole"
    TOO_SHORT = "too_short"  # somebody else goes on with it
    WRONG_MD5 = "wrong_md5"  # what was there is deleted
    OTHER_CONTENT = "other_content"  # another whole file has this name; the part is complete and waits for `replace`


class UploadFolder:
    """The folder uploads grow in."""

    def __init__(self, folder: Path, *, sync: Callable[[BinaryIO | FileIO], None] = sync) -> None:
        """`sync` waits until the bytes of an open file are on disk."""
        self._folder = folder
        self._sync = sync

    def path(self, name: str) -> Path:
        """Where the whole file of that name is or would be. Raises InvalidInputError for unsafe names."""
        return stored_path(self._folder, name)

    def part_size(self, name: str) -> int | None:
        """Bytes of the part; None when there is none. A part may have all bytes of its file and not be verified."""
        return _size_of(self._part(name))

    def whole_size(self, name: str) -> int | None:
        """Bytes of the whole file, recorded or not; None when it is not whole."""
        return _size_of(self.path(name))

    def whole(self, name: str) -> Content | None:
        """The verified file's size and MD5, read from disk; None when it is not whole.

        Its name is synced too: the process that renamed it may have died before it did that.
        """
        try:
            found = content_of(self.path(name))
        except FileNotFoundError:
            return None
        sync_folder(self.path(name).parent)
        return found

    def read(self, name: str) -> bytes | None:
        """The verified file's bytes; None when it is not whole."""
        try:
            return self.path(name).read_bytes()
        except FileNotFoundError:
            return None

    def begin(self, name: str, offset: int) -> int:
        """Get ready to go on at `offset`: what lies behind it is cut off. Returns the part's size now.

        A size below `offset` means that the bytes before it are not here; nothing was cut off.
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
        """Add bytes to a part that ends `at`; False when it ends elsewhere: another connection goes on with it.

        OSError: no room; nothing was added.
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
        """Wait until what has arrived is on disk."""
        try:
            with self._locked_part(name, create=False) as part:
                self._sync(part)
        except FileNotFoundError:
            return  # it has become whole, or was wrong and is gone

    def finish(self, name: str, *, nbytes: int, md5: str) -> Finish:
        """Turn a part that holds all of its bytes into the whole file, on disk when this returns."""
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
            pass  # another connection with the same upload was faster: see what it left
        found = self.whole(name)
        if found is None:
            return Finish.TOO_SHORT
        return Finish.WHOLE if found == (nbytes, md5) else Finish.OTHER_CONTENT

    def replace(self, name: str, *, nbytes: int, md5: str) -> bool:
        """Put a complete part in the place of another whole file; False when the part changed meanwhile."""
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
        """Whether the file says that it was recorded: a hint, see `mark_recorded`."""
        try:
            return not self.path(name).stat().st_mode & stat.S_IWUSR
        except FileNotFoundError:
            return False

    def mark_recorded(self, name: str) -> None:
        """Note beside the file that it was recorded, so that the leftover cleaner does not ask about it.

        Raises FileNotFoundError if the cleaner took the file away before it was recorded.
        """
        self.path(name).chmod(_RECORDED_MODE)

    def unfinished(self, sub_folder: str, before: Instant) -> list[Leftover]:
        """Parts and whole files not marked as recorded, of a sub-folder, that did not change since `before`."""
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
                    continue  # it has become whole, or was purged
                name, whole = entry.name.removesuffix(PART), not entry.name.endswith(PART)
                if stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IWUSR and status.st_mtime < before:
                    found.append(Leftover(name, whole, status.st_size))
        return found

    def set_aside(self, name: str) -> bool:
        """Make a whole file a part again; False when it is not there, is marked recorded, or has a part beside it."""
        with self._locked_part(name, create=True) as part:
            if os.fstat(part.fileno()).st_size:
                return False
            if self.is_marked(name) or not self.path(name).exists():
                self._part(name).unlink()
                return False
            self.path(name).rename(self._part(name))
            return True

    def put_back(self, name: str) -> None:
        """Undo `set_aside`: the database knows of the file."""
        with suppress(FileNotFoundError), self._locked_part(name, create=False):  # not there: uploaded again meanwhile
            if self.path(name).exists():
                self._part(name).unlink()
                return
            self._part(name).rename(self.path(name))

    def drop_part(self, name: str, before: Instant) -> bool:
        """Delete a part, unless it changed since `before`."""
        try:
            with self._locked_part(name, create=False) as part:
                if os.fstat(part.fileno()).st_mtime >= before:
                    return False
                self._part(name).unlink()
                return True
        except FileNotFoundError:
            return False

    def remove(self, name: str) -> None:
        """Delete whatever is here of a file."""
        for path in (self.path(name), self._part(name)):
            path.unlink(missing_ok=True)

    def _part(self, name: str) -> Path:
        path = self.path(name)
        return path.with_name(f"{path.name}{PART}")

    @contextmanager
    def _locked_part(self, name: str, *, create: bool) -> Iterator[FileIO]:
        """The part, open and locked, and surely the file of that name. FileNotFoundError if there is none."""
        path = self._part(name)
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        while True:
            with os.fdopen(os.open(path, flags, _OPEN_MODE), "r+b", buffering=0) as part:
                fcntl.flock(part, fcntl.LOCK_EX)
                if _is_at(part, path):
                    yield part
                    return


def _is_at(file: FileIO, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
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
LOOK_EVERY_S: Final = Seconds(300.0)  # at another sub-folder: at all of them in 21 hours
PAGE: Final = 1_000  # files between two questions to the database


@dataclass(frozen=True, slots=True)
class LeftoverReport:
    """One round: old unfinished files of a sub-folder, and those that were deleted."""

    old: int = 0
    deleted: int = 0
    deleted_bytes: int = 0


class LeftoverCleaner:
    """Runs in one process for each upload folder, however many nodes share it; two at once do no harm."""

    def __init__(
        self, folder: UploadFolder, files: UnneededFiles, clock: Clock, settings: Callable[[], StorageSettings]
    ) -> None:
        self._folder = folder
        self._files = files
        self._clock = clock
        self._settings = settings
        self._log = structlog.get_logger("transfer.upload_folder")

    async def run_once(self) -> LeftoverReport:
        """Look at the sub-folder whose turn it is."""
        now = self._clock.now()
        sub_folder = f"{int(now // LOOK_EVERY_S) % SUB_FOLDERS:02x}"
        return await self.clean(sub_folder, before=later(now, -self._settings().keep_parts_s))

    async def clean(self, sub_folder: str, *, before: Instant) -> LeftoverReport:
        """Delete what nobody needs of a sub-folder, and nothing that changed since `before`."""
        old = [one for one in await asyncio.to_thread(self._folder.unfinished, sub_folder, before) if _instance(one)]
        deleted: list[Leftover] = []
        for start in range(0, len(old), PAGE):
            deleted += await self._delete(old[start : start + PAGE], before)
        if deleted:
            self._log.info("unfinished files deleted", files=len(deleted), nbytes=sum(one.nbytes for one in deleted))
        return LeftoverReport(len(old), len(deleted), sum(one.nbytes for one in deleted))

    async def _delete(self, old: Sequence[Leftover], before: Instant) -> list[Leftover]:
        """A whole file is made a part first and asked about once more: who brings it now has to bring it anew."""
        unneeded = await self._unneeded(old)
        aside = [one for one in unneeded if not one.whole or await asyncio.to_thread(self._folder.set_aside, one.name)]
        still = await self._unneeded(aside)
        for one in aside:
            if one not in still and one.whole:
                await asyncio.to_thread(self._folder.put_back, one.name)
        return [one for one in still if await asyncio.to_thread(self._folder.drop_part, one.name, before)]

    async def _unneeded(self, files: Sequence[Leftover]) -> list[Leftover]:
        if not files:
            return []
        names = set(await self._files.unneeded([(one.name, _instance(one) or InstanceId(0)) for one in files]))
        return [one for one in files if one.name in names]


def _instance(file: Leftover) -> InstanceId | None:
    output = parse_output_name(file.name)
    return None if output is None else output.instance_id
