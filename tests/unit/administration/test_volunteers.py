"""Operators change volunteers' preferences, under the rules of the volunteers' own page."""

from __future__ import annotations

from typing import Any

import pytest

from administration.volunteers import VolunteerBody, change_volunteer, volunteer_as_json
from domain.errors import InvalidInputError, NotFoundError
from muster_client.shapes import VolunteerShown
from tests.builders import NOW, an_app
from tests.facts import missing
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.worlds import a_registered_version, a_registered_volunteer


async def a_project() -> tuple[MemoryStore, str]:
    """Return a store with two applications, one with a version, and a volunteer's e-mail."""
    store = MemoryStore()
    await a_registered_version(store)
    await store.applications.add_app(an_app(name="new"))
    await a_registered_volunteer(store)
    [record] = await store.volunteers.volunteers()
    return store, record.email


async def changed(store: MemoryStore, email: str, **wishes: Any) -> VolunteerShown:
    known = as_postgres(store)
    return await change_volunteer(known.volunteers, known.applications, email, VolunteerBody(**wishes), now=NOW)


async def test_change_keeps_other_preferences() -> None:
    store, email = await a_project()
    await changed(store, email, cpu=False, max_cpus=4, apps=["new"])
    shown = await changed(store, email, max_jobs=2)

    assert (shown["no_cpu"], shown["no_gpu"], shown["max_cpus"], shown["max_jobs"]) == (True, False, 4, 2)
    assert shown["apps"] == ["new"]
    [record] = await store.volunteers.volunteers()
    assert volunteer_as_json(record, await store.applications.apps()) == shown
    assert record.volunteer.preferred_at is not None


async def test_choosing_all_or_none_means_all_applications() -> None:
    store, email = await a_project()
    [offered] = [app.name for app in await store.applications.apps() if app.name != "new"]
    for apps in ([offered], []):
        await changed(store, email, apps=["new"])
        assert (await changed(store, email, apps=apps))["apps"] == []
    [record] = await store.volunteers.volunteers()
    assert record.volunteer.apps == ()


@pytest.mark.parametrize(
    ("wishes", "facts"),
    [
        ({}, ("volunteer:", "beta", "cpu", "gpu", "max_jobs", "max_cpus", "apps", "'none'")),
        ({"cpu": False, "gpu": False}, ("processors:", "CPU", "GPUs", "both", "'neither'")),
        ({"max_cpus": -1}, ("max_cpus:", "whole", "0 to 1000000", "-1")),
        ({"max_jobs": 1_000_001}, ("max_jobs:", "whole", "0 to 1000000", "1000001")),
        ({"apps": ["xpi"]}, ("apps:", "this project")),
    ],
)
async def test_invalid_preferences_are_refused(wishes: dict[str, object], facts: tuple[str, ...]) -> None:
    store, email = await a_project()
    before = await store.volunteers.volunteers()
    with pytest.raises(InvalidInputError) as caught:
        await changed(store, email, **wishes)

    assert not missing(str(caught.value), *facts)
    assert await store.volunteers.volunteers() == before


async def test_unknown_volunteer_is_refused() -> None:
    store, _ = await a_project()
    with pytest.raises(NotFoundError, match="no volunteer"):
        await changed(store, "unknown@example.org", beta=True)
