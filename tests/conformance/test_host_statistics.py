"""Tests input and output of the host statistics, on every store: the same hosts give the same percentiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.apps import CPU, DEFAULT_PLAN_CLASS, NVIDIA, AppVersion, PlanClass
from domain.ranking import FORGIVEN, HAV_FIELDS, AppFacts, HostStatisticsRun, Percentile, Since
from domain.units import AppVersionId, BatchId, Flop, Instant, later
from hoststats.ports import HostStatisticsPorts, Table
from hoststats.service import HostStatistics, Progress
from scheduler.gates import percentile_of
from tests.builders import NOW
from tests.stores import Store
from tests.unit.jobs.projects import HandClock
from tests.worlds import (
    DAY_S,
    RegisteredHost,
    a_hav_event,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    read,
    report,
)

CUDA = PlanClass("cuda", gpu_type=NVIDIA)
SINCE = Since(NOW, Instant(0.0), Instant(0.0))  # recently active hosts, with results at any time


def statistics(store: Store, now: Instant = NOW) -> HostStatistics:
    return HostStatistics(HostStatisticsPorts(store.applications, store.hav_tables, store.generations), HandClock(now))


async def ranked(store: Store, now: Instant = NOW, *, full: bool = True) -> HostStatisticsRun:
    run = await statistics(store, now).run(full=full)
    assert run is not None
    return run


async def one_sample_is_enough(store: Store) -> None:
    await store.settings.set_setting("ranking.min_samples", 0.9, now=NOW, who="test", why="")


async def a_result(store: Store, host: RegisteredHost, batch_id: BatchId, ratio: float, version: AppVersion) -> None:
    """Report a valid result of the host after e^ratio times the estimated time."""
    sent = await a_sent_instance(store, batch_id, host, app_version_id=version.app_version_id)
    event = a_hav_event(sent, at=NOW, ln_turnaround_ratio=ratio, ln_turnaround=8.0 + ratio, speed_s_per_flop=1e-9)
    await report(store, host, a_report(sent, hav_event=event))


async def some_hosts(store: Store, count: int, version: AppVersion) -> list[RegisteredHost]:
    """Create active hosts with a result each, the fastest first."""
    batch = await a_submitted_batch(store, jobs=count)
    hosts = [await a_registered_host(store, last_rpc_at=NOW) for _ in range(count)]
    for position, host in enumerate(hosts):
        await a_result(store, host, batch.batch_id, position / 10, version)
    return hosts


async def table_of(store: Store, versions: list[AppVersion], since: Since) -> Table:
    [(app_id, table)] = [found async for found in store.hav_tables.of_apps({versions[0].app_id: versions}, since)]
    assert app_id == versions[0].app_id
    return table


async def p_of(store: Store, host: RegisteredHost) -> dict[AppVersionId, float]:
    return {row.app_version_id: row.p for row in await store.generations.percentiles_of(host.host_id)}


async def test_every_field_of_a_hosts_row_is_read(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=3)
    host = await a_registered_host(store, last_rpc_at=NOW, on_fraction=0.5, active_fraction=0.5)
    for tight, ratio in ((False, 0.5), (True, -0.25)):
        sent = await a_sent_instance(store, batch.batch_id, host, tight=tight)
        event = a_hav_event(
            sent, at=NOW, ln_turnaround_ratio=ratio, ln_turnaround=8.0, speed_s_per_flop=2e-9, late=tight
        )
        await report(store, host, a_report(sent, hav_event=event))

    [row] = (await table_of(store, [version], SINCE)).tolist()

    assert dict(zip([name for name, _ in HAV_FIELDS], row, strict=True)) == pytest.approx(
        {
            "host_id": host.host_id,
            "app_version_id": version.app_version_id,
            "consecutive_valid": 2,
            "active": True,
            "failed": False,
            "stats_at": NOW,
            "relaxed_n": 1.0,
            "relaxed_sum": 0.5,
            "tight_n": 1.0,
            "tight_sum": -0.25,
            "tight_sum_sq": 0.0625,
            "tight_missed_n": 1.0,
            "log_n": 2,
            "log_sum": 16.0,
            "log_sum_sq": 128.0,
            "s_per_flop": 8e-9,
        }
    )


async def test_silent_host_is_inactive_and_new_host_has_no_speed(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=1)
    host = await a_registered_host(store, last_rpc_at=NOW)
    await a_sent_instance(store, batch.batch_id, host)

    table = await table_of(store, [version], replace(SINCE, called_at=later(NOW, 1.0)))

    assert table["active"].tolist() == [False]
    assert table["s_per_flop"].tolist() == pytest.approx([float("nan")], nan_ok=True)


async def test_a_row_without_a_result_lately_is_not_active(store: Store) -> None:
    version = await a_registered_version(store)
    await some_hosts(store, 1, version)

    for used_at, active in ((NOW, True), (later(NOW, 1.0), False)):
        table = await table_of(store, [version], replace(SINCE, used_at=used_at))
        assert table["active"].tolist() == [active]


async def test_long_clean_row_counts_as_many_valid_results(store: Store) -> None:
    version = await a_registered_version(store)
    [host] = await some_hosts(store, 1, version)
    batch = await a_submitted_batch(store, jobs=3)

    counted = []
    for _ in range(3):
        table = await table_of(store, [version], replace(SINCE, clean_at=NOW))
        counted += table["consecutive_valid"].tolist()
        await a_result(store, host, batch.batch_id, 0.0, version)
    [row] = await table_of(store, [version], replace(SINCE, clean_at=NOW))
    [failed_since] = await table_of(store, [version], replace(SINCE, clean_at=Instant(NOW - 1.0)))

    assert counted == [1, 2, FORGIVEN]
    assert int(row["consecutive_valid"]) == FORGIVEN
    assert int(failed_since["consecutive_valid"]) == 4


async def test_only_rows_of_the_versions_asked_for_are_read(store: Store) -> None:
    old = await a_registered_version(store, version_num=100)
    await some_hosts(store, 2, old)
    await store.applications.put_plan_class(CUDA)
    cuda = await a_registered_version(store, version_num=100, plan_class=CUDA)

    assert (await table_of(store, [old], SINCE)).size == 2
    assert (await table_of(store, [cuda], SINCE)).size == 0


async def test_an_app_without_batches_has_no_facts(store: Store) -> None:
    version = await a_registered_version(store)

    assert await store.hav_tables.facts(version.app_id) == AppFacts()


async def test_the_typical_size_is_that_of_the_apps_classes(store: Store) -> None:
    version = await a_registered_version(store)
    await a_submitted_batch(store)

    assert await store.hav_tables.facts(version.app_id) == AppFacts(Flop(3.6e12))


async def test_a_run_ranks_every_host_and_requests_are_judged_by_it(store: Store) -> None:
    await one_sample_is_enough(store)
    version = await a_registered_version(store)
    hosts = await some_hosts(store, 20, version)
    before = await store.applications.load_catalogue()
    assert before.cut_points == {}

    run = await ranked(store)

    [part] = run.parts
    assert (part.rows, part.population, part.ranked, part.small_population) == (20, 20, 20, False)
    assert part.median_safe_runtime_s is not None
    catalogue = await store.applications.load_catalogue()
    assert set(catalogue.cut_points) == {(version.app_id, CPU)}
    for host in (hosts[0], hosts[9], hosts[-1]):
        view = await read(store, host)
        judged: Percentile = percentile_of(version, view.havs, catalogue, now=NOW)
        assert judged.p == pytest.approx((await p_of(store, host))[version.app_version_id], abs=1e-6)


async def test_a_row_that_changed_since_is_ranked_as_it_is_now(store: Store) -> None:
    await one_sample_is_enough(store)
    version = await a_registered_version(store)
    hosts = await some_hosts(store, 20, version)
    await ranked(store)
    batch = await a_submitted_batch(store, jobs=12)
    for _ in range(12):
        await a_result(store, hosts[-1], batch.batch_id, -3.0, version)

    view = await read(store, hosts[-1])
    judged = percentile_of(version, view.havs, await store.applications.load_catalogue(), now=NOW)

    assert (await p_of(store, hosts[-1]))[version.app_version_id] < 0.1
    assert judged.p == 1.0


async def test_a_new_version_begins_with_what_its_predecessor_left(store: Store) -> None:
    await one_sample_is_enough(store)
    hosts = await some_hosts(store, 20, await a_registered_version(store, version_num=100))
    new = await a_registered_version(store, version_num=101)

    run = await ranked(store)

    assert [(part.rows, part.ranked) for part in run.parts] == [(20, 20)]
    assert set(await p_of(store, hosts[0])) == {new.app_version_id}


async def test_each_kind_of_processor_has_cut_points_of_its_own(store: Store) -> None:
    await store.applications.put_plan_class(CUDA)
    for plan_class in (DEFAULT_PLAN_CLASS, CUDA):
        await some_hosts(store, 2, await a_registered_version(store, version_num=100, plan_class=plan_class))

    await ranked(store)

    cuts = (await store.applications.load_catalogue()).cut_points
    assert {kind for _, kind in cuts} == {CPU, NVIDIA}


async def test_second_run_gives_same_result_in_new_generation(store: Store) -> None:
    await one_sample_is_enough(store)
    hosts = await some_hosts(store, 21, await a_registered_version(store))

    first = await ranked(store)
    then = [await p_of(store, host) for host in hosts]
    second = await ranked(store)

    assert [await p_of(store, host) for host in hosts] == then
    assert (second.generation > first.generation, second.parts) == (True, first.parts)
    assert [run.generation for run in await store.generations.runs(9)] == [second.generation, first.generation]
    assert (await store.generations.runs(1))[0] == second


async def test_cut_point_refresh_keeps_last_full_percentiles(store: Store) -> None:
    await one_sample_is_enough(store)
    hosts = await some_hosts(store, 20, await a_registered_version(store))
    await ranked(store)
    percentiles = await p_of(store, hosts[0])
    assert percentiles

    for hour in range(1, 4):
        await ranked(store, later(NOW, hour * 3600.0), full=False)

    assert await p_of(store, hosts[0]) == percentiles
    [cuts] = (await store.applications.load_catalogue()).cut_points.values()
    assert cuts.computed_at == later(NOW, 3 * 3600.0)


async def test_while_a_run_is_under_way_there_is_no_other(store: Store) -> None:
    async with store.generations.new(now=NOW, full=True) as generation:
        assert generation is not None
        assert await statistics(store).run() is None

    assert await statistics(store).run() is not None


async def test_interrupted_run_changes_nothing_and_next_one_runs(store: Store) -> None:
    await one_sample_is_enough(store)
    hosts = await some_hosts(store, 20, await a_registered_version(store))
    await ranked(store)
    before, standing = await store.applications.load_catalogue(), await p_of(store, hosts[0])

    def break_off(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await statistics(store, later(NOW, DAY_S)).run(report=break_off)

    assert (await store.applications.load_catalogue()).cut_points == before.cut_points
    assert await p_of(store, hosts[0]) == standing
    assert len(await store.generations.runs(9)) == 1
    assert await statistics(store, later(NOW, DAY_S)).run() is not None


async def test_all_but_current_and_previous_generation_are_removed(store: Store) -> None:
    await some_hosts(store, 1, await a_registered_version(store))
    for _ in range(3):
        await ranked(store)

    assert await store.generations.remove_old() == 0
    assert len(await store.generations.runs(9)) == 3


async def test_progress_is_reported_per_app(store: Store) -> None:
    await some_hosts(store, 2, await a_registered_version(store))
    told: list[Progress] = []

    await statistics(store).run(report=told.append)

    assert told == [Progress(0, 1, "pi", "read", 2), replace(told[0], step="ranked", processor_type=CPU)]
