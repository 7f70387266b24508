"""Caches the catalogue, refreshed from the database every few seconds."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol

import structlog

from domain.apps import ProcessorType
from domain.catalogue import Catalogue, without_stale
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import AppId, Seconds
from muster_client import shapes

REFRESH_S = Seconds(2.0)

log = structlog.get_logger()


class CatalogueReader(Protocol):
    async def load_catalogue(self) -> Catalogue: ...


async def fresh_catalogue(loader: CatalogueReader, clock: Clock) -> Catalogue:
    """Return the current catalogue without stale cut points."""
    return without_stale(await loader.load_catalogue(), clock.now())


def stale_as_json(catalogue: Catalogue) -> list[shapes.StaleShown]:
    """Return the stale cut points; the bootstrap rule applies to their populations."""
    return [
        {"app": catalogue.apps[app_id].name, "processor_type": kind, "computed_at": computed_at}
        for (app_id, kind), computed_at in sorted(catalogue.stale_since.items())
        if app_id in catalogue.apps
    ]


def warn_of_stale(catalogue: Catalogue, keys: AbstractSet[tuple[AppId, ProcessorType]]) -> None:
    for key in sorted(keys & catalogue.cut_points.keys()):
        log.warning(
            "cut points too old: using the bootstrap rule until hosts are ranked",
            app_id=key[0],
            processor_type=key[1],
            computed_at=catalogue.cut_points[key].computed_at,
        )


class CatalogueCache:
    """Caches one catalogue, which is always replaced as a whole."""

    def __init__(self, loader: CatalogueReader, clock: Clock, catalogue: Catalogue) -> None:
        self._loader = loader
        self._clock = clock
        self._catalogue = without_stale(catalogue, clock.now())
        warn_of_stale(catalogue, catalogue.cut_points.keys() - self._catalogue.cut_points.keys())

    def catalogue(self) -> Catalogue:
        return self._catalogue

    async def refresh_once(self) -> Catalogue:
        before, loaded = self._catalogue, await self._loader.load_catalogue()
        self._catalogue = without_stale(loaded, self._clock.now())
        logged = {str(error) for error in before.unfit_settings}
        for error in self._catalogue.unfit_settings:
            if str(error) not in logged:
                log.warning("invalid setting ignored, using its default", why=str(error))
        warn_of_stale(loaded, {key for key in before.cut_points if key not in self._catalogue.cut_points})
        return self._catalogue

    async def run(self) -> None:
        """Refresh the catalogue forever; keep the last one while the database is unavailable."""
        while True:
            await self._clock.sleep(REFRESH_S)
            try:
                await self.refresh_once()
            except UnavailableError as error:
                log.warning("catalogue not refreshed", why=str(error))
