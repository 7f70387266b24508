"""Tests that settings changed together stay together if the change fails half-way."""

from __future__ import annotations

import asyncpg
import pytest

from store.postgres import open_store
from tests import pg
from tests.builders import NOW

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
