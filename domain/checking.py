"""Findings of the project-wide consistency check, and the changes made by `muster restore`. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from domain.units import InstanceId


@dataclass(frozen=True, slots=True)
class Wrong:
    """An inconsistency: the object concerned, and what is wrong with it.

    >>> print(Wrong("job 7", "it exists 2 times"))
    job 7: it exists 2 times
    """

    thing: str
    because: str

    def __str__(self) -> str:
        return f"{self.thing}: {self.because}"


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """An output that the database records as complete on disk."""

    instance_id: InstanceId
    name: str
    nbytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The database's record of a file in the upload directory.

    `state` is that of its instance, None if the instance does not exist. `nbytes` and `md5` are None if no upload was
    recorded. `reported_success`: the host reported the instance with exit status 0.
    """

    name: str
    state: str | None
    nbytes: int | None
    reported_success: bool = False
    md5: str | None = None


@dataclass(frozen=True, slots=True)
class NewIds:
    """The unsent instances that got new ids, and the id sequences that were advanced."""

    instances: int
    sequences: int
