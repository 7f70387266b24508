"""Tests changed settings with author, time and reason."""

from __future__ import annotations

from domain.settings import DeadlineRule
from domain.units import later
from domain.views import SettingChange
from tests.builders import NOW
from tests.stores import Store


async def change(store: Store, key: str, value: object, seconds: float = 0.0, why: str = "") -> None:
    await store.settings.set_setting(key, value, now=later(NOW, seconds), who="ops", why=why)


async def test_a_fresh_store_has_changed_nothing(store: Store) -> None:
    assert await store.settings.settings() == {}
    assert list(await store.settings.setting_changes(9)) == []


async def test_settings_of_every_kind_are_kept_as_they_are(store: Store) -> None:
    values: dict[str, object] = {
        "deadline.p_tight": 0.85,
        "deadline.rule": "fixed",
        "feeder.slots": 2000,
        "project.down": True,
        "project.name": "Müster",
    }
    for key, value in values.items():
        await change(store, key, value)

    assert await store.settings.settings() == values
    settings = (await store.applications.load_catalogue()).settings
    assert (settings.deadline.rule, settings.feeder.slots) == (DeadlineRule.FIXED, 2000)


async def test_every_change_is_noted_newest_first(store: Store) -> None:
    await change(store, "feeder.slots", 2000, 1.0, "more volunteers")
    await change(store, "feeder.slots", 3000, 2.0)
    await change(store, "feeder.slots", None, 3.0, "back")

    first = SettingChange("feeder.slots", None, 2000, later(NOW, 1.0), "ops", "more volunteers")
    second = SettingChange("feeder.slots", 2000, 3000, later(NOW, 2.0), "ops", "")
    third = SettingChange("feeder.slots", 3000, None, later(NOW, 3.0), "ops", "back")
    assert list(await store.settings.setting_changes(9)) == [third, second, first]
    assert list(await store.settings.setting_changes(2)) == [third, second]


async def test_none_takes_the_default_back(store: Store) -> None:
    await change(store, "feeder.slots", 2000)
    await change(store, "deadline.p_tight", 0.8)
    await change(store, "feeder.slots", None)

    assert await store.settings.settings() == {"deadline.p_tight": 0.8}
    assert (await store.applications.load_catalogue()).settings.feeder.slots == 1000


async def test_several_settings_change_together(store: Store) -> None:
    await change(store, "feeder.slots", 2000)

    await store.settings.set_settings(
        {"feeder.slots": None, "deadline.p_tight": 0.8}, now=later(NOW, 1.0), who="ops", why="both"
    )

    assert await store.settings.settings() == {"deadline.p_tight": 0.8}
    noted = [(one.key, one.to_value, one.why) for one in await store.settings.setting_changes(2)]
    assert sorted(noted) == [("deadline.p_tight", 0.8, "both"), ("feeder.slots", None, "both")]


async def test_pause_of_the_project_keeps_its_beginning(store: Store) -> None:
    """Author and reason are those of the last change."""
    before = await store.settings.project_pause()
    await change(store, "project.down", True, 0.5, "a test")
    await change(store, "project.down", False, 0.75)
    await change(store, "project.down", True, 1.0, "disk full")
    await change(store, "feeder.slots", 2000, 2.0)
    paused = await store.settings.project_pause()
    await change(store, "project.down", True, 3.0, "new disks")
    renewed = await store.settings.project_pause()
    await change(store, "project.down", None, 4.0)

    assert (before, await store.settings.project_pause()) == (None, None)
    assert paused == SettingChange("project.down", False, True, later(NOW, 1.0), "ops", "disk full")
    assert renewed == SettingChange("project.down", True, True, later(NOW, 1.0), "ops", "new disks")
