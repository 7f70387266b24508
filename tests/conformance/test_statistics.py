"""Tests how events change the statistics of a (host, app version): as in domain.havs, on every store."""

from __future__ import annotations

import math
from typing import Any

import pytest

from domain.dispatch import InstanceStep, RequestWrites
from domain.havs import HavEvent, HavEventKind, applied, combine
from domain.hosts import DecayedSums, HostAppVersion
from domain.jobs import InstanceState, JobState
from domain.settlement import JobSettlement
from domain.units import AppVersionId, Instant, later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import (
    DAY_S,
    RegisteredHost,
    a_hav_event,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    an_assignment,
    read,
    report,
    send,
    the_version,
    waiting_of,
)

KINDS = HavEventKind
S = InstanceState


async def hav_of(store: Store, host: RegisteredHost, version_id: AppVersionId) -> HostAppVersion:
    view = await read(store, host)
    _, rows = await store.views.host(host.host_id)
    assert {row.app_version_id: row for row in rows} == dict(view.havs)
    return view.havs[version_id]


def assert_same(row: HostAppVersion, expected: HostAppVersion) -> None:
    """Assert equality except for the last digits of sums."""
    for ours, theirs in ((row.speed, expected.speed), (row.tight, expected.tight), (row.relaxed, expected.relaxed)):
        sums = (theirs.n, theirs.total, theirs.total_sq, theirs.at)
        assert (ours.n, ours.total, ours.total_sq, ours.at) == pytest.approx(sums, rel=1e-9, abs=1e-9)
    assert row.tight_missed_n == pytest.approx(expected.tight_missed_n, rel=1e-9, abs=1e-9)
    for field in (
        "clean_since_at",
        "consecutive_valid",
        "quota_per_day",
        "n_valid",
        "n_error",
        "n_timeout",
        "n_due",
        "inherited_from",
    ):
        assert getattr(row, field) == getattr(expected, field), field


async def test_a_dispatch_makes_the_row_and_counts_for_its_day(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=4)
    day = int(NOW // DAY_S)
    for sent_at, expected in ((NOW, (day, 1)), (later(NOW, 60.0), (day, 2)), (later(NOW, DAY_S), (day + 1, 1))):
        sent = await a_sent_instance(store, batch.batch_id, host, sent_at=sent_at)
        row = await hav_of(store, host, sent.app_version_id)
        assert (row.day, row.sent_today) == expected
    assert (row.quota_per_day, row.consecutive_valid, row.n_due, row.relaxed) == (0, 0, 0, DecayedSums())


async def test_two_dispatches_in_one_write_count_as_two(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    version = await the_version(store)

    await send(store, host, *(an_assignment(one, host, version) for one in await waiting_of(store, batch.batch_id)))

    assert (await hav_of(store, host, version.app_version_id)).sent_today == 2


def the_story(host: RegisteredHost, version_id: AppVersionId) -> list[list[HavEvent]]:
    """Yield weeks of a host's events, grouped by request."""

    def event(kind: HavEventKind, days: float, **changes: Any) -> HavEvent:
        at = Instant(NOW + days * DAY_S)
        return HavEvent(host.host_id, version_id, kind, at, **changes)

    return [
        [event(KINDS.VALID, 0.0, ln_turnaround_ratio=0.5, ln_turnaround=9.0, speed_s_per_flop=1e-9)],
        [
            event(KINDS.VALID, 1.0, ln_turnaround_ratio=1.5, ln_turnaround=9.5, speed_s_per_flop=2e-9),
            event(
                KINDS.VALID,
                1.5,
                tight=True,
                ln_turnaround_ratio=-0.5,
                ln_turnaround=8.0,
                speed_s_per_flop=3e-9,
                late=True,
            ),
        ],
        [event(KINDS.TIMED_OUT, 14.0, ln_turnaround_ratio=2.5)],
        [
            event(
                KINDS.VALID,
                15.0,
                ln_turnaround_ratio=2.75,
                replaces=2.5,
                replaces_at=later(NOW, 14 * DAY_S),
                ln_turnaround=11.0,
            )
        ],
        [event(KINDS.ERROR, 16.0), event(KINDS.VALID, 16.0, ln_turnaround_ratio=0.25), event(KINDS.INVALID, 16.0)],
        [event(KINDS.VALID, 30.0, ln_turnaround_ratio=0.25), event(KINDS.VALID, 29.0, ln_turnaround_ratio=0.125)],
        [event(KINDS.ERROR, 12.0)],
        [event(KINDS.VALID, 32.0) for _ in range(12)],
        [event(KINDS.VALID, 33.0), *[event(KINDS.ERROR, 33.0)] * 20],
        [event(KINDS.TIMED_OUT, 34.0, ln_turnaround_ratio=2.5)],
        [event(KINDS.INVALID, 35.0, replaces=2.5, replaces_at=later(NOW, 34 * DAY_S))],
    ]


async def test_events_change_the_row_as_the_domain_says_over_weeks(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=60)
    sent = await a_sent_instance(store, batch.batch_id, host)
    expected = await hav_of(store, host, sent.app_version_id)

    for events in the_story(host, sent.app_version_id):
        held = [await a_sent_instance(store, batch.batch_id, host) for _ in events]
        reports = [a_report(one, hav_event=event) for one, event in zip(held, events, strict=True)]
        await report(store, host, *reports)
        [delta] = combine(events, quota_most=500)
        expected = applied(expected, delta, quota_start=50)

        assert_same(await hav_of(store, host, sent.app_version_id), expected)


async def test_sums_lose_half_their_weight_in_a_fortnight(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    for days, ratio in ((0.0, 2.0), (14.0, 3.0)):
        sent = await a_sent_instance(store, batch.batch_id, host)
        event = a_hav_event(sent, at=later(NOW, days * DAY_S), ln_turnaround_ratio=ratio)
        await report(store, host, a_report(sent, hav_event=event))

    relaxed = (await hav_of(store, host, sent.app_version_id)).relaxed

    assert (relaxed.n, relaxed.total, relaxed.total_sq) == pytest.approx((1.5, 4.0, 11.0))
    assert relaxed.at == NOW + 14 * DAY_S


async def test_quota_doubles_to_setting_and_falls_by_one(store: Store) -> None:
    await store.settings.set_setting("scheduler.daily_quota", 150, now=NOW, who="ops", why="")
    await store.settings.set_setting("scheduler.daily_quota_start", 40, now=NOW, who="ops", why="")
    await store.applications.load_catalogue()
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=5)
    for kind, quota in ((KINDS.ERROR, 39), (KINDS.VALID, 78), (KINDS.VALID, 150), (KINDS.TIMED_OUT, 149)):
        sent = await a_sent_instance(store, batch.batch_id, host)
        await report(store, host, a_report(sent, hav_event=a_hav_event(sent, kind)))
        assert (await hav_of(store, host, sent.app_version_id)).quota_per_day == quota


async def test_a_quota_never_falls_below_one(store: Store) -> None:
    await store.settings.set_setting("scheduler.daily_quota_start", 1, now=NOW, who="ops", why="")
    await store.applications.load_catalogue()
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, (await a_submitted_batch(store)).batch_id, host)

    await report(store, host, a_report(sent, hav_event=a_hav_event(sent, KINDS.ERROR)))

    assert (await hav_of(store, host, sent.app_version_id)).quota_per_day == 1


async def test_the_event_of_a_report_that_lost_its_race_does_not_count(store: Store) -> None:
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, (await a_submitted_batch(store)).batch_id, host)
    again = a_report(sent, to_state=InstanceState.FAILED, hav_event=a_hav_event(sent, KINDS.ERROR))

    await report(store, host, again, again)
    await report(store, host, again)

    assert (await hav_of(store, host, sent.app_version_id)).n_error == 1


async def test_an_event_for_a_version_without_a_row_makes_one(store: Store) -> None:
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, (await a_submitted_batch(store)).batch_id, host)
    event = a_hav_event(sent, app_version_id=AppVersionId(77), ln_turnaround_ratio=math.log(2.0))

    await store.ledger.write(RequestWrites(host.host, reports=(a_report(sent, hav_event=event),)))

    row = await hav_of(store, host, AppVersionId(77))
    assert (row.n_valid, row.consecutive_valid, row.quota_per_day, row.relaxed.n) == (1, 1, 100, 1.0)


async def test_events_of_request_count_in_report_order(store: Store) -> None:
    """Two valid results and an error: the final statistics depend on which was last."""
    for kinds, consecutive_valid, quota in (
        ((KINDS.ERROR, KINDS.VALID, KINDS.VALID), 2, 196),
        ((KINDS.VALID, KINDS.VALID, KINDS.ERROR), 0, 199),
        ((KINDS.VALID, KINDS.ERROR, KINDS.VALID), 1, 198),
    ):
        for backwards in (False, True):
            host = await a_registered_host(store)
            batch = await a_submitted_batch(store, jobs=3)
            held = [await a_sent_instance(store, batch.batch_id, host) for _ in kinds]
            held.sort(key=lambda one: one.instance_id, reverse=backwards)

            events = [a_hav_event(one, kind) for one, kind in zip(held, kinds, strict=True)]
            await report(
                store, host, *(a_report(one, hav_event=event) for one, event in zip(held, events, strict=True))
            )

            row = await hav_of(store, host, held[0].app_version_id)
            assert (row.consecutive_valid, row.quota_per_day) == (consecutive_valid, quota)


async def test_settlement_and_time_out_events_count_in_step_order(store: Store) -> None:
    for backwards in (False, True):
        host = await a_registered_host(store)
        batch = await a_submitted_batch(store, jobs=4)
        held = [await a_sent_instance(store, batch.batch_id, host) for _ in range(4)]
        held.sort(key=lambda one: one.instance_id, reverse=backwards)
        await report(store, host, *(a_report(one) for one in held[:2]))
        facts = {one.job_id: one for one in await store.unsettled.unsettled(9, now=NOW)}
        settlements = [
            JobSettlement(
                one.job_id,
                facts[one.job_id].serial,
                JobState.VALID if kind is KINDS.VALID else JobState.FAILED,
                NOW,
                canonical_instance_id=one.instance_id if kind is KINDS.VALID else None,
                steps=(InstanceStep(one.instance_id, S.REPORTED, to_state, hav_event=a_hav_event(one, kind)),),
            )
            for one, kind, to_state in zip(held, (KINDS.INVALID, KINDS.VALID), (S.INVALID, S.VALID), strict=False)
        ]
        assert await store.unsettled.settle(settlements) == 2
        assert (await hav_of(store, host, held[0].app_version_id)).consecutive_valid == 1

        kinds = (KINDS.TIMED_OUT, KINDS.VALID)  # the sweeper chooses the kinds; the order is the store's
        steps = [
            InstanceStep(one.instance_id, S.IN_PROGRESS, S.TIMED_OUT, hav_event=a_hav_event(one, kind))
            for one, kind in zip(held[2:], kinds, strict=True)
        ]
        assert await store.overdue.time_out(steps, now=later(NOW, 1e6)) == 2
        assert (await hav_of(store, host, held[0].app_version_id)).consecutive_valid == 1
