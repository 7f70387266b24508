"""Which folder is this? The same for all nodes that share it, another one for each that has its own."""

from __future__ import annotations

import os
import platform
import secrets
from pathlib import Path

import structlog

from transfer.files import open_new, sync, sync_folder, temporary_beside

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
        structlog.get_logger("transfer.identity").warning("folder without a mark", path=str(path), error=str(error))
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
