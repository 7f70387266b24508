"""Shows, previews and changes thresholds on a project's database."""

from __future__ import annotations

import asyncio
from typing import Protocol

from administration.catalogue import fresh_catalogue, stale_as_json
from administration.changes import Changes, with_changes, write_changes
from administration.ports import Applications, Insight, SettingStore
from administration.thresholds.keys import thresholds_as_json
from administration.thresholds.preview import (
    HostPopulationView,
    KeptStandings,
    behind_gates,
    types_of,
    types_previewed,
    waits_previewed,
)
from domain.clock import Clock
from domain.settings import Settings
from domain.units import HostId
from muster_client import shapes

MOST_BATCHES = 2000  # waiting ones that are looked at, first in order
MOST_CHANGES = 10_000  # of the audit trail that are looked through for the latest of each threshold


class ThresholdStore(Protocol):
    """What is read and written of the database."""

    @property
    def applications(self) -> Applications: ...
    @property
    def settings(self) -> SettingStore: ...
    @property
    def insight(self) -> Insight: ...


class Thresholds:
    """What the command line, the API and the console do with thresholds. One in a process, for what it keeps."""

    def __init__(self, store: ThresholdStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._standings = KeptStandings(store.insight)

    async def show(self) -> list[shapes.ThresholdShown]:
        """Every threshold with its value and its last change, as JSON."""
        settings, _ = Settings.from_stored(await self._store.settings.settings())
        return thresholds_as_json(settings, await self._store.settings.setting_changes(MOST_CHANGES))

    async def set(self, changes: Changes, *, who: str, why: str) -> list[shapes.ChangeMade]:
        """Write the changes (administration/changes.py)."""
        store = self._store.settings
        return await write_changes(store, changes, check=lambda _: None, clock=self._clock, who=who, why=why)

    async def preview(self, changes: Changes) -> shapes.ThresholdsPreviewed:
        """What the changes would do, by the hosts that called lately and the work that waits now. Nothing changes.

        Hosts are as they were at `hosts_read_at`, up to a minute ago where somebody has asked then.
        """
        catalogue = await fresh_catalogue(self._store.applications, self._clock)
        now = self._clock.now()
        settings = catalogue.settings
        changed = with_changes(settings, changes)
        waiting, (standings, hosts_read_at) = await asyncio.gather(
            self._store.insight.waiting_batches(MOST_BATCHES),
            self._standings.of(types_of(catalogue), catalogue, now=now),
        )
        low = catalogue.acceleration.hosts if catalogue.acceleration is not None else frozenset[HostId]()

        names = {app_id: app.name for app_id, app in catalogue.apps.items()}

        def counted() -> tuple[list[shapes.TypePreviewed], list[shapes.WaitPreviewed]]:
            behind = behind_gates(waiting, catalogue, settings.deadline, changed.deadline, now=now)
            old = HostPopulationView(standings, settings, now=now, low_turnaround=low)
            new = old.under(changed)
            return types_previewed(standings, old, new, names), waits_previewed(behind, old, new, names)

        types, waits = await asyncio.to_thread(counted)  # a million rows take a second, and clients are served here
        before = settings.as_mapping()
        return {
            "computed_at": now,
            "hosts_read_at": hosts_read_at,
            "stale_cut_points": stale_as_json(catalogue),
            "changes": [{"key": key, "from": before[key], "to": value} for key, value in changes.items()],
            "hosts": types,
            "waiting": waits,
        }
