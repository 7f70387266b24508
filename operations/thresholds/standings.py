"""How do the hosts of each (app, processor type) stand? Read for previews, and for the lowering of gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from domain.apps import AppVersion
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.insight import Newcomers
from domain.units import AppVersionId, Instant, Seconds
from hoststats.ports import Table
from operations.thresholds.preview import Standing
from operations.thresholds.waiting import TypeOf

KEPT_S = Seconds(60.0)  # whoever moves a threshold tries several values
MOST_KEPT = 200_000  # rows: 14 MB


class ReadsStandings(Protocol):
    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant
    ) -> Sequence[tuple[Table, Newcomers]]: ...


async def standings_of(
    insight: ReadsStandings, types: Sequence[TypeOf], catalogue: Catalogue, *, now: Instant
) -> dict[TypeOf, Standing]:
    """Of each of these types the rows of hosts that called lately, the newcomers, and what they are judged by."""
    if not types:
        return {}
    groups = [
        [version for version in catalogue.current[app_id] if version.processor_type == kind] for app_id, kind in types
    ]
    active_since = Instant(now - catalogue.settings.ranking.active_s)
    found = await insight.standings(groups, active_since=active_since, now=now)
    return {
        of_type: Standing(table, catalogue.cut_points.get(of_type), newcomers)
        for of_type, (table, newcomers) in zip(types, found, strict=True)
    }


class KeptStandings:
    """Satisfies ReadsStandings: says for KEPT_S what it read last, of no more than MOST_KEPT rows."""

    def __init__(self, insight: ReadsStandings, clock: Clock) -> None:
        self._insight = insight
        self._clock = clock
        self._kept: tuple[float, object, Sequence[tuple[Table, Newcomers]]] | None = None

    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant
    ) -> Sequence[tuple[Table, Newcomers]]:
        began_s, asked = self._clock.monotonic(), (_ids(groups), round(now - active_since))
        if self._kept is not None and began_s - self._kept[0] < KEPT_S and self._kept[1] == asked:
            return self._kept[2]
        self._kept = None
        found = await self._insight.standings(groups, active_since=active_since, now=now)
        if sum(table.size for table, _ in found) <= MOST_KEPT:
            self._kept = began_s, asked, found
        return found


def _ids(groups: Sequence[Sequence[AppVersion]]) -> list[list[AppVersionId]]:
    return [[version.app_version_id for version in versions] for versions in groups]
