"""Does every recorded output lie in the upload folder, and does every file there belong to somebody?

A running project goes on meanwhile: what looks wrong is looked at once more, and counts when it still does.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from administration.checking.folder import FoundFile, files_in, md5_of, size_of
from administration.checking.ports import CheckedDatabase
from domain.checking import KnownFile, StoredOutput, Wrong
from domain.units import DAY_S, InstanceId, Instant

PAGE = 1_000  # files between two questions to the database
NEVER = Instant(-math.inf)
DELETED_WITHIN_S = 2 * DAY_S  # the background process looks at the whole folder once a day
MOST_NAMED = 10  # files of a kind that are named
UNDER_WAY = "in_progress"
EXPECTED = {"in_progress", "timed_out", "aborted"}  # its host may still bring the rest


@dataclass(slots=True)
class FileCounts:
    """What there was. `unfinished`: parts, and whole files not recorded; `abandoned`: those no host will go on with.

    `unacknowledged`: unfinished ones whose host reported success all the same; the places of the first MOST_NAMED.
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
    database: CheckedDatabase, folder: Path, counts: FileCounts, *, contents: bool
) -> AsyncIterator[Wrong]:
    """Recorded outputs that are not there, or not as they were; `contents`: their bytes are read too."""
    async for page in database.outputs(limit=PAGE):
        counts.outputs += len(page)
        doubtful = await asyncio.to_thread(_differ, folder, page, contents=contents)
        if not doubtful:
            continue
        known = await _known(database, [(output.name, output.instance_id) for output, _ in doubtful])
        for output, because in doubtful:
            still = known.get(output.name)
            if still is not None and still.nbytes is not None:  # else it was purged meanwhile
                yield Wrong(f"output {output.name}", because)


def _differ(folder: Path, outputs: Sequence[StoredOutput], *, contents: bool) -> list[tuple[StoredOutput, str]]:
    said = ((output, _difference(folder, output, contents=contents)) for output in outputs)
    return [(output, because) for output, because in said if because]


def _difference(folder: Path, output: StoredOutput, *, contents: bool) -> str:
    """Why the file is not what was recorded; empty when it is."""
    nbytes = size_of(folder, output.name)
    if nbytes is None:
        return f"its file of {output.nbytes} bytes is not in the upload folder"
    if nbytes != output.nbytes:
        return f"its file has {nbytes} bytes, recorded were {output.nbytes}"
    if contents and (md5 := md5_of(folder, output.name)) != output.md5:
        return f"its file has the MD5 {md5}, recorded was {output.md5}"
    return ""


async def stray_files(
    database: CheckedDatabase, folder: Path, counts: FileCounts, *, deleted_before: Instant = NEVER
) -> AsyncIterator[Wrong]:
    """Files that nobody knows of, or that lie where nobody looks for them.

    What was begun, and that nobody went on with since `deleted_before`, should have been deleted.
    """
    files = files_in(folder)
    while page := await asyncio.to_thread(_page, files):
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


def _page(files: Iterator[FoundFile]) -> list[FoundFile]:
    return list(islice(files, PAGE))


def _stray(file: FoundFile, known: KnownFile | None, deleted_before: Instant) -> str:
    """Why the file should not be there; empty when it may."""
    if file.instance_id is None:
        return "no output has such a name"
    if not file.in_place:
        return "it lies in the wrong folder"
    if known is None or known.state is None:
        return f"there is no instance {file.instance_id}"
    if file.recorded and known.nbytes is None:
        return "it was recorded, and the database does not know of it"
    if known.nbytes is None and known.state != UNDER_WAY and file.changed_at < deleted_before:
        return "nobody has gone on with it for so long that it should have been deleted"
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
    if known.state not in EXPECTED:
        counts.abandoned += 1
        counts.abandoned_bytes += file.nbytes


async def _known(database: CheckedDatabase, files: Sequence[tuple[str, InstanceId]]) -> dict[str, KnownFile]:
    return {one.name: one for one in await database.known(files)}


async def _known_of(database: CheckedDatabase, files: Sequence[FoundFile]) -> dict[str, KnownFile]:
    named = [(file.name, file.instance_id) for file in files if file.instance_id is not None]
    return {one.name: one for one in await database.known(named)} if named else {}
