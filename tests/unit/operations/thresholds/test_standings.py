"""How hosts stand is read once for somebody who tries several thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from domain.apps import AppVersion
from domain.insight import Newcomers
from domain.units import AppVersionId, Instant, later
from hoststats.ports import Table
from operations.thresholds.standings import KEPT_S, MOST_KEPT, KeptStandings
from tests.builders import NOW, an_app_version
from tests.unit.operations.access.world import ForwardClock

ONE = [[an_app_version(app_version_id=AppVersionId(1))]]
OTHER = [[an_app_version(app_version_id=AppVersionId(2))]]
SINCE = Instant(NOW - 100.0)


class Insight:
    """Says that there are so many rows, and how often it was asked."""

    def __init__(self, rows: int = 1) -> None:
        self.rows = rows
        self.asked = 0

    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant
    ) -> Sequence[tuple[Table, Newcomers]]:
        self.asked += 1
        return [(np.zeros(self.rows, [("host_id", "i4")]), Newcomers(self.asked)) for _ in groups]


async def test_what_was_read_serves_for_a_minute() -> None:
    insight, clock = Insight(), ForwardClock()
    kept = KeptStandings(insight, clock)

    first = await kept.standings(ONE, active_since=SINCE, now=NOW)
    clock.forward(KEPT_S - 1.0)
    second = await kept.standings(ONE, active_since=later(SINCE, 59.0), now=later(NOW, 59.0))
    clock.forward(1.0)
    third = await kept.standings(ONE, active_since=SINCE, now=NOW)

    assert [found[0][1].hosts for found in (first, second, third)] == [1, 1, 2]


@pytest.mark.parametrize(("groups", "active_since"), [(OTHER, SINCE), ([*ONE, *OTHER], SINCE), (ONE, Instant(0.0))])
async def test_another_question_is_asked_anew(groups: Sequence[Sequence[AppVersion]], active_since: Instant) -> None:
    insight = Insight()
    kept = KeptStandings(insight, ForwardClock())

    await kept.standings(ONE, active_since=SINCE, now=NOW)
    found = await kept.standings(groups, active_since=active_since, now=NOW)

    assert insight.asked == 2 and len(found) == len(groups)


@pytest.mark.parametrize(("rows", "asked"), [(MOST_KEPT, 1), (MOST_KEPT + 1, 2)])
async def test_no_more_is_kept_than_a_worker_has_room_for(rows: int, asked: int) -> None:
    insight = Insight(rows)
    kept = KeptStandings(insight, ForwardClock())

    for _ in range(2):
        await kept.standings(ONE, active_since=SINCE, now=NOW)

    assert insight.asked == asked
