"""What hosts have brought so far: growing parts, and whole files whose MD5 was right.

    UPLOAD_DIR/ab/NAME.part   what has arrived of a file
    UPLOAD_DIR/ab/NAME        the whole file, MD5 verified; read-only once the database knows of it

The first whole file of a name stays: what a host brought and others were compared with never changes.

Each step on a part opens it anew, takes an exclusive lock and looks whether the part still is what the
step expects, so an upload that was cut and resumed elsewhere, in this process or another one, takes over
without waiting for the dead connection: the older writer finds the part longer or shorter than it left it
and stops. Calls block; run them in a thread from async code.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from io import FileIO
from pathlib import Path

from domain.units import Instant
from transfer.download_folder import Content, content_of
from transfer.files import make_folder, md5_of, sync_folder
from transfer.names import stored_path

# A file's permission says how far it is, changed with the file in one step.
_OPEN_MODE = 0o644  # a part that lacks something, or a whole file the database may not know of
_CLOSING_MODE = 0o600  # a part that may have all its bytes, not verified yet
_RECORDED_MODE = 0o444  # a whole file the database knows of


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
    OTHER_CONTENT = "other_content"  # the name's file was whole before, and is another one


class UploadFolder:
    """The folder uploads grow in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """Where the whole file of that name is or would be. Raises InvalidInputError for unsafe names."""
        return stored_path(self._folder, name)

    def size(self, name: str) -> int:
        """Bytes that need not be sent again: of the whole file, else of its part, else 0.

        A client that hears the full size sends nothing more, so a part that may be complete but was never
        verified (the server stopped at that moment) counts one byte less.
        """
        try:
            return self.path(name).stat().st_size
        except FileNotFoundError:
            pass
        try:
            part = self._part(name).stat()
        except FileNotFoundError:
            return 0
        return max(0, part.st_size - 1) if stat.S_IMODE(part.st_mode) == _CLOSING_MODE else part.st_size

    def whole(self, name: str) -> Content | None:
        """The verified file's size and MD5, read from disk; None when it is not whole."""
        try:
            return content_of(self.path(name))
        except FileNotFoundError:
            return None

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
                return size
            os.ftruncate(part.fileno(), offset)
            os.fchmod(part.fileno(), _OPEN_MODE)
            return offset

    def append(self, name: str, chunk: bytes, *, at: int, last: bool = False) -> bool:
        """Add bytes to a part that ends `at`; False when it ends elsewhere: somebody else goes on with it.

        `last` says that the file is complete with them. OSError: no room; nothing was added.
        """
        try:
            with self._locked_part(name, create=False) as part:
                if part.seek(0, os.SEEK_END) != at:
                    return False
                if last:
                    os.fchmod(part.fileno(), _CLOSING_MODE)
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
                os.fsync(part.fileno())
        except FileNotFoundError:
            return  # it has become whole, or was wrong and is gone

    def finish(self, name: str, *, nbytes: int, md5: str) -> Finish:
        """Turn a part that holds all of its bytes into the whole file, on disk when this returns."""
        path, part_path = self.path(name), self._part(name)
        try:
            with self._locked_part(name, create=False) as part:
                if os.fstat(part.fileno()).st_size != nbytes:
                    return Finish.TOO_SHORT
                part.seek(0)
                if md5_of(part) != md5:
                    part_path.unlink()
                    return Finish.WRONG_MD5
                if path.exists():
                    part_path.unlink()
                else:
                    os.fchmod(part.fileno(), _OPEN_MODE)
                    os.fsync(part.fileno())
                    part_path.rename(path)
                    sync_folder(path.parent)
        except FileNotFoundError:
            pass  # another connection with the same upload was faster: see what it left
        found = self.whole(name)
        if found is None:
            return Finish.TOO_SHORT
        return Finish.WHOLE if found == Content(nbytes, md5) else Finish.OTHER_CONTENT

    def is_recorded(self, name: str) -> bool:
        """Whether the database knows that the file is whole."""
        try:
            return not self.path(name).stat().st_mode & stat.S_IWUSR
        except FileNotFoundError:
            return False

    def mark_recorded(self, name: str) -> None:
        """Remember beside the file that the database knows of it."""
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
        """Make a whole file a part again; False when it is not there, is recorded, or has a part beside it."""
        with self._locked_part(name, create=True) as part:
            if os.fstat(part.fileno()).st_size:
                return False
            if self.is_recorded(name) or not self.path(name).exists():
                self._part(name).unlink()
                return False
            self.path(name).chmod(_CLOSING_MODE)
            self.path(name).rename(self._part(name))
            return True

    def put_back(self, name: str) -> None:
        """Undo `set_aside`: the database knows of the file."""
        with suppress(FileNotFoundError), self._locked_part(name, create=False) as part:  # not there: brought anew
            if self.path(name).exists():
                self._part(name).unlink()
                return
            os.fchmod(part.fileno(), _OPEN_MODE)
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


def _write_all(file: FileIO, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]
