"""What an inspection needs of the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from domain.checking import KnownFile, StoredOutput, Wrong
from domain.units import InstanceId


class CheckedDatabase(Protocol):
    """One inspection's questions. Every method may raise UnavailableError."""

    @property
    def questions(self) -> Sequence[str]: ...

    async def ask(self, question: str, *, limit: int) -> Sequence[Wrong]: ...

    def outputs(self, *, limit: int) -> AsyncIterator[Sequence[StoredOutput]]: ...

    async def known(self, files: Sequence[tuple[str, InstanceId]]) -> Sequence[KnownFile]: ...
