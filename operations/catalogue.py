"""The catalogue of the moment, read from the database every few seconds."""

from __future__ import annotations

from typing import Protocol

import structlog

from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import Seconds

REFRESH_S = Seconds(2.0)

log = structlog.get_logger()


class CatalogueLoader(Protocol):
    async def load_catalogue(self) -> Catalogue: ...


class CatalogueCache:
    """Holds one catalogue and replaces it as a whole."""

    def __init__(self, loader: CatalogueLoader, clock: Clock, catalogue: Catalogue) -> None:
        self._loader = loader
        self._clock = clock
        self._catalogue = catalogue

    def catalogue(self) -> Catalogue:
        return self._catalogue

    async def refresh_once(self) -> Catalogue:
        before, self._catalogue = self._catalogue, await self._loader.load_catalogue()
        told = {str(error) for error in before.unfit_settings}
        for error in self._catalogue.unfit_settings:
            if str(error) not in told:
                log.warning("setting ignored, its default holds", why=str(error))
        return self._catalogue

    async def run(self) -> None:
        """Refresh for ever; while the database is away the last catalogue stays."""
        while True:
            await self._clock.sleep(REFRESH_S)
            try:
                await self.refresh_once()
            except UnavailableError as error:
                log.warning("catalogue not refreshed", why=str(error))
