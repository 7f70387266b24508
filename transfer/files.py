"""Files on disk: where a name is stored (always inside its folder), written whole or not at all; a folder's identity.

All nodes that share a folder read the same identity from it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from domain.errors import InvalidInputError
from domain.jobs import instance_id_of
from domain.units import InstanceId
from wire.uploads import valid_file_name

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


MAX_STORED_NAME_BYTES = 240  # leaves room for a suffix within the 255 bytes a file system gives

_OUTPUT = re.compile(r"(?P<instance>.+)_r[0-9]{1,4}")


def shard(name: str) -> str:
    """The sub-folder of a name, one of 256: the first two hex digits of the MD5 of its UTF-8 form.

    >>> shard("pi_1.00_x86_64")
    '7f'
    """
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:2]


def checked_name(name: str) -> str:
    """The name, if it can be stored. Raises InvalidInputError.

    >>> checked_name("pi_3_41_77_r0")
    'pi_3_41_77_r0'
    """
    if not valid_file_name(name) or len(name.encode()) > MAX_STORED_NAME_BYTES:
        expected = f"at most {MAX_STORED_NAME_BYTES} bytes without / \\ % < > & or .., no leading dot"
        raise InvalidInputError("file name", expected, name)
    return name


def stored_path(folder: Path, name: str) -> Path:
    """FOLDER/ab/NAME. Raises InvalidInputError when the name is unsafe or a link leads out of the folder."""
    path = folder / shard(checked_name(name)) / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidInputError("file name", f"a file inside {folder}", name)
    return path


@dataclass(frozen=True, slots=True)
class OutputName:
    """An output file's name, and the instance it belongs to."""

    name: str
    instance_id: InstanceId


def parse_output_name(name: str) -> OutputName | None:
    """The output a name stands for; None for names no output has.

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
    """A word drawn when it was asked first, and kept in the folder. Calls block.

    Where nothing can be written the folder is taken for the node's own.

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
        structlog.get_logger("transfer.files").warning("folder without a mark", path=str(path), error=str(error))
        return f"{platform.node()}:{folder}"


def mark_of(folder: Path) -> str | None:
    """The word that is kept in a folder; None where none was drawn, or it cannot be read. It changes nothing."""
    try:
        return _read(folder / NAME)
    except (OSError, UnicodeDecodeError):
        return None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES).decode("ascii").strip()


def _draw(path: Path) -> None:
    """Write one, unless somebody was faster; whole or not at all."""
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
