"""What an inspection of the whole project finds, and what `muster restore` changed. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from domain.units import InstanceId


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that is not as it must be: what, and why, in words.

    >>> print(Wrong("job 7", "it exists 2 times"))
    job 7: it exists 2 times
    """

    thing: str
    because: str

    def __str__(self) -> str:
        return f"{self.thing}: {self.because}"


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """An output the database says is whole on disk."""

    instance_id: InstanceId
    name: str
    nbytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What the database knows of a file in the upload folder.

    `state` of its instance, None where there is no such instance; `nbytes` None where no upload of it was recorded;
    `reported_success`: its host reported the instance with exit status 0.
    """

    name: str
    state: str | None
    nbytes: int | None
    reported_success: bool = False


@dataclass(frozen=True, slots=True)
class NewIds:
    """Unsent instances that were given new ids, and id sequences that were moved forward."""

    instances: int
    sequences: int
