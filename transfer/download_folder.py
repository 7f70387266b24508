"""Which files clients can fetch: put in once, never changed.

A name is a file's identity for every client for ever, so equal content may be registered again and other
content never. Calls block; run them in a thread from async code.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from domain.errors import AlreadyExistsError, InvalidInputError
from domain.formatting import size_in_words
from transfer.files import CHUNK_BYTES, make_folder, md5_of, open_new, sync, sync_folder, temporary_beside
from transfer.names import stored_path


class Content(NamedTuple):
    """What a file holds, as clients check it."""

    nbytes: int
    md5: str


class DownloadFolder:
    """The folder downloads are served from; `max_bytes` is the largest file taken."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def path(self, name: str) -> Path:
        """Where the file of that name is or would be. Raises InvalidInputError for unsafe names."""
        return stored_path(self._folder, name)

    def register_file(self, source: Path | bytes, name: str) -> Content:
        """Copy a file in under `name`; whole and on disk when this returns. Idempotent for equal content.

        Raises AlreadyExistsError when the name stands for other content, InvalidInputError for an unsafe
        name, a source that is no file, or one that is too large.
        """
        path = self.path(name)
        make_folder(path.parent)
        temporary = temporary_beside(path)
        try:
            content = self._copy(source, temporary, name)
            with suppress(FileExistsError):
                os.link(temporary, path)  # unlike a rename, never replaces what is there
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
        if content_of(path) != content:
            raise AlreadyExistsError("file", name)
        return content

    def _copy(self, source: Path | bytes, target: Path, name: str) -> Content:
        digest = hashlib.md5(usedforsecurity=False)
        nbytes = 0
        with open_new(target, mode=0o644) as file:
            for chunk in _chunks(source):
                nbytes += len(chunk)
                if nbytes > self._max_bytes:
                    raise InvalidInputError(name, f"a file of at most {size_in_words(self._max_bytes)}", "a larger one")
                digest.update(chunk)
                file.write(chunk)
            sync(file)
        return Content(nbytes, digest.hexdigest())


def content_of(path: Path) -> Content:
    """The size and MD5 of a file on disk."""
    with path.open("rb") as file:
        return Content(os.fstat(file.fileno()).st_size, md5_of(file))


def _chunks(source: Path | bytes) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    if not source.is_file():
        raise InvalidInputError(str(source), "a readable file", "none")
    with source.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
