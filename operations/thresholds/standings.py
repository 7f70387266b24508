"""How do the hosts of each (app, processor type) stand? Read for previews, and for the lowering of gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from domain.apps import AppVersion
from domain.catalogue import Catalogue
from domain.insight import Newcomers
from domain.units import Instant
from hoststats.ports import Table
from operations.thresholds.preview import Standing
from operations.thresholds.waiting import TypeOf


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
