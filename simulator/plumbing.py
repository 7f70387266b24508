"""What the services stand on besides the store, where there are no files, keys or neighbours to care for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from domain.catalogue import Catalogue, without_stale
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.jobs import Input
from domain.units import Instant
from jobs.comparisons import Compared, Comparison, compare_here
from jobs.requirements import InputSpec


class CatalogueLoader(Protocol):
    async def load_catalogue(self) -> Catalogue: ...


class CatalogueOfTheMoment:
    """Satisfies domain.catalogue.CatalogueSource: read anew when something has changed it, and now and then."""

    def __init__(self, loader: CatalogueLoader, clock: Clock, catalogue: Catalogue) -> None:
        self._loader = loader
        self._clock = clock
        self._catalogue = catalogue

    def catalogue(self) -> Catalogue:
        return self._catalogue

    async def refresh_once(self) -> Catalogue:
        self._catalogue = without_stale(await self._loader.load_catalogue(), self._clock.now())
        return self._catalogue


class NoFiles:
    """Satisfies the ports for files: names alone matter, nothing is fetched, outputs are known by their MD5."""

    def token(self, file_name: str, max_bytes: int) -> str:  # noqa: ARG002  the port's names
        return ""

    def upload_url(self) -> str:
        return "upload"

    def download_url(self, file_name: str) -> str:
        return file_name

    async def input_files(self, wanted: Sequence[InputSpec]) -> Sequence[Input]:
        if wanted:
            raise InvalidInputError("jobs.inputs", "no input files in a simulation", wanted[0])
        return ()

    at_once = 1

    async def compare(self, comparison: Comparison) -> Compared:
        """By content: there is none."""
        return compare_here(comparison, lambda _: None)


class OneKey:
    """Satisfies the scheduler's CodeSigning: a key that every client has as soon as it has called."""

    def public_key_text(self) -> str:
        return "1024\n00"

    def rotation_signature(self, client_key_text: str) -> str | None:  # noqa: ARG002
        return None


class NoPauses:
    """Satisfies the scheduler's Pauses: there is one clock."""

    def refuse_work_because(self, now: Instant) -> str | None:  # noqa: ARG002
        return None
