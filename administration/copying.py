"""Copies the complete files of a project to the store for new ones, while the project serves.

Outputs are those the database has on record, and each copy has the recorded size and MD5. Files for downloads are those
that the other stores list. A file is deleted from an old store only if the new one had it before the call: every lookup
since then found it there, so no process is still reading the old one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from domain.checking import Wrong
from domain.dispatch import Upload
from domain.errors import AlreadyExistsError, ConflictError
from domain.formatting import size_in_words
from store.checking import CheckingSession
from transfer.file_store import Area, FileStat, FileStore
from transfer.files import Content, content_of
from transfer.project_files import Found, ProjectFiles, output_key

PAGE = 1_000  # outputs per database query
AT_ONCE = 4  # parallel copies
MOST_NAMED = 100  # files that are listed as missing or different

Progress = Callable[[int, int], None]  # files looked at so far; the total is not known


@dataclass(slots=True)
class Copied:
    """The outcome. `present`: files that the new store had already; `wrong`: the first files that were not copied."""

    to: str
    copied: int = 0
    copied_bytes: int = 0
    present: int = 0
    deleted: int = 0
    wrong_files: int = 0
    wrong: list[Wrong] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def text(self) -> str:
        """Return a line per missing or different file, and one with the totals."""
        size = size_in_words(self.copied_bytes)
        line = (
            f"{self.copied} files ({size}) copied to {self.to}, {self.present} already there, "
            f"{self.deleted} deleted from the old store, {self.wrong_files} missing or different"
        )
        return "\n".join([*map(str, self.wrong), line])

    def note(self, name: str, because: str) -> None:
        """Count a file that was not copied."""
        self.wrong_files += 1
        if len(self.wrong) < MOST_NAMED:
            self.wrong.append(Wrong(f"file {name}", because))


async def copy_all(database: CheckingSession, files: ProjectFiles, *, delete: bool, progress: Progress) -> Copied:
    """Copy what the new store lacks. Safe to repeat. Raises ConflictError, UnavailableError, OSError."""
    target, *sources = files.stores
    if not sources:
        raise ConflictError("only the folder is in use: set storage.url or storage.read_url to a bucket first")
    done = Copied(target.place)
    async for page in database.outputs(limit=PAGE):
        uploads = [Upload(one.name, one.nbytes, one.md5) for one in page]
        await _outputs(files, target, sources, uploads, done, delete=delete)
        progress(done.copied + done.present, 0)
    for source in sources:
        async for listed in source.listed(Area.DOWNLOAD):
            for one in listed:
                if one.key is not None:
                    await _download(files, target, Found(source, one.key, one.stat), done, delete=delete)
            progress(done.copied + done.present, 0)
    return done


async def _outputs(
    files: ProjectFiles,
    target: FileStore,
    sources: Sequence[FileStore],
    uploads: Sequence[Upload],
    done: Copied,
    *,
    delete: bool,
) -> None:
    has = _having(uploads, await target.stats([output_key(one) for one in uploads]))
    done.present += len(has)
    if delete:
        for source in sources:
            old = _having(has, await source.stats([output_key(one) for one in has]))
            await source.delete([output_key(one) for one in old])
            done.deleted += len(old)
    there = {one.name for one in has}
    lacking = [one for one in uploads if one.name not in there]
    slots = asyncio.Semaphore(AT_ONCE)

    async def copied(upload: Upload, found: Found | None) -> None:
        async with slots:
            if found is None:
                done.note(upload.name, f"its file ({upload.nbytes} bytes) is in no store of the project")
            else:
                await _copy(files, target, found, Content(upload.nbytes, upload.md5), done)

    try:
        async with asyncio.TaskGroup() as group:
            for upload, found in zip(lacking, await files.outputs(lacking), strict=True):
                group.create_task(copied(upload, found))
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


def _having(uploads: Sequence[Upload], stats: Sequence[FileStat | None]) -> list[Upload]:
    return [one for one, stat in zip(uploads, stats, strict=True) if stat is not None and stat.nbytes == one.nbytes]


async def _download(files: ProjectFiles, target: FileStore, found: Found, done: Copied, *, delete: bool) -> None:
    there, content = await target.content(found.key), await found.store.content(found.key)
    if there is None:
        await _copy(files, target, found, content, done)
    elif there != content:
        done.note(found.key.name, f"its content differs between {found.store.place} and {target.place}")
    else:
        done.present += 1
        if delete:
            await found.store.delete([found.key])
            done.deleted += 1


async def _copy(files: ProjectFiles, target: FileStore, found: Found, content: Content | None, done: Copied) -> None:
    """Copy one file if it has the expected content."""
    try:
        async with files.local([found]) as [path]:
            has = await asyncio.to_thread(content_of, path)
            if has != content:
                done.note(found.key.name, f"it has {has.nbytes} bytes with MD5 {has.md5} in {found.store.place}")
                return
            with path.open("rb") as file:
                await target.put(file, found.key, has)
    except (FileNotFoundError, AlreadyExistsError) as error:
        done.note(found.key.name, str(error))
        return
    done.copied += 1
    done.copied_bytes += has.nbytes
