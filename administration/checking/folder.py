"""What lies in the upload folder? Read by the rules of its layout, not by the code that writes there. Calls block.

    ab/NAME        a whole file; read-only once the database knows of it
    ab/NAME.part   what has arrived of one

`ab` are the first two hex digits of the MD5 of NAME, which ends in _INSTANCE_rNUMBER.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.units import InstanceId, Instant

PART = ".part"
CHUNK_BYTES = 1024 * 1024
_OUTPUT = re.compile(r".+_(?P<instance>[0-9]{1,18})_r[0-9]{1,4}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """One file of the folder. `instance_id` None: no output has such a name."""

    place: str  # below the folder
    name: str  # of the output it is or becomes
    instance_id: InstanceId | None
    whole: bool
    nbytes: int
    recorded: bool  # it says itself that the database knows of it
    changed_at: Instant

    @property
    def in_place(self) -> bool:
        return self.place.split("/")[:-1] == [shard_of(self.name)]


def shard_of(name: str) -> str:
    """The sub-folder a file belongs in.

    >>> shard_of("pi_1.00_x86_64")
    '7f'
    """
    return hashlib.md5(name.encode(errors="surrogateescape"), usedforsecurity=False).hexdigest()[:2]


def found_file(place: str, status: os.stat_result) -> FoundFile:
    """What a file's place and status say of it."""
    name = place.rpartition("/")[2]
    whole = not name.endswith(PART)
    name = name.removesuffix(PART)
    match = _OUTPUT.fullmatch(name)
    instance_id = None if match is None else InstanceId(int(match["instance"]))
    recorded = whole and not status.st_mode & stat.S_IWUSR
    return FoundFile(place, name, instance_id, whole, status.st_size, recorded, Instant(status.st_mtime))


def files_in(folder: Path) -> Iterator[FoundFile]:
    """Every file below the folder, in no order; those that go away meanwhile may be left out."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            entries = os.scandir(folder / below)
        except FileNotFoundError:
            continue
        with entries:
            for entry in entries:
                place = f"{below}/{entry.name}" if below else entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(place)
                    continue
                try:
                    yield found_file(place, entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue


def size_of(folder: Path, name: str) -> int | None:
    """Bytes of a whole file; None when it is not there."""
    try:
        found = (folder / shard_of(name) / name).stat()
    except FileNotFoundError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def md5_of(folder: Path, name: str) -> str | None:
    """The MD5 of a whole file's bytes; None when it is not there."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with (folder / shard_of(name) / name).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()
