"""A small project in memory: an account, a submitter, and a manual clock."""

from __future__ import annotations

from collections.abc import Sequence

from domain.errors import NotFoundError
from domain.jobs import Input
from domain.units import Instant, Seconds
from jobs.requirements import InputSpec
from tests.builders import NOW
from tests.memory import MemoryStore


class HandClock:
    """A manual clock; sleeping advances it at once."""

    def __init__(self, now: Instant = NOW) -> None:
        self.time = now

    def now(self) -> Instant:
        return self.time

    def monotonic(self) -> Seconds:
        return Seconds(self.time - NOW)

    async def sleep(self, duration_s: float) -> None:
        self.time = Instant(self.time + duration_s)


class KnownFiles:
    """Input files, by path or name."""

    def __init__(self, *known: str) -> None:
        self._known = known

    async def input_files(self, wanted: Sequence[InputSpec]) -> Sequence[Input]:
        return [self._file(spec) for spec in wanted]

    def _file(self, spec: InputSpec) -> Input:
        asked = spec.path or spec.name
        if asked not in self._known:
            raise NotFoundError("file", asked)
        return Input(f"stored_{asked}", spec.open_name, 100, "0" * 32, spec.sticky)


async def a_project() -> MemoryStore:
    """A store with the account "lab" and its submitter "ada"."""
    store = MemoryStore()
    await store.people.add_account("lab", parent=None, shares=1.0)
    await store.people.add_account("other lab", parent=None, shares=1.0)
    await store.people.add_submitter("ada", account="lab", shares=1.0, now=NOW)
    return store
