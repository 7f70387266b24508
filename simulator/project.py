"""A new project for a run: its settings, apps, submitters and volunteers, by the doors an operator uses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from domain.clock import Clock
from domain.settings import Settings
from domain.volunteers import Credentials
from simulator.ports import Scenario, Volunteer
from simulator.services import AnyStore

ACCOUNT = "default"


async def create_project(
    store: AnyStore, scenario: Scenario, volunteers: Sequence[Volunteer], settings: Mapping[str, object], clock: Clock
) -> None:
    """Fill an empty store. Raises InvalidInputError for a setting that cannot be."""
    Settings.from_mapping(settings)
    for key, value in sorted(settings.items()):
        await store.settings.set_setting(key, value, now=clock.now(), who="simulation", why="the scenario")
    await _add_programs(store, scenario)
    known = {submitter.name for submitter in await store.people.submitters()}
    for one in scenario.submitters:
        if one.submitter in known:
            await store.people.set_submitter(one.submitter, shares=one.shares)
        else:
            await store.people.add_submitter(one.submitter, account=ACCOUNT, shares=one.shares, now=clock.now())
    for number, key in enumerate(dict.fromkeys(volunteer.authenticator for volunteer in volunteers), start=1):
        await store.volunteers.add_volunteer(
            f"volunteer{number}@simulation.invalid",
            name=f"volunteer {number}",
            credentials=Credentials(number.to_bytes(16), hashlib.sha256(key.encode()).digest()),
            cross_project_id=f"{number:032x}",
            beta=False,
            now=clock.now(),
        )


async def _add_programs(store: AnyStore, scenario: Scenario) -> None:
    applications = store.applications
    for program in scenario.programs:
        app = await applications.add_app(program.app)
        for version in program.versions:
            await applications.put_plan_class(version.plan_class)
            await applications.add_app_version(replace(version, app_id=app.app_id))
