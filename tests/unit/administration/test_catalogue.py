"""The catalogue cache."""

from __future__ import annotations

import asyncio

import structlog

from administration.catalogue import REFRESH_S, CatalogueCache
from domain.apps import CPU, NVIDIA
from domain.catalogue import Catalogue
from domain.errors import UnavailableError
from domain.ranking import CutPoints
from domain.units import AppId, Instant
from tests.builders import an_app
from tests.unit.administration.clocks import HastyClock, StillClock

OLD = Catalogue()
NEW = Catalogue(apps={AppId(1): an_app()})


class Loader:
    """Returns its catalogues in turn; None stands for an unavailable database."""

    def __init__(self, *catalogues: Catalogue | None) -> None:
        self._catalogues = list(catalogues)

    async def load_catalogue(self) -> Catalogue:
        found = self._catalogues.pop(0)
        if found is None:
            raise UnavailableError
        return found


def test_cache_starts_with_the_given_catalogue() -> None:
    assert CatalogueCache(Loader(), StillClock(), OLD).catalogue() is OLD


async def test_refresh_replaces_the_catalogue() -> None:
    cache = CatalogueCache(Loader(NEW), StillClock(), OLD)

    assert await cache.refresh_once() is NEW
    assert cache.catalogue() is NEW


async def test_cache_keeps_the_catalogue_during_an_outage() -> None:
    clock = HastyClock(rounds=2)
    cache = CatalogueCache(Loader(None, None, NEW), clock, OLD)

    task = asyncio.create_task(cache.run())
    await clock.done.wait()
    assert cache.catalogue() is OLD
    task.cancel()

    assert clock.sleeps == [REFRESH_S] * 3


async def test_loop_refreshes_every_two_seconds() -> None:
    clock = HastyClock(rounds=1)
    cache = CatalogueCache(Loader(NEW), clock, OLD)

    task = asyncio.create_task(cache.run())
    await clock.done.wait()
    task.cancel()

    assert (cache.catalogue(), clock.sleeps) == (NEW, [2.0, 2.0])


async def test_stale_cut_points_are_dropped_with_one_warning() -> None:
    clock = StillClock()
    old, young = (
        CutPoints(AppId(1), kind, Instant(clock.now() - hours * 3600.0), 40, (), ())
        for kind, hours in ((CPU, 49.0), (NVIDIA, 47.0))
    )
    both = Catalogue(cut_points={(AppId(1), CPU): old, (AppId(1), NVIDIA): young})
    with structlog.testing.capture_logs() as logged:
        cache = CatalogueCache(Loader(both, both), clock, both)
        await cache.refresh_once()
        await cache.refresh_once()

    assert cache.catalogue().cut_points == {(AppId(1), NVIDIA): young}
    assert [(line["log_level"], line["processor_type"]) for line in logged] == [("warning", CPU)]
