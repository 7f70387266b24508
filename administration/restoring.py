"""Makes a restored database consistent with the upload directory, before the project serves clients again.

A restored database is older than the state of clients and of the upload directory. Ids assigned after the backup would
be assigned again, and files of lost instances would block new ones. So every id sequence is advanced, unsent instances
get new ids (clients may have received the old ones), and files without a row are moved aside. A complete file of an
instance in progress is recorded: its host uploaded it after the backup and may report it without uploading it again.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from administration.checking.files import PAGE, FoundFile, files_in, md5_of
from domain.checking import KnownFile, NewIds
from domain.clock import Clock
from domain.formatting import size_in_words
from lifecycle.states import ACCEPTS_OUTPUTS
from store.checking import PostgresRestoring
from transfer.bucket import BucketStore
from transfer.file_store import Area
from transfer.files import Content, OutputName, parse_output_name, sync_folder
from transfer.ports import UploadRecords

ID_STEP = 1_000_000_000  # more than the number of instances, jobs or batches created since the backup
GREATEST_ID = 10**15  # larger numbers in file names are not ids of this project


@dataclass(slots=True)
class Restored:
    """The outcome. `kept` are recorded files, and parts of instances in progress."""

    new_ids: NewIds = field(default_factory=lambda: NewIds(0, 0))
    kept: int = 0
    recorded: int = 0
    set_aside: int = 0
    set_aside_bytes: int = 0
    folder: str = ""  # that files were moved to; empty if none were

    def as_json(self) -> dict[str, object]:
        """Return the outcome as one JSON object."""
        return asdict(self)

    def text(self) -> str:
        """Return one line about ids and one about files."""
        where = f" in {self.folder}" if self.folder else ""
        ids = (
            f"{self.new_ids.sequences} id sequences moved forward, {self.new_ids.instances} unsent instances renumbered"
        )
        size = size_in_words(self.set_aside_bytes)
        files = f"{self.kept} files kept, {self.recorded} recorded, {self.set_aside} ({size}) set aside{where}"
        return f"{ids}\n{files}"


async def restore(
    database: PostgresRestoring,
    uploads: UploadRecords,
    folder: Path,
    aside: Path,
    clock: Clock,
    buckets: Sequence[BucketStore] = (),
) -> Restored:
    """Advance ids, then move files without a row to `aside`. No process may be serving. Can be repeated safely.

    Objects of a bucket without a row stay: they are in no file's way, and the cleanup deletes them.
    """
    made = Restored()
    greatest = await asyncio.to_thread(_greatest_id, folder)
    for bucket in buckets:
        async for outputs in _outputs_in(bucket):
            greatest = max([greatest, *(one.instance_id for one, _ in outputs if one.instance_id <= GREATEST_ID)])
    made.new_ids = await database.renumber(beyond=greatest, step=ID_STEP)
    files = files_in(folder)
    while page := await asyncio.to_thread(lambda: list(islice(files, PAGE))):
        named = [(file.name, file.instance_id) for file in page if file.instance_id is not None]
        known = {one.name: one for one in await database.known(named)}
        for file in page:
            await _sort(file, known.get(file.name), made, uploads, folder, aside, clock)
    for bucket in buckets:
        async for outputs in _outputs_in(bucket):
            rows = await database.known([(one.name, one.instance_id) for one, _ in outputs])
            await _record_objects(outputs, {one.name: one for one in rows}, made, uploads, clock)
    return made


async def _outputs_in(bucket: BucketStore) -> AsyncIterator[Sequence[tuple[OutputName, Content]]]:
    """Yield the outputs of a bucket with size and MD5, in pages."""
    async for page in bucket.listed(Area.UPLOAD):
        yield [
            (output, Content(one.stat.nbytes, one.key.md5))
            for one in page
            if one.key is not None and (output := parse_output_name(one.key.name)) is not None
        ]


async def _record_objects(
    outputs: Sequence[tuple[OutputName, Content]],
    known: Mapping[str, KnownFile],
    made: Restored,
    uploads: UploadRecords,
    clock: Clock,
) -> None:
    for output, content in outputs:
        row = known.get(output.name)
        if row is not None and row.md5 is None and row.state in ACCEPTS_OUTPUTS:
            made.recorded += await uploads.record_upload(
                output.instance_id, name=output.name, nbytes=content.nbytes, md5=content.md5, completed_at=clock.now()
            )
        else:
            made.kept += row is not None and row.md5 == content.md5


def _greatest_id(folder: Path) -> int:
    ids = (file.instance_id for file in files_in(folder) if file.instance_id is not None)
    return max((one for one in ids if one <= GREATEST_ID), default=0)


async def _sort(
    file: FoundFile,
    known: KnownFile | None,
    made: Restored,
    uploads: UploadRecords,
    folder: Path,
    aside: Path,
    clock: Clock,
) -> None:
    """Keep, record or move aside one file."""
    if file.in_place and file.instance_id is not None and known is not None:
        accepted = known.state in ACCEPTS_OUTPUTS
        if file.whole and known.nbytes is None and accepted:
            md5 = await asyncio.to_thread(md5_of, folder, file.name)
            if md5 is not None and await uploads.record_upload(
                file.instance_id, name=file.name, nbytes=file.nbytes, md5=md5, completed_at=clock.now()
            ):
                made.recorded += 1
                return
        elif (accepted and not file.whole) or (file.whole and known.nbytes == file.nbytes):
            made.kept += 1
            return
    await asyncio.to_thread(_set_aside, folder / file.place, aside / file.place)
    made.set_aside += 1
    made.set_aside_bytes += file.nbytes
    made.folder = str(aside)


def _set_aside(source: Path, target: Path) -> None:
    """Move a file, possibly to another file system."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)
    sync_folder(target.parent)
