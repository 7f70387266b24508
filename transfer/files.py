"""How a file gets to disk so that a crash leaves the whole of it or nothing."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 1024 * 1024


def write_atomically(path: Path, content: bytes, *, mode: int) -> None:
    """Put `content` at `path` with permission `mode`; whoever looks sees the old file or the new one."""
    temporary = temporary_beside(path)
    try:
        with open_new(temporary, mode=mode) as file:
            file.write(content)
            sync(file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def temporary_beside(path: Path) -> Path:
    """A free name in the same folder that no stored file can have: it begins with a dot."""
    return path.with_name(f".{secrets.token_hex(8)}.new")


def open_new(path: Path, *, mode: int) -> BinaryIO:
    """Open a file that does not exist yet for writing, with exactly this permission from the start."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "wb")


def sync(file: BinaryIO) -> None:
    """Wait until the bytes written are on disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the folder's names are on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder whose name survives a crash."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)


def md5_of(file: BinaryIO) -> str:
    """The MD5 of what follows in an open file, as 32 lower-case hex digits."""
    digest = hashlib.md5(usedforsecurity=False)
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()
