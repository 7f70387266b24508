"""Files on disk: paths for names (always inside their directory), atomic writes, and a directory's identity.

All nodes that share a directory read the same identity from it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import structlog

from domain.errors import InvalidInputError
from domain.jobs import instance_id_of
from domain.units import InstanceId
from wire.uploads import valid_file_name

CHUNK_BYTES = 1024 * 1024


def write_atomically(path: Path, content: bytes, *, mode: int) -> None:
    """Write `content` to `path` with permissions `mode`. Readers see either the old or the new file."""
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
    """Return a free name in the same directory. It begins with a dot, so that no stored file can have it."""
    return path.with_name(f".{secrets.token_hex(8)}.new")


def open_new(path: Path, *, mode: int) -> BinaryIO:
    """Create a file for writing, with exactly these permissions from the start."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "wb")


def sync(file: BinaryIO) -> None:
    """Flush the written bytes to disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the directory's entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a directory whose entry survives a crash."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)


class Content(NamedTuple):
    """A file's size and MD5, as clients check them."""

    nbytes: int
    md5: str


def content_of(path: Path) -> Content:
    """Return the size and MD5 of a file on disk."""
    with path.open("rb") as file:
        return Content(os.fstat(file.fileno()).st_size, md5_of(file))


def md5_of(file: BinaryIO) -> str:
    """Return the MD5 of the rest of an open file as 32 lower-case hex digits."""
    digest = hashlib.md5(usedforsecurity=False)
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


MAX_STORED_NAME_BYTES = 240  # leaves room for a suffix within a file system's limit of 255 bytes

_OUTPUT = re.compile(r"(?P<instance>.+)_r[0-9]{1,4}")


def shard(name: str) -> str:
    """Return a name's subdirectory, one of 256: the first two hex digits of the MD5 of its UTF-8 form.

    >>> shard("pi_1.00_x86_64")
    '7f'
    """
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:2]


def checked_name(name: str) -> str:
    """Return the name if it can be stored. Raises InvalidInputError.

    >>> checked_name("pi_3_41_77_r0")
    'pi_3_41_77_r0'
    """
    if not valid_file_name(name) or len(name.encode()) > MAX_STORED_NAME_BYTES:
        expected = f"at most {MAX_STORED_NAME_BYTES} bytes without / \\ % < > & or .., and without a leading dot"
        raise InvalidInputError("file name", expected, name)
    return name


def stored_path(folder: Path, name: str) -> Path:
    """Return FOLDER/ab/NAME. Raises InvalidInputError if the name is unsafe or a link leads out of the directory."""
    path = folder / shard(checked_name(name)) / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidInputError("file name", f"a file inside {folder}", name)
    return path


@dataclass(frozen=True, slots=True)
class OutputName:
    """An output file's name and its instance."""

    name: str
    instance_id: InstanceId


def parse_output_name(name: str) -> OutputName | None:
    """Parse an output file name. Return None if the name is not that of an output.

    >>> parse_output_name("pi_3_41_77_r0")
    OutputName(name='pi_3_41_77_r0', instance_id=77)
    >>> parse_output_name("../pi_3_41_77_r0")
    """
    match = _OUTPUT.fullmatch(name)
    if match is None or not valid_file_name(name) or len(name.encode()) > MAX_STORED_NAME_BYTES:
        return None
    instance_id = instance_id_of(match["instance"])
    return None if instance_id is None else OutputName(name, instance_id)


NAME = ".identity"
_MOST_BYTES = 64


def identity_of(folder: Path) -> str:
    """Return the directory's identity, a random word that the first call creates and stores there. Blocks.

    A directory that is not writable is assumed to be local to this node.

    >>> import tempfile
    >>> here, there = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    >>> identity_of(here) == identity_of(here), identity_of(here) == identity_of(there)
    (True, False)
    """
    path = folder / NAME
    try:
        if not path.exists():
            _draw(path)
        return _read(path)
    except (OSError, UnicodeDecodeError) as error:
        structlog.get_logger("transfer.files").warning(
            "folder identity not available", path=str(path), error=str(error)
        )
        return f"{platform.node()}:{folder}"


def mark_of(folder: Path) -> str | None:
    """Return the directory's identity; None if it has none or it cannot be read. Writes nothing."""
    try:
        return _read(folder / NAME)
    except (OSError, UnicodeDecodeError):
        return None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES).decode("ascii").strip()


def _draw(path: Path) -> None:
    """Create the identity atomically, unless another process has already created it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(path)
    try:
        with open_new(temporary, mode=0o644) as file:
            file.write(secrets.token_hex(8).encode())
            sync(file)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
