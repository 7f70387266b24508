"""How do the hosts of each (app, processor type) stand? Read for previews, and for the lowering of gates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from administration.thresholds.preview import Standing
from administration.thresholds.waiting import TypeOf
from domain.apps import AppVersion
from domain.catalogue import Catalogue
from domain.insight import Newcomers
from domain.units import AppVersionId, Instant, Seconds
from hoststats.ports import Table

KEPT_S = Seconds(60.0)  # whoever moves a threshold tries several values
MOST_KEPT = 200_000  # rows: 14 MB


class ReadsStandings(Protocol):
    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant
    ) -> Sequence[tuple[Table, Newcomers]]: ...


@dataclass(frozen=True, slots=True)
class HostsRead:
    """What was read of hosts, by group of versions, and when."""

    read_at: Instant
    found: Sequence[tuple[Table, Newcomers]]


async def standings_of(
    insight: ReadsStandings, types: Sequence[TypeOf], catalogue: Catalogue, *, now: Instant
) -> dict[TypeOf, Standing]:
    """Of each of these types the rows of hosts that called lately, the newcomers, and what they are judged by."""
    if not types:
        return {}
    groups, active_since = _asked(types, catalogue, now)
    return _judged(types, catalogue, await insight.standings(groups, active_since=active_since, now=now))


class KeptStandings:
    """Says for KEPT_S what it read last, of no more than MOST_KEPT rows, and lets go of it then."""

    def __init__(self, insight: ReadsStandings) -> None:
        self._insight = insight
        self._kept: tuple[object, HostsRead] | None = None
        self._until: asyncio.TimerHandle | None = None

    async def of(
        self, types: Sequence[TypeOf], catalogue: Catalogue, *, now: Instant
    ) -> tuple[dict[TypeOf, Standing], Instant]:
        """The same as `standings_of`, by hosts as they were at the instant that is told."""
        if not types:
            return {}, now
        hosts = await self.read(*_asked(types, catalogue, now), now=now)
        return _judged(types, catalogue, hosts.found), hosts.read_at

    async def read(self, groups: Sequence[Sequence[AppVersion]], active_since: Instant, *, now: Instant) -> HostsRead:
        asked = (_ids(groups), round(now - active_since))
        if self._kept is not None and self._kept[0] == asked:
            return self._kept[1]
        self._let_go()
        hosts = HostsRead(now, await self._insight.standings(groups, active_since=active_since, now=now))
        if sum(table.size for table, _ in hosts.found) <= MOST_KEPT:
            self._let_go()  # of what somebody else has read meanwhile
            self._kept = asked, hosts
            self._until = asyncio.get_running_loop().call_later(KEPT_S, self._let_go)
        return hosts

    def _let_go(self) -> None:
        self._kept = None
        if self._until is not None:
            self._until.cancel()
            self._until = None


def _asked(
    types: Sequence[TypeOf], catalogue: Catalogue, now: Instant
) -> tuple[Sequence[Sequence[AppVersion]], Instant]:
    """The versions of each of these types, and since when a host has to have called."""
    groups = [
        [version for version in catalogue.current[app_id] if version.processor_type == kind] for app_id, kind in types
    ]
    return groups, Instant(now - catalogue.settings.ranking.active_s)


def _judged(
    types: Sequence[TypeOf], catalogue: Catalogue, found: Sequence[tuple[Table, Newcomers]]
) -> dict[TypeOf, Standing]:
    return {
        of_type: Standing(table, catalogue.cut_points.get(of_type), newcomers)
        for of_type, (table, newcomers) in zip(types, found, strict=True)
    }


def _ids(groups: Sequence[Sequence[AppVersion]]) -> list[list[AppVersionId]]:
    return [[version.app_version_id for version in versions] for versions in groups]
