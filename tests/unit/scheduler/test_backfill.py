"""Leases of busy hosts to big jobs, and backfill around them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import CPU
from domain.batches import QoS
from domain.jobs import InstanceInProgress
from domain.refusals import RefusalCode
from domain.reservations import Kept, Lease, Reserved
from domain.units import DAY_S, HOUR_S, AppId, AppVersionId, BatchId, Flop, HostId, Instant, Seconds, later
from scheduler.choice import Choice
from scheduler.context import ClientTask, SchedulingContext
from scheduler.selection import choose
from scheduler.stages import Stage
from scheduler.trace import traced
from tests.builders import NOW, a_held, a_host, a_plan_class, an_app, an_app_version
from tests.facts import missing
from tests.unit.scheduler.arrays import ListArray, ListGroup, a_catalogue, a_group, a_want, an_asking, some_cuts
from tests.unit.scheduler.test_selection import ranked

BIG, SMALL = BatchId(1), BatchId(2)
CORES = 8
KEPT = {BIG: Kept(BIG, NOW)}


def big(jobs: int = 1, hours: float = 10.0, bound_h: float = 12.0) -> ListGroup:
    """Jobs for all processors, first in order."""
    flop, bound_s = Flop(hours * HOUR_S * CORES * 1e9), Seconds(bound_h * HOUR_S)
    return a_group(1, jobs, app_id=AppId(2), fpops_est_flop=flop, delay_bound_s=bound_s, ncpus=float(CORES))


def small(jobs: int = 100, hours: float = 4.0, number: int = 2) -> ListGroup:
    return a_group(number, jobs, fpops_est_flop=Flop(hours * HOUR_S * 1e9), delay_bound_s=Seconds(30 * DAY_S))


def working(hours: float, name: str = "other", ncpus: float = 1.0) -> ClientTask:
    return ClientTask(name, later(NOW, 30 * DAY_S), Seconds(hours * HOUR_S), ncpus)


def context(
    *work: ClientTask,
    reserved: Reserved | None = None,
    idle: int = 0,
    hours: float = 1.0,
    held: tuple[InstanceInProgress, ...] = (),
    now: Instant = NOW,
    **settings: Any,
) -> SchedulingContext:
    """A host of 8 processors with this work that requests more; due dates are now + D."""
    wide = an_app_version(app_version_id=AppVersionId(2), app_id=AppId(2), plan_class=a_plan_class(ncpus=float(CORES)))
    apps = [an_app(), an_app(app_id=AppId(2), name="wide")]
    catalogue = a_catalogue(an_app_version(), wide, apps=apps, deadline__rule="fixed", **settings)
    return an_asking(
        now=now,
        host=a_host(ncpus=CORES),
        catalogue=replace(catalogue, reserved=Reserved(KEPT) if reserved is None else reserved),
        wants=(a_want(CPU, count=CORES, req_s=Seconds(hours * HOUR_S), req_instances=float(idle)),),
        in_progress=work,
        held=held,
    )


def chosen(request: SchedulingContext, *groups: ListGroup) -> Choice:
    return choose(request, ListArray(list(groups)))


def batches(choice: Choice) -> list[int]:
    return [one.batch.batch_id for one in choice.chosen]


def a_lease(start_h: float = 5.0, **changes: Any) -> Lease:
    start_at = later(NOW, start_h * HOUR_S)
    lease = Lease(BIG, HostId(1), 8.0, start_at, Seconds(25 * HOUR_S), later(start_at, HOUR_S), CPU, NOW)
    return replace(lease, **changes)


def leased(**changes: Any) -> Reserved:
    lease = a_lease(**changes)
    return Reserved(KEPT, {lease.host_id: lease})


BUSY = tuple(working(5.0, f"work {n}") for n in range(CORES))


# ------------------------------------------------------------------ making one


def test_busy_host_is_leased_from_the_end_of_its_work() -> None:
    lease = chosen(context(*BUSY), big(), small()).lease

    assert lease is not None
    assert (lease.batch_id, lease.host_id, lease.cores, lease.processor_type) == (BIG, 1, 8.0, CPU)
    assert (lease.start_at, lease.made_at) == (later(NOW, 5 * HOUR_S), NOW)
    assert lease.expires_at == later(lease.start_at, HOUR_S)


@pytest.mark.parametrize(
    ("why", "request_"),
    [
        ("no slot is reserved for it", context(*BUSY, reserved=Reserved())),
        (
            "another host is leased to it",
            context(*BUSY, reserved=Reserved(KEPT, {HostId(7): a_lease(host_id=HostId(7))})),
        ),
        ("an earlier lease of the host expired", context(*BUSY, reserved=leased(ended_at=NOW, because="expired"))),
        ("it would begin too late", context(*(working(30.0, str(n)) for n in range(CORES)))),
    ],
    ids=lambda one: one.replace(" ", "-") if isinstance(one, str) else "",
)
def test_no_host_is_promised_where(why: str, request_: SchedulingContext) -> None:
    assert chosen(request_, big(), small()).lease is None, why


def test_no_lease_for_a_job_too_slow_even_on_an_idle_host() -> None:
    assert chosen(context(*BUSY), big(bound_h=9.0), small()).lease is None


def test_no_host_is_promised_to_a_job_on_one_processor() -> None:
    narrow = a_group(1, fpops_est_flop=Flop(10 * HOUR_S * 1e9), delay_bound_s=Seconds(12 * HOUR_S))

    assert chosen(context(*BUSY), narrow, small()).lease is None


def test_the_request_that_makes_a_lease_goes_by_it() -> None:
    choice = chosen(context(*BUSY[:7]), big(), small(hours=7.0), small(hours=5.5, number=3))

    assert choice.lease is not None
    assert batches(choice) == [3]
    assert RefusalCode.LEASED in choice.counts()


# ------------------------------------------------------------------ going by one


def test_work_ending_within_lease_slack_fits() -> None:
    def given_(hours: float) -> list[int]:
        return batches(chosen(context(*BUSY[:7], reserved=leased(), hours=0.1), small(hours=hours)))

    assert given_(5.9) == [SMALL]
    assert given_(6.1) == []


def test_a_refusal_names_both_numbers() -> None:
    choice = chosen(context(*BUSY, reserved=leased()), small())

    refusals, why = choice.reasons({})[RefusalCode.LEASED]
    assert (refusals, missing(why, "batch 1", "5 h", "4 h", "7 of 8")) == (1, [])


def test_what_leaves_enough_processors_may_last_longer() -> None:
    half = leased(cores=4.0)

    assert batches(chosen(context(*BUSY[:4], reserved=half, hours=0.1), small(hours=50.0))) == [SMALL]
    assert batches(chosen(context(*BUSY[:4], reserved=half, hours=1e3), small(hours=50.0))) == [SMALL] * 4


def test_the_big_job_is_given_first_as_soon_as_it_fits() -> None:
    request = context(*(working(1.5, str(n)) for n in range(CORES)), reserved=leased())
    behind = a_group(1, 5, app_id=AppId(2), fpops_est_flop=big().job_class.fpops_est_flop, order_key=9.0)
    behind.job_class = replace(behind.job_class, delay_bound_s=Seconds(12 * HOUR_S))

    found = traced(request, ListArray([small(), behind]))

    assert batches(found.choice)[:1] == [BIG]
    assert batches(found.choice).count(BIG) == 1
    assert found.steps[0].stage is Stage.LEASED


def test_used_or_expired_lease_binds_no_host() -> None:
    has_it = a_held(batch_id=BIG, app_version_id=AppVersionId(2), sent_at=later(NOW, 1.0))
    had_one = a_held(batch_id=BIG, app_version_id=AppVersionId(2), sent_at=later(NOW, -1.0))

    assert batches(chosen(context(*BUSY, reserved=leased(), held=(has_it,)), small())) == [SMALL]
    assert batches(chosen(context(*BUSY, reserved=leased(), held=(had_one,)), small())) == []
    assert batches(chosen(context(*BUSY, reserved=leased(expires_at=NOW)), small())) == [SMALL]


# ------------------------------------------------------------------ no host idles for long


def test_idle_processors_get_shortest_work_if_nothing_fits() -> None:
    request = context(*BUSY[:5], reserved=leased(), idle=3, hours=1e3)

    choice = chosen(request, small(2, hours=30.0), small(2, hours=20.0, number=3))

    assert batches(choice) == [3, 3, 2]  # as many as are idle


def test_idle_processors_get_gated_work_beyond_its_share() -> None:
    """Nothing else is left for them; a request that gets nothing has a reason in any case."""
    request = context(*BUSY[:5], reserved=leased(), idle=3, hours=1e3)
    settings = request.catalogue.settings.changed("deadline.rule", "muster")
    settings = settings.changed("scheduler.urgent_share_fraction", 0.0).changed("deadline.afap", "table")
    request = replace(request, catalogue=replace(request.catalogue, settings=settings))
    gated = a_group(2, 9, qos=QoS.AFAP, fpops_est_flop=Flop(8 * HOUR_S * 1e9), delay_bound_s=Seconds(30 * DAY_S))
    assert batches(chosen(request, gated)) == [2, 2, 2]


def test_idle_processors_wait_for_a_lease_within_its_slack() -> None:
    assert batches(chosen(context(*BUSY[:5], reserved=leased(start_h=0.9), idle=3, hours=1e3), small(hours=30.0))) == []


@given(
    hours=st.lists(st.floats(0.1, 60.0), min_size=1, max_size=6),
    busy=st.lists(st.floats(0.1, 20.0), max_size=CORES),
    start_h=st.floats(0.0, 23.0),
    wish_h=st.floats(0.1, 200.0),
)
def test_lease_leaves_no_host_idle_and_is_never_delayed(
    hours: list[float], busy: list[float], start_h: float, wish_h: float
) -> None:
    work = [working(one, f"work {n}") for n, one in enumerate(busy)]
    idle = CORES - len(busy)
    request = context(*work, reserved=leased(start_h=start_h), idle=idle, hours=wish_h)

    choice = chosen(request, *(small(20, hours=one, number=n + 2) for n, one in enumerate(hours)))

    slack_h = 1.0
    if idle and start_h > slack_h:
        assert len(choice.chosen) >= idle
    elif not idle:
        free = sorted(busy)
        for one in choice.chosen:  # in sending order
            free[0] += one.assignment.est_runtime_s / HOUR_S
            free.sort()
        late_before = sum(h > start_h + slack_h + 1e-6 for h in busy)
        assert sum(h > start_h + slack_h + 1e-6 for h in free) <= late_before


# ------------------------------------------------------------------ the whole story


@dataclass
class OneHost:
    """A host that buffers 8 hours of work and sends a request every hour."""

    reserved: Reserved
    free_h: list[float]

    def until_big(self, most_h: int) -> int | None:
        """Return the hours until it gets the big job; None: not within `most_h`."""
        for hour in range(most_h):
            now = later(NOW, hour * HOUR_S)
            choice = self.ask(now)
            if BIG in batches(choice):
                return hour
            if choice.lease is not None:
                self.reserved = Reserved(KEPT, {HostId(1): choice.lease})
            self.free_h = [max(0.0, one - 1.0) for one in self.free_h]
        return None

    def ask(self, now: Instant) -> Choice:
        work = [working(one, f"work {n}") for n, one in enumerate(self.free_h) if one > 0.0]
        lacks_h = sum(max(0.0, 8.0 - one) for one in self.free_h)
        idle = sum(one <= 0.0 for one in self.free_h)
        request = context(*work, reserved=self.reserved, idle=idle, hours=max(0.01, lacks_h), now=now)
        choice = chosen(request, big(), small(hours=4.0), small(hours=1.0, number=3))
        for one in choice.chosen:
            if one.batch.batch_id != BIG:
                self.free_h.sort()
                self.free_h[0] += one.assignment.est_runtime_s / HOUR_S
        return choice


def test_big_job_starts_among_small_ones_only_with_reservation() -> None:
    at_work = [4.0 + n / 2 for n in range(CORES)]

    assert OneHost(Reserved(), list(at_work)).until_big(500) is None
    with_lease = OneHost(Reserved(KEPT), list(at_work)).until_big(500)
    assert with_lease is not None and with_lease <= 8


def test_its_processors_are_at_work_all_the_while() -> None:
    host = OneHost(Reserved(KEPT), [4.0 + n / 2 for n in range(CORES)])
    idle_h = 0.0
    for hour in range(24):
        choice = host.ask(later(NOW, hour * HOUR_S))
        if BIG in batches(choice):
            break
        if choice.lease is not None:
            host.reserved = Reserved(KEPT, {HostId(1): choice.lease})
        idle_h += sum(max(0.0, 1.0 - one) for one in host.free_h)
        host.free_h = [max(0.0, one - 1.0) for one in host.free_h]

    assert idle_h == 0.0


WORK_H = 10.0  # not started, on each of its two processors


def tight(hours: float, jobs: int = 1, **settings: Any) -> Choice:
    """Return the choice for a good host with two ten-hour jobs from an AFAP batch without an estimate."""
    held = tuple(
        a_held(
            instance_id=n,
            name=f"old {n}",
            batch_id=9,
            est_runtime_s=Seconds(WORK_H * HOUR_S),
            sent_at=NOW,
            due_at=later(NOW, 30 * DAY_S),
        )
        for n in (1, 2)
    )
    told = tuple(ClientTask(one.name, one.due_at, one.est_runtime_s) for one in held)
    request = an_asking(
        catalogue=a_catalogue(cuts=[some_cuts()], scheduler__urgent_share_fraction=1.0, **settings),
        havs=ranked(),
        held=held,
        in_progress=told,
        wants=(a_want(req_s=Seconds(1e6)),),
    )
    flop = Flop(hours * HOUR_S * 1e9)
    return choose(request, ListArray([a_group(1, jobs, qos=QoS.AFAP, fpops_est_flop=flop)]))


def test_it_is_off_unless_asked_for() -> None:
    assert len(tight(5.0, jobs=2).chosen) == 2


def test_tight_job_delays_others_at_most_by_displace_factor() -> None:
    assert len(tight(2.5, ordering__displace=True).chosen) == 1

    refused = tight(2.6, ordering__displace=True)
    assert not refused.chosen
    refusals, why = refused.reasons({})[RefusalCode.DISPLACES]
    assert (refusals, missing(why, "old 2", 1.26, "at most 1.25")) == (1, [])
    assert len(tight(2.6, ordering__displace=True, ordering__displace_factor=1.3).chosen) == 1


@pytest.mark.parametrize("reported", [True, False], ids=["reported", "known"])
@pytest.mark.parametrize(("ncpus", "plan_ncpus"), [(4.0, 1.0), (1.0, 4.0)])
@pytest.mark.parametrize(("held_ncpus", "count"), [(2.0, 1), (5.0, 0)])
def test_displacement_counts_the_cpus_of_jobs(
    ncpus: float, plan_ncpus: float, held_ncpus: float, count: int, *, reported: bool
) -> None:
    """Tight jobs use 4 of 8 CPUs: beside a held job of 2 CPUs there is room for one, beside one of 5 CPUs for none."""
    version = an_app_version(plan_class=a_plan_class(ncpus=plan_ncpus))
    version_of_held = an_app_version(app_version_id=AppVersionId(5))
    length_s, due_at = Seconds(20 * HOUR_S), later(NOW, 22 * HOUR_S)
    held = a_held(app_version_id=5, ncpus=held_ncpus, sent_at=NOW, est_runtime_s=length_s, due_at=due_at, batch_id=9)
    request = an_asking(
        host=a_host(ncpus=CORES),
        catalogue=a_catalogue(
            version, version_of_held, cuts=[some_cuts()], scheduler__urgent_share_fraction=1.0, ordering__displace=True
        ),
        havs=ranked(),
        held=(held,),
        in_progress=(ClientTask(held.name, due_at, length_s),) if reported else None,
        wants=(a_want(count=CORES, req_s=Seconds(1e6)),),
    )
    job = a_group(1, 3, qos=QoS.AFAP, fpops_est_flop=Flop(10 * HOUR_S * 1e9 * plan_ncpus), ncpus=ncpus)

    assert len(chosen(request, job).chosen) == count


def test_what_the_same_reply_gives_counts() -> None:
    assert len(tight(2.0, jobs=8, ordering__displace=True).chosen) == 2


def test_relaxed_work_displaces_nothing() -> None:
    catalogue = a_catalogue(ordering__displace=True, deadline__rule="fixed")
    held = (a_held(est_runtime_s=Seconds(WORK_H * HOUR_S), sent_at=NOW, due_at=Instant(NOW + DAY_S)),)
    request = an_asking(catalogue=catalogue, held=held)

    assert choose(request, ListArray([a_group(1, fpops_est_flop=Flop(50 * HOUR_S * 1e9))])).chosen
