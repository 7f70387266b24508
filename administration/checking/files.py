"""Checks the upload directory and buckets: every recorded output exists, and every file belongs to an instance.

It reads the directory by its documented layout, not through the code that writes it: AB/NAME, where AB are the first
two hex digits of the MD5 of NAME, which ends in _INSTANCE_rNUMBER. A recorded output may be there or in a bucket. The
project keeps running during the check, so every finding is verified a second time before it counts.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from domain.checking import KnownFile, StoredOutput, Wrong
from domain.jobs import InstanceState
from domain.units import DAY_S, InstanceId, Instant
from lifecycle.states import OUTPUTS_MAY_COME
from store.checking import CheckingSession
from transfer.bucket import BucketStore
from transfer.file_store import Area, FileKey, StoredFile
from transfer.project_files import is_needless

PART = ".part"
CHUNK_BYTES = 1024 * 1024
_OUTPUT = re.compile(r".+_(?P<instance>[0-9]{1,18})_r[0-9]{1,4}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file in the upload directory. With `instance_id` None, no output has its name."""

    place: str  # relative to the upload directory
    name: str  # name of the output, without .part
    instance_id: InstanceId | None
    whole: bool
    nbytes: int
    recorded: bool  # the file is read-only, as the upload handler marks recorded files
    changed_at: Instant

    @property
    def in_place(self) -> bool:
        return self.place.split("/")[:-1] == [shard_of(self.name)]


def shard_of(name: str) -> str:
    """Return the subdirectory that a file belongs in.

    >>> shard_of("pi_1.00_x86_64")
    '7f'
    """
    return hashlib.md5(name.encode(errors="surrogateescape"), usedforsecurity=False).hexdigest()[:2]


def found_file(place: str, status: os.stat_result) -> FoundFile:
    """Return the information that a file's path and status contain."""
    name = place.rpartition("/")[2]
    whole = not name.endswith(PART)
    name = name.removesuffix(PART)
    match = _OUTPUT.fullmatch(name)
    instance_id = None if match is None else InstanceId(int(match["instance"]))
    recorded = whole and not status.st_mode & stat.S_IWUSR
    return FoundFile(place, name, instance_id, whole, status.st_size, recorded, Instant(status.st_mtime))


def files_in(folder: Path) -> Iterator[FoundFile]:
    """Yield all files below the directory, in no particular order. Files deleted during the scan may be missing."""
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
    """Return the size in bytes of a complete file, or None if it does not exist."""
    try:
        found = (folder / shard_of(name) / name).stat()
    except FileNotFoundError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def md5_of(folder: Path, name: str) -> str | None:
    """Return the MD5 of a complete file, or None if it does not exist."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with (folder / shard_of(name) / name).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


PAGE = 1_000  # files per database query
NEVER = Instant(-math.inf)
DELETED_WITHIN_S = 2 * DAY_S  # the background process cleans the whole directory once a day
MOST_NAMED = 10  # maximum number of files listed per kind


@dataclass(slots=True)
class FileCounts:
    """File counts of the check. `unfinished` files are parts and complete but unrecorded files; `abandoned` are
    unfinished files that no host will continue.

    `unacknowledged` are unfinished files whose host reported success; the first MOST_NAMED paths are listed.
    """

    outputs: int = 0
    files: int = 0
    file_bytes: int = 0
    unfinished: int = 0
    abandoned: int = 0
    abandoned_bytes: int = 0
    unacknowledged: int = 0
    unacknowledged_places: list[str] = field(default_factory=list)


async def missing_files(
    database: CheckingSession,
    folder: Path,
    counts: FileCounts,
    *,
    contents: bool,
    buckets: Sequence[BucketStore] = (),
) -> AsyncIterator[Wrong]:
    """Yield recorded outputs that are missing or differ from their record; `contents`: also compare the MD5."""
    async for page in database.outputs(limit=PAGE):
        counts.outputs += len(page)
        doubtful = await asyncio.to_thread(_differ, folder, page, contents=contents)
        for bucket in buckets:
            doubtful = [one for one in doubtful if not await _is_in(bucket, one[0], contents=contents)]
        if doubtful and buckets:  # they may have moved to the folder meanwhile
            doubtful = await asyncio.to_thread(_differ, folder, [output for output, _ in doubtful], contents=contents)
        if not doubtful:
            continue
        named = [(output.name, output.instance_id) for output, _ in doubtful]
        known = {one.name: one for one in await database.known(named)}
        for output, because in doubtful:
            still = known.get(output.name)
            if still is not None and still.nbytes is not None:  # otherwise it was purged during the check
                yield Wrong(f"output {output.name}", because)


def _differ(folder: Path, outputs: Sequence[StoredOutput], *, contents: bool) -> list[tuple[StoredOutput, str]]:
    differences = ((output, _difference(folder, output, contents=contents)) for output in outputs)
    return [(output, because) for output, because in differences if because]


async def _is_in(bucket: BucketStore, output: StoredOutput, *, contents: bool) -> bool:
    key = FileKey(Area.UPLOAD, output.name, output.md5)
    [stat] = await bucket.stats([key])
    if stat is None or stat.nbytes != output.nbytes:
        return False
    return not contents or await bucket.md5(key, stat.nbytes) == output.md5


def _difference(folder: Path, output: StoredOutput, *, contents: bool) -> str:
    """Return how the file differs from its record, empty if it does not differ."""
    nbytes = size_of(folder, output.name)
    if nbytes is None:
        return f"its file ({output.nbytes} bytes) is in no store of the project"
    if nbytes != output.nbytes:
        return f"its file has {nbytes} bytes; {output.nbytes} were recorded"
    if contents and (md5 := md5_of(folder, output.name)) != output.md5:
        return f"its file has MD5 {md5}; {output.md5} was recorded"
    return ""


async def stray_files(
    database: CheckingSession, folder: Path, counts: FileCounts, *, deleted_before: Instant = NEVER
) -> AsyncIterator[Wrong]:
    """Yield files without a record or in the wrong place.

    Unfinished files not modified since `deleted_before` should have been deleted.
    """
    files = files_in(folder)
    while page := await asyncio.to_thread(lambda: list(islice(files, PAGE))):
        known = await _known_of(database, page)
        doubtful = []
        for file in page:
            _count(file, known.get(file.name), counts)
            if _stray(file, known.get(file.name), deleted_before):
                doubtful.append(file)
        if not doubtful:
            continue
        known = await _known_of(database, doubtful)
        there = await asyncio.to_thread(lambda those: {f.place for f in those if (folder / f.place).exists()}, doubtful)
        for file in doubtful:
            because = _stray(file, known.get(file.name), deleted_before)
            if because and file.place in there:
                yield Wrong(f"file {file.place}", because)


async def stray_objects(
    database: CheckingSession, bucket: BucketStore, counts: FileCounts, *, deleted_before: Instant = NEVER
) -> AsyncIterator[Wrong]:
    """Yield objects in the upload area that are not outputs, or that the cleanup should have deleted."""
    async for page in bucket.listed(Area.UPLOAD):
        files = [_found_object(one) for one in page]
        known = await _known_of(database, files)
        for one, file in zip(page, files, strict=True):
            record = _record_of(one, known.get(file.name))
            _count(file, record, counts)
            if one.key is None or file.instance_id is None:
                yield Wrong(f"object {one.place}", "no output has such a name")
            elif file.changed_at < deleted_before and is_needless(one.key.md5, known.get(file.name)):
                yield Wrong(f"object {one.place}", "not recorded, and the cleanup should have deleted it")


def _found_object(one: StoredFile) -> FoundFile:
    name = "" if one.key is None else one.key.name
    match = _OUTPUT.fullmatch(name)
    instance_id = None if match is None else InstanceId(int(match["instance"]))
    return FoundFile(one.place, name, instance_id, True, one.stat.nbytes, False, one.stat.modified_at)


def _record_of(one: StoredFile, known: KnownFile | None) -> KnownFile | None:
    """Return the record of this content; a record of other content is that of another object."""
    if known is None or one.key is None or known.md5 == one.key.md5:
        return known
    return replace(known, nbytes=None, md5=None)


def _stray(file: FoundFile, known: KnownFile | None, deleted_before: Instant) -> str:
    """Return why the file should not exist, empty if it may."""
    if file.instance_id is None:
        return "no output has this name"
    if not file.in_place:
        return "it is in the wrong directory"
    if known is None or known.state is None:
        return f"there is no instance {file.instance_id}"
    if file.recorded and known.nbytes is None:
        return "it was recorded, but the database has no record of it"
    if known.nbytes is None and known.state != InstanceState.IN_PROGRESS and file.changed_at < deleted_before:
        return "abandoned: no host will continue it, and the cleanup should have deleted it"
    return ""


def _count(file: FoundFile, known: KnownFile | None, counts: FileCounts) -> None:
    counts.files += 1
    counts.file_bytes += file.nbytes
    if known is None or known.state is None or (file.whole and known.nbytes is not None):
        return
    counts.unfinished += 1
    if known.reported_success and known.nbytes is None:
        counts.unacknowledged += 1
        if len(counts.unacknowledged_places) < MOST_NAMED:
            counts.unacknowledged_places.append(file.place)
    if known.state not in OUTPUTS_MAY_COME:
        counts.abandoned += 1
        counts.abandoned_bytes += file.nbytes


async def _known_of(database: CheckingSession, files: Sequence[FoundFile]) -> dict[str, KnownFile]:
    named = [(file.name, file.instance_id) for file in files if file.instance_id is not None]
    return {one.name: one for one in await database.known(named)} if named else {}
