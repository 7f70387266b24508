"""Where a node's processes leave their readings for each other: a small file each, in a folder of the supervisor's.

A request costs nothing for it: a process writes its file every two seconds, and whoever is asked reads all of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from runtime.metrics.readings import Reading

log = structlog.get_logger()


class Board(Protocol):
    def put(self, reading: Reading) -> None:
        """Replace the process's reading."""
        ...

    def last(self, process: str) -> Reading | None:
        """The last reading of a process of that name."""
        ...

    def all(self) -> Sequence[Reading]:
        """The last reading of every process."""
        ...


class OwnBoard:
    """Of a process that is alone."""

    def __init__(self) -> None:
        self._readings: dict[str, Reading] = {}

    def put(self, reading: Reading) -> None:
        self._readings[reading.process] = reading

    def last(self, process: str) -> Reading | None:
        return self._readings.get(process)

    def all(self) -> Sequence[Reading]:
        return list(self._readings.values())


class FolderBoard:
    """One file per process in a folder, each replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, reading: Reading) -> None:
        """A folder that is full or gone is logged, and no reason to stop."""
        path = self._path(reading.process)
        new = path.with_suffix(".new")
        try:
            new.write_bytes(msgspec.json.encode(reading))
            new.replace(path)
        except OSError as error:
            log.warning("measurements not written", path=str(path), why=str(error))

    def last(self, process: str) -> Reading | None:
        return _read(self._path(process))

    def all(self) -> Sequence[Reading]:
        found = [_read(path) for path in sorted(self._folder.glob("*.json"))]
        return [one for one in found if one is not None]

    def _path(self, process: str) -> Path:
        return self._folder / f"{process.replace(' ', '-')}.json"


def _read(path: Path) -> Reading | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Reading)
    return None
