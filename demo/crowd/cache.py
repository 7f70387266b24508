"""Files a crowd has fetched, checked as a client checks them: app files by signature, inputs by MD5.

Hosts of one crowd share the folder, as they share the machine; each file is fetched once.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import aiohttp

from domain.errors import MusterError
from wire.messages import DownloadElement
from wire.signing import PublicKey, verify


class BadDownloadError(MusterError):
    """A file is not what the server said it is."""


class FileCache:
    """Fetched and checked files by name."""

    def __init__(self, session: aiohttp.ClientSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._locks: dict[str, asyncio.Lock] = {}

    def path(self, name: str) -> Path:
        return self._folder / name

    async def fetch(self, element: DownloadElement, key: PublicKey) -> Path:
        """The file on disk; fetched on first use. Raises BadDownloadError."""
        path = self.path(element.name)
        async with self._locks.setdefault(element.name, asyncio.Lock()):
            if not path.exists():
                async with self._session.get(element.urls[0]) as response:
                    response.raise_for_status()
                    content = await response.read()
                _check(element, content, key)
                path.write_bytes(content)
                path.chmod(0o755 if element.executable else 0o644)
        return path


def _check(element: DownloadElement, content: bytes, key: PublicKey) -> None:
    if len(content) != element.nbytes:
        raise BadDownloadError(f"{element.name}: {len(content)} bytes came, {element.nbytes} were announced")
    if element.signature:
        if not verify(key, content, element.signature):
            raise BadDownloadError(f"{element.name}: the signature is not the project's")
    elif hashlib.md5(content, usedforsecurity=False).hexdigest() != element.md5:
        raise BadDownloadError(f"{element.name}: the MD5 is not {element.md5}")
