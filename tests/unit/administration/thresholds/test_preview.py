"""Previews of thresholds: caching of hosts, and jobs behind gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import ref

import numpy as np
import pytest

from administration.gate_relaxation import with_relaxed_gates
from administration.thresholds.keys import changes_of, full_key
from administration.thresholds.preview import (
    KEPT_S,
    LOWERED,
    MOST_KEPT,
    MOST_READ,
    UNRANKED,
    BehindGate,
    GateStanding,
    HostPopulationView,
    KeptStandings,
    behind_gates,
    gates_needed,
)
from administration.thresholds.service import Thresholds
from administration.thresholds.shown import preview_as_text
from domain.acceleration import Acceleration
from domain.apps import CPU, AppVersion
from domain.batches import BatchCounts, QoS
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.insight import STANDING_FIELDS, Newcomers, WaitingBatch
from domain.ranking import CutPoints, Gate, RelaxedGate
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings, Settings
from domain.units import AppId, AppVersionId, HostId, Instant, Seconds, later
from hoststats.ports import Table
from tests.builders import NOW, a_batch, an_app, an_app_version
from tests.deterministic.clocks import NodeClock
from tests.deterministic.loop import SeededLoop
from tests.facts import states
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.jobs.projects import HandClock
from tests.unit.scheduler.arrays import a_catalogue, some_cuts
from tests.worlds import a_registered_version

ONE = [[an_app_version(app_version_id=AppVersionId(1))]]
OTHER = [[an_app_version(app_version_id=AppVersionId(2))]]
SINCE = Instant(NOW - 100.0)


class Insight:
    """Returns the given number of rows and counts its calls."""

    def __init__(self, rows: int = 1) -> None:
        self.rows = rows
        self.calls = 0

    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant, one_in: int = 1
    ) -> Sequence[tuple[Table, Newcomers]]:
        self.calls += 1
        fields = [("host_id", "i4"), ("calls_per_hour", "f8")]
        return [(np.ones(self.rows, fields), Newcomers(self.calls, 2.0)) for _ in groups]


def test_hosts_are_cached_for_a_minute() -> None:
    loop = SeededLoop(1)  # type: ignore[abstract]
    clock = NodeClock(loop)

    async def three_reads() -> None:
        kept = KeptStandings(Insight())
        first = await kept.read(ONE, SINCE, now=NOW)
        await clock.sleep(KEPT_S - 1.0)
        second = await kept.read(ONE, later(SINCE, 59.0), now=later(NOW, 59.0))
        await clock.sleep(1.0)
        third = await kept.read(ONE, later(SINCE, 60.0), now=later(NOW, 60.0))

        assert [hosts.found[0][1].hosts for hosts in (first, second, third)] == [1, 1, 2]
        assert [hosts.read_at for hosts in (first, second, third)] == [NOW, NOW, later(NOW, 60.0)]

    loop.run(three_reads())


def test_cache_is_freed_after_a_minute_without_reads() -> None:
    loop = SeededLoop(1)  # type: ignore[abstract]
    clock = NodeClock(loop)

    async def one_read() -> None:
        kept = KeptStandings(Insight())
        table = ref((await kept.read(ONE, SINCE, now=NOW)).found[0][0])
        held = table() is not None
        await clock.sleep(KEPT_S)

        assert held and table() is None

    loop.run(one_read())


@pytest.mark.parametrize(("groups", "active_since"), [(OTHER, SINCE), ([*ONE, *OTHER], SINCE), (ONE, Instant(0.0))])
async def test_different_query_is_read_again(groups: Sequence[Sequence[AppVersion]], active_since: Instant) -> None:
    insight = Insight()
    kept = KeptStandings(insight)

    await kept.read(ONE, SINCE, now=NOW)
    hosts = await kept.read(groups, active_since, now=NOW)

    assert insight.calls == 2 and len(hosts.found) == len(groups)


@pytest.mark.parametrize(("rows", "calls"), [(MOST_KEPT, 1), (MOST_KEPT + 1, 2)])
async def test_large_reads_are_not_cached(rows: int, calls: int) -> None:
    insight = Insight(rows)
    kept = KeptStandings(insight)

    for _ in range(2):
        await kept.read(ONE, SINCE, now=NOW)

    assert insight.calls == calls


async def test_sample_stands_for_all_hosts() -> None:
    app = an_app()
    version = an_app_version(app_version_id=AppVersionId(1))
    kind = (app.app_id, version.processor_type)
    cuts = replace(some_cuts(), n=2 * MOST_READ + 1)
    catalogue = replace(a_catalogue(), current={app.app_id: (version,)}, cut_points={kind: cuts})

    standings, hosts = await KeptStandings(Insight(5)).of([kind], catalogue, now=NOW)

    [found] = standings.values()
    assert (hosts.one_in, found.one_in, found.table.size) == (3, 3, 5)
    assert set(found.table["calls_per_hour"].tolist()) == {3.0}
    assert found.newcomers == Newcomers(3, 6.0)


async def test_preview_shows_the_age_of_cached_hosts() -> None:
    store, clock = MemoryStore(), HandClock()
    await a_registered_version(store)
    thresholds, changes = Thresholds(as_postgres(store), clock), changes_of([("p_tight", 0.5)])

    first = await thresholds.preview(changes)
    clock.time = later(NOW, 40.0)
    second = await thresholds.preview(changes)

    assert [(one["computed_at"], one["hosts_read_at"]) for one in (first, second)] == [(NOW, NOW), (clock.time, NOW)]
    assert "(read" not in preview_as_text(first)
    assert "(read 40 s ago)" in preview_as_text(second)


DAY_S = 86400.0
OLD = DeadlineSettings()
TABLE = DeadlineSettings(afap=AfapPolicy.TABLE)


def waiting(*, retries: int = 0, validated: int = 0, **changes: Any) -> WaitingBatch:
    """Return a batch of 10 unsent instances."""
    batch = a_batch(counts=BatchCounts(jobs_total=10, unsent=10, jobs_validated=validated), **changes)
    return WaitingBatch(batch, retries, Seconds(7 * DAY_S))


def behind(one: WaitingBatch, old: DeadlineSettings = OLD, **changes: Any) -> dict[BehindGate, int]:
    """Return the gates, for hosts with a median R_q of a day and a retry turnaround of half a day."""
    cuts = some_cuts(median_safe_runtime_s=Seconds(DAY_S), retry_turnaround_s=Seconds(DAY_S / 2))
    catalogue = a_catalogue(cuts=[cuts])
    return behind_gates([one], under(catalogue, old), under(catalogue, replace(old, **changes)), now=NOW)


def under(catalogue: Catalogue, deadline: DeadlineSettings) -> Catalogue:
    return replace(catalogue, settings=replace(catalogue.settings, deadline=deadline))


def due_in(days: float) -> WaitingBatch:
    return waiting(qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, days * DAY_S))


@pytest.mark.parametrize(
    ("one", "gate", "threshold"),
    [
        (due_in(0.5), Gate.TIGHT, 0.9),
        (due_in(1.2), Gate.LATE, 0.5),
    ],
    ids=["due before it can end", "too late for a retry"],
)
def test_first_instances_have_the_gate_of_their_row(one: WaitingBatch, gate: Gate, threshold: float) -> None:
    assert behind(one) == {BehindGate(AppId(1), gate, ((CPU, threshold, threshold),)): 10}


def test_afap_work_is_gated_by_the_table_policy() -> None:
    assert behind(waiting(qos=QoS.AFAP), TABLE) == {BehindGate(AppId(1), Gate.AFAP, ((CPU, 0.5, 0.5),)): 10}


def test_prompt_afap_work_is_ungated() -> None:
    assert behind(waiting(qos=QoS.AFAP)) == {}


def test_afap_work_for_good_hosts_is_gated() -> None:
    afap = BehindGate(AppId(1), Gate.AFAP, ((CPU, 0.5, 0.5),))
    assert behind(waiting(qos=QoS.AFAP, completion_at=later(NOW, 1.2 * DAY_S), validated=5)) == {}
    assert behind(waiting(qos=QoS.AFAP), replace(OLD, afap_turn_factor=1.5)) == {afap: 10}


def test_afap_retries_have_the_retry_gate() -> None:
    retries = replace(waiting(qos=QoS.AFAP), retries_unsent=10)

    assert behind(retries, p_retry=0.4) == {BehindGate(AppId(1), Gate.RETRY, ((CPU, 0.5, 0.4),)): 10}
    assert behind(retries, p_afap=0.9) == {BehindGate(AppId(1), Gate.RETRY, ((CPU, 0.5, 0.5),)): 10}
    assert behind(retries, TABLE, p_afap=0.9) == {BehindGate(AppId(1), Gate.AFAP, ((CPU, 0.5, 0.9),)): 10}


@pytest.mark.parametrize("one", [waiting(), due_in(3.0), due_in(-1.0)], ids=["throughput", "in good time", "past"])
def test_unrestricted_work_is_ungated(one: WaitingBatch) -> None:
    assert behind(one) == {}


def test_retries_have_the_gate_of_their_row() -> None:
    assert behind(waiting(retries=3), p_retry=0.7) == {}
    late = replace(due_in(0.5), retries_unsent=10)
    assert set(behind(late, p_retry=0.7)) == {BehindGate(AppId(1), Gate.TIGHT, ((CPU, 0.9, 0.9),))}


def test_gates_without_ranking_are_capped_at_0_5() -> None:
    catalogue = a_catalogue()
    old, new = (under(catalogue, replace(TABLE, p_tight=p_tight)) for p_tight in (0.9, 0.4))
    found = behind_gates([due_in(-1.0)], old, new, now=NOW)

    assert found == {BehindGate(AppId(1), Gate.TIGHT, ((CPU, 0.5, 0.4),)): 10}


IN_TURN, OF_TABLE = frozenset({Gate.AFAP}), frozenset({Gate.LATE, Gate.TIGHT})


@pytest.mark.parametrize(
    ("one", "needed"),
    [
        (waiting(qos=QoS.AFAP), IN_TURN),
        (waiting(qos=QoS.AFAP, completion_at=later(NOW, 1.2 * DAY_S), validated=5), IN_TURN),
        (due_in(-1.0), IN_TURN),
        (due_in(0.5), OF_TABLE),
        (due_in(3.0), frozenset()),
        (waiting(), frozenset()),
        (replace(waiting(qos=QoS.AFAP), retries_unsent=10), IN_TURN | {Gate.RETRY}),
        (replace(due_in(0.5), retries_unsent=10), frozenset({Gate.TIGHT})),
    ],
    ids=["AFAP", "AFAP with an end", "past", "due soon", "in good time", "throughput", "AFAP retries", "retries"],
)
def test_batch_needs_the_gates_of_its_page(one: WaitingBatch, needed: frozenset[Gate]) -> None:
    """AFAP and late batches need p_afap, for slow or busy hosts."""
    cuts = some_cuts(median_safe_runtime_s=Seconds(DAY_S), retry_turnaround_s=Seconds(DAY_S / 2))
    assert gates_needed(one, under(a_catalogue(cuts=[cuts]), OLD), now=NOW) == needed


def test_batch_needs_no_gate_without_gates() -> None:
    catalogue = under(a_catalogue(), DeadlineSettings(rule=DeadlineRule.FIXED))
    assert gates_needed(waiting(qos=QoS.AFAP), catalogue, now=NOW) == frozenset()


def test_fixed_and_proposal_rules_do_not_gate() -> None:
    assert behind(due_in(0.5), DeadlineSettings(rule=DeadlineRule.FIXED)) == {}
    assert behind(waiting(retries=3), DeadlineSettings(rule=DeadlineRule.PROPOSAL)) == {}


def test_accelerated_batch_has_the_low_turnaround_gate() -> None:
    rule = DeadlineSettings(rule=DeadlineRule.ACCELERATED)
    one = waiting(retries=3)
    found = Acceleration(NOW, frozenset({HostId(1)}), frozenset({AppId(1)}), frozenset({one.batch.batch_id}))
    cuts = some_cuts(median_safe_runtime_s=Seconds(DAY_S))
    catalogue = under(replace(a_catalogue(cuts=[cuts]), acceleration=found), rule)

    assert behind_gates([one], catalogue, catalogue, now=NOW) == {
        BehindGate(AppId(1), Gate.LOW_TURNAROUND, ((CPU, 0.0, 0.0),)): 10
    }
    other = replace(catalogue, acceleration=replace(found, batches=frozenset()))
    assert behind_gates([one], other, other, now=NOW) == {}


def test_threshold_names_work_without_section_once() -> None:
    assert full_key("p_tight") == full_key("deadline.p_tight") == "deadline.p_tight"
    with pytest.raises(InvalidInputError, match="p_tight: expected one value"):
        changes_of([("p_tight", 0.8), ("deadline.p_tight", 0.7)])
    with states(InvalidInputError, "threshold:", "at least one KEY=VALUE"):
        changes_of([])


@pytest.mark.parametrize(("cuts", "fast"), [(some_cuts(), 2), (None, 1)], ids=["ranked", "bootstrap"])
def test_hosts_must_be_reliable_as_well_as_fast(cuts: CutPoints | None, fast: int) -> None:
    """Two hosts are fast, one of which failed last, and a third is slow."""
    rows = [(1, 1, 1, 11, False), (2, 2, 1, 0, True), (3, 3, 1, 11, cuts is None)]
    scores = (0.0, 0.0, 9.9)
    table = np.array(
        [(*row, NOW, 10.0, 10 * score, 0.0, 0.0, NOW, 1.0) for row, score in zip(rows, scores, strict=True)],
        list(STANDING_FIELDS),
    )
    of_type = (AppId(1), CPU)

    side = HostPopulationView({of_type: GateStanding(table, cuts, Newcomers())}, Settings(), now=NOW).side(
        of_type, Gate.LATE
    )

    assert (side["havs"], side["fast"]) == (1, fast)


@pytest.mark.parametrize(
    ("cuts", "threshold"),
    [
        (None, 0.5),  # no host is ranked yet
        (some_cuts(relaxed=(RelaxedGate(AppId(1), CPU, Gate.TIGHT, 0.7),)), 0.7),
        (some_cuts(), 0.9),
    ],
    ids=["unranked", "lowered", "as set"],
)
def test_gate_below_its_setting_has_the_reason(cuts: CutPoints | None, threshold: float) -> None:
    of_type = (AppId(1), CPU)
    standing = GateStanding(np.zeros(0, list(STANDING_FIELDS)), cuts, Newcomers())

    side = HostPopulationView({of_type: standing}, Settings(), now=NOW).side(of_type, Gate.TIGHT)

    reasons = {0.5: UNRANKED, 0.7: LOWERED, 0.9: ""}
    assert (side["asked"], side["threshold"], side["because"]) == (0.9, threshold, reasons[threshold])


@pytest.mark.parametrize("measured", [0, 1])
def test_gate_of_unranked_hosts_opens_once_jobs_wait(measured: int) -> None:
    """Without a measured host, gates are capped; otherwise they stay as set while no jobs wait."""
    of_type = (AppId(1), CPU)
    cuts = some_cuts(n=measured, turnaround=(0.5,) * measured)
    standings = {of_type: GateStanding(np.zeros(0, list(STANDING_FIELDS)), cuts, Newcomers(49, 10.0))}
    catalogue = under(a_catalogue(cuts=[cuts]), replace(OLD, p_retry=0.7))
    retries = replace(waiting(qos=QoS.AFAP), retries_unsent=10)
    population = HostPopulationView(standings, catalogue.settings, now=NOW)

    idle, busy = (
        population.under(with_relaxed_gates(work, standings, catalogue, now=NOW)).side(of_type, Gate.RETRY)
        for work in ((), (retries,))
    )

    assert (idle["threshold"], idle["newcomers"]) == ((0.7, 0) if measured else (0.5, 49))
    assert busy["threshold"] <= 0.5 and busy["newcomers"] == 49 and busy["because"]
