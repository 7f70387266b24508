"""Tests that settings changed together stay together if the change fails half-way."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from domain.units import later
from store.pool import connect
from store.postgres import open_store
from store.queries import load
from tests import pg
from tests.builders import NOW
from tests.database.blocking import until_blocked
from tests.worlds import a_submitted_batch

pytestmark = pytest.mark.database

NOT_STORABLE = "feeder.\0slots"  # not valid text in the database, and last in key order


async def test_of_several_settings_all_change_or_none() -> None:
    async with pg.database() as dsn:
        store = await open_store(dsn)
        with pytest.raises(asyncpg.CharacterNotInRepertoireError):
            await store.settings.set_settings({"deadline.p_tight": 0.8, NOT_STORABLE: 2000}, now=NOW, who="ops", why="")
        kept, noted = await store.settings.settings(), list(await store.settings.setting_changes(9))
        await store.close()

    assert (kept, noted) == ({}, [])


async def test_second_resumption_at_once_starts_no_rate() -> None:
    """It waits for the first one, which also ended the pause."""
    async with pg.database() as dsn:
        store, first, look = await open_store(dsn), await connect(dsn), await connect(dsn)
        batch = await a_submitted_batch(store)
        await store.settings.set_setting("project.down", True, now=NOW, who="ops", why="disk full")
        async with first.transaction():
            await first.execute(load("lock_setting"), "project.down")
            second = asyncio.ensure_future(
                store.settings.set_setting("project.down", None, now=later(NOW, 7200.0), who="bob", why="resumed")
            )
            await until_blocked(look, 1, second)
            await first.execute(load("delete_setting"), "project.down")
        await second
        standing = await store.forecasts.standing(batch.batch_id)
        for one in (first, look, store):
            await one.close()

    assert standing is not None and standing.age.moved_at is None
