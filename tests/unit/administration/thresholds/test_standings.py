"""How hosts stand is read once for somebody who tries several thresholds, and is not kept for longer."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import ref

import numpy as np
import pytest

from administration.thresholds.keys import changes_of
from administration.thresholds.service import Thresholds
from administration.thresholds.shown import preview_as_json, preview_as_text
from administration.thresholds.standings import KEPT_S, MOST_KEPT, KeptStandings
from domain.apps import AppVersion
from domain.insight import Newcomers
from domain.units import AppVersionId, Instant, later
from hoststats.ports import Table
from store.memory import MemoryStore
from tests.builders import NOW, an_app_version
from tests.deterministic.clocks import NodeClock
from tests.deterministic.loop import SeededLoop
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_version

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


def test_what_was_read_serves_for_a_minute_and_says_when_it_was_read() -> None:
    loop = SeededLoop(1)  # type: ignore[abstract]
    clock = NodeClock(loop)

    async def three_looks() -> None:
        kept = KeptStandings(Insight())
        first = await kept.read(ONE, SINCE, now=NOW)
        await clock.sleep(KEPT_S - 1.0)
        second = await kept.read(ONE, later(SINCE, 59.0), now=later(NOW, 59.0))
        await clock.sleep(1.0)
        third = await kept.read(ONE, later(SINCE, 60.0), now=later(NOW, 60.0))

        assert [hosts.found[0][1].hosts for hosts in (first, second, third)] == [1, 1, 2]
        assert [hosts.read_at for hosts in (first, second, third)] == [NOW, NOW, later(NOW, 60.0)]

    loop.run(three_looks())


def test_what_was_read_is_let_go_after_a_minute_although_nobody_asks_again() -> None:
    loop = SeededLoop(1)  # type: ignore[abstract]
    clock = NodeClock(loop)

    async def one_look() -> None:
        kept = KeptStandings(Insight())
        table = ref((await kept.read(ONE, SINCE, now=NOW)).found[0][0])
        held = table() is not None
        await clock.sleep(KEPT_S)

        assert held and table() is None

    loop.run(one_look())


@pytest.mark.parametrize(("groups", "active_since"), [(OTHER, SINCE), ([*ONE, *OTHER], SINCE), (ONE, Instant(0.0))])
async def test_another_question_is_asked_anew(groups: Sequence[Sequence[AppVersion]], active_since: Instant) -> None:
    insight = Insight()
    kept = KeptStandings(insight)

    await kept.read(ONE, SINCE, now=NOW)
    hosts = await kept.read(groups, active_since, now=NOW)

    assert insight.asked == 2 and len(hosts.found) == len(groups)


@pytest.mark.parametrize(("rows", "asked"), [(MOST_KEPT, 1), (MOST_KEPT + 1, 2)])
async def test_no_more_is_kept_than_a_worker_has_room_for(rows: int, asked: int) -> None:
    insight = Insight(rows)
    kept = KeptStandings(insight)

    for _ in range(2):
        await kept.read(ONE, SINCE, now=NOW)

    assert insight.asked == asked


async def test_a_preview_says_how_old_what_it_knows_of_hosts_is() -> None:
    store, clock = MemoryStore(), HandClock()
    await a_registered_version(store)
    thresholds, changes = Thresholds(store, clock), changes_of([("p_tight", 0.5)])

    first = await thresholds.preview(changes)
    clock.time = later(NOW, 40.0)
    second = await thresholds.preview(changes)

    assert [(one.computed_at, one.hosts_read_at) for one in (first, second)] == [(NOW, NOW), (clock.time, NOW)]
    assert "Hosts that called lately, and" in preview_as_text(preview_as_json(first))
    assert "Hosts that called lately (as they were 40 s ago), and" in preview_as_text(preview_as_json(second))
