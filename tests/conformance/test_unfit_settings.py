"""Tests that a node starts with settings that an older or newer version stored."""

from __future__ import annotations

from tests.builders import NOW
from tests.stores import Store


async def test_invalid_stored_setting_is_ignored_and_reported(store: Store) -> None:
    await store.settings.set_setting("deadline.p_tight", 0.85, now=NOW, who="ada", why="")
    await store.settings.set_setting("feeder.colour", "blue", now=NOW, who="ada", why="an older version")

    catalogue = await store.applications.load_catalogue()

    assert catalogue.settings.deadline.p_tight == 0.85
    assert [error.field for error in catalogue.unfit_settings] == ["feeder.colour"]
    assert await store.settings.in_force() == catalogue.settings
