"""Shows, previews and sets a project's thresholds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from administration.catalogue import fresh_catalogue, stale_as_json
from administration.changes import Changes, with_changes, write_changes
from administration.gate_relaxation import with_relaxed_gates
from administration.stopped import stopped_of
from administration.thresholds.keys import thresholds_as_json
from administration.thresholds.preview import (
    GateEffect,
    HostPopulationView,
    KeptStandings,
    behind_gates,
    effects_of,
    types_of,
    types_previewed,
    waits_previewed,
    with_next_ranking,
)
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.units import HostId
from muster_client import shapes
from store.postgres import PostgresStore

MOST_BATCHES = 2000  # maximum number of waiting batches in a preview, first in order
MOST_CHANGES = 10_000  # number of changes in the audit trail that are searched for each threshold's latest change


Sides = tuple[list[shapes.TypePreviewed], list[shapes.WaitPreviewed], list[GateEffect]]


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A preview: its figures, the gates that change, and the catalogue at present and with the changes."""

    shown: shapes.ThresholdsPreviewed
    effects: Sequence[GateEffect]
    present: Catalogue
    changed: Catalogue


class Thresholds:
    """Thresholds for the command line, the API and the console. One per process, because it caches hosts."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._standings = KeptStandings(store.insight)

    async def show(self) -> list[shapes.ThresholdShown]:
        """Return all thresholds with their values and latest changes, as JSON."""
        settings = await self._store.settings.in_force()
        return thresholds_as_json(settings, await self._store.settings.setting_changes(MOST_CHANGES))

    async def set(self, changes: Changes, *, who: str, why: str) -> list[shapes.ChangeMade]:
        """Store the changes (administration/changes.py)."""
        store = self._store.settings
        return await write_changes(store, changes, check=lambda _: None, clock=self._clock, who=who, why=why)

    async def preview(self, changes: Changes) -> shapes.ThresholdsPreviewed:
        """Return the shown part of `foreseen`."""
        return (await self.foreseen(changes)).shown

    async def foreseen(self, changes: Changes) -> Foreseen:
        """Return the effect of the changes on recently active hosts and on waiting work. Stores nothing.

        Both sides have the gates as the next relaxation would set them, the changed side also the next ranking. Hosts
        are as of `hosts_read_at`, up to a minute ago if there was an earlier preview. Of a large project the preview
        reads one host in `one_in`, and its counts and rates are estimates.
        """
        catalogue = await fresh_catalogue(self._store.applications, self._clock)
        now = self._clock.now()
        settings = catalogue.settings
        waiting, (standings, hosts), stopped = await asyncio.gather(
            self._store.insight.waiting_batches(MOST_BATCHES),
            self._standings.of(types_of(catalogue), catalogue, now=now),
            stopped_of(self._store, self._clock),
        )
        runnable = [one for one in waiting if one.batch.batch_id not in stopped.unrunnable]
        low = catalogue.acceleration.hosts if catalogue.acceleration is not None else frozenset[HostId]()

        names = {app_id: app.name for app_id, app in catalogue.apps.items()}

        def count() -> tuple[Sides, Catalogue, Catalogue]:
            present = with_relaxed_gates(waiting, standings, catalogue, now=now)
            ranked = with_next_ranking(catalogue, standings, with_changes(settings, changes), now=now)
            after = {of_type: replace(one, cuts=ranked.cut_points.get(of_type)) for of_type, one in standings.items()}
            changed = with_relaxed_gates(waiting, after, ranked, now=now)
            behind = behind_gates(runnable, present, changed, now=now)
            old = HostPopulationView(standings, settings, now=now, low_turnaround=low).under(present)
            new = old.under(changed)
            types, waits = types_previewed(standings, old, new, names), waits_previewed(behind, old, new, names)
            return (types, waits, effects_of(runnable, present, old, new, now=now)), present, changed

        # A million rows take 1 s, and this process also serves clients.
        (types, waits, effects), present, changed = await asyncio.to_thread(count)
        before = settings.as_mapping()
        shown: shapes.ThresholdsPreviewed = {
            "computed_at": now,
            "hosts_read_at": hosts.read_at,
            "one_in": hosts.one_in,
            "stale_cut_points": stale_as_json(catalogue),
            "changes": [{"key": key, "from": before[key], "to": value} for key, value in changes.items()],
            "hosts": types,
            "waiting": waits,
        }
        return Foreseen(shown, effects, present, changed)
