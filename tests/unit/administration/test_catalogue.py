"""The catalogue of the moment."""

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
    """Gives its catalogues in turn; None stands for a database that is away."""

    def __init__(self, *catalogues: Catalogue | None) -> None:
        self._catalogues = list(catalogues)

    async def load_catalogue(self) -> Catalogue:
        found = self._catalogues.pop(0)
        if found is None:
            raise UnavailableError
        return found


def test_the_catalogue_it_was_made_with_holds_at_first() -> None:
    assert CatalogueCache(Loader(), StillClock(), OLD).catalogue() is OLD


async def test_a_refresh_replaces_it_as_a_whole() -> None:
    cache = CatalogueCache(Loader(NEW), StillClock(), OLD)

    assert await cache.refresh_once() is NEW
    assert cache.catalogue() is NEW


async def test_while_the_database_is_away_the_last_one_stays_and_is_replaced_later() -> None:
    clock = HastyClock(rounds=2)
    cache = CatalogueCache(Loader(None, None, NEW), clock, OLD)

    task = asyncio.create_task(cache.run())
    await clock.done.wait()
    assert cache.catalogue() is OLD
    task.cancel()

    assert clock.sleeps == [REFRESH_S] * 3


async def test_the_loop_refreshes_every_two_seconds() -> None:
    clock = HastyClock(rounds=1)
    cache = CatalogueCache(Loader(NEW), clock, OLD)

    task = asyncio.create_task(cache.run())
    await clock.done.wait()
    task.cancel()

    assert (cache.catalogue(), clock.sleeps) == (NEW, [2.0, 2.0])


async def test_cut_points_that_are_too_old_are_left_out_with_one_warning() -> None:
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
