"""Properties of every job selection, for any host and array."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.acceleration import Acceleration
from domain.apps import CPU, NVIDIA
from domain.batches import QoS, is_late
from domain.hosts import Coprocessor, DecayedSums
from domain.jobs import InstanceInProgress
from domain.ranking import Gate, RelaxedGate
from domain.reservations import Lease, Reserved
from domain.settings import AfapPolicy, DeadlineRule
from domain.units import AppId, AppVersionId, BatchId, FlopPerSecond, HostId, Instant, Seconds
from scheduler.busy import busy_of, held_work
from scheduler.choice import Choice
from scheduler.context import SchedulingContext
from scheduler.gates import percentile_of, reachable
from scheduler.selection import choose
from scheduler.stages import Stage
from scheduler.trace import TraceStep, traced
from tests.builders import NOW, a_hav, a_held, a_host, a_plan_class, a_ready, a_volunteer, an_app_version
from tests.unit.scheduler.arrays import ListArray, ListGroup, a_catalogue, a_group, a_want, an_asking, some_cuts

CUDA = an_app_version(app_version_id=2, plan_class=a_plan_class(name="cuda", ncpus=1.0, gpu_type=NVIDIA))
GPU = Coprocessor(NVIDIA, 1, FlopPerSecond(1e11))


@st.composite
def groups(draw: st.DrawFn, number: int) -> ListGroup:
    urgent = draw(st.booleans())
    slots = [
        a_ready(
            instance_id=number * 100 + i,
            job_id=number * 100 + draw(st.integers(0, 3)),
            retries=draw(st.integers(0, 2)) if urgent else 0,
            sibling_returned=urgent,
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    changes: dict[str, Any] = {
        "qos": draw(st.sampled_from(QoS)),
        "deadline_at": Instant(NOW + draw(st.floats(-1e5, 1e6))),
        "memory_bytes": draw(st.sampled_from([1e8, 9e9])),
        "disk_bytes": draw(st.sampled_from([1e8, 2e9])),
        "delay_bound_s": draw(st.sampled_from([3600.0, 86_400.0, 864_000.0])),
        "fpops_est_flop": draw(st.sampled_from([1e11, 3.6e12, 1e14])),
    }
    return a_group(number, ready=slots, **changes)


@st.composite
def arrays(draw: st.DrawFn) -> ListArray:
    held = [draw(groups(number)) for number in range(1, draw(st.integers(1, 6)) + 1)]
    hosts = {group.ready[0].job_id: {HostId(1)} for group in held if draw(st.booleans())}
    return ListArray(held, hosts)


@st.composite
def askings(draw: st.DrawFn) -> SchedulingContext:
    named: dict[str, Any] = {
        "scheduler__jobs_per_request": draw(st.integers(1, 3)),
        "scheduler__in_progress_per_cpu": draw(st.integers(1, 4)),
        "scheduler__daily_quota_start": draw(st.integers(1, 5)),
        "scheduler__newcomer_fraction": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "scheduler__urgent_share_fraction": draw(st.sampled_from([0.0, 0.5, 1.0])),
    }
    good_takes_s = draw(st.sampled_from([None, Seconds(3600.0), Seconds(2e5)]))
    cuts = draw(
        st.sampled_from([(), tuple(some_cuts(kind=kind, retry_turnaround_s=good_takes_s) for kind in (CPU, NVIDIA))])
    )
    relaxed = DecayedSums(1e6, 1e6 * draw(st.floats(0.0, 1.0)), 1e6, NOW)
    row = a_hav(consecutive_valid=draw(st.integers(0, 12)), relaxed=relaxed)
    havs = draw(st.sampled_from([{}, {AppVersionId(1): row}]))
    return an_asking(
        host=a_host(ncpus=2, coprocessors=(GPU,), disk_free_bytes=5e9),
        volunteer=a_volunteer(max_jobs=draw(st.integers(0, 3))),
        catalogue=a_catalogue(an_app_version(), CUDA, cuts=cuts, **named),
        wants=(
            a_want(NVIDIA, count=1, req_s=Seconds(draw(st.floats(0.0, 1e5)))),
            a_want(CPU, req_s=Seconds(draw(st.floats(1.0, 1e5))), req_instances=draw(st.floats(0.0, 2.0))),
        ),
        havs=havs,
        held=tuple(
            a_held(instance_id=9000 + i, job_id=9000 + i, sent_at=NOW, tight=draw(st.booleans()))
            for i in range(draw(st.integers(0, 3)))
        ),
        seed=draw(st.integers(0, 9)),
    )


def bound_s(array: ListArray) -> dict[int, float]:
    return {group.batch.batch_id: group.job_class.delay_bound_s for group in array.held}


def fits_limits(context: SchedulingContext, choice: Choice) -> None:
    limits = context.catalogue.settings.scheduler
    sent = Counter(one.version.processor_type for one in choice.chosen)
    assert sent[CPU] <= limits.jobs_per_request * 2
    assert sent[NVIDIA] <= limits.jobs_per_request
    if sent[CPU]:
        assert sent[CPU] + len(context.held) <= limits.in_progress_per_cpu * 2
    if context.volunteer.max_jobs and choice.chosen:
        assert len(choice.chosen) + len(context.held) <= context.volunteer.max_jobs
    for version_id, count in Counter(one.version.app_version_id for one in choice.chosen).items():
        per_day = limits.daily_quota_start
        assert count <= per_day * (2 if version_id == 1 else 1)
    assert sum(one.job_class.disk_bytes for one in choice.chosen) <= context.host.disk_free_bytes


@settings(max_examples=150)
@given(askings(), arrays())
def test_a_choice_keeps_every_limit(context: SchedulingContext, array: ListArray) -> None:
    fits_limits(context, choose(context, array))


@settings(max_examples=150)
@given(askings(), arrays())
def test_no_host_gets_a_job_twice_and_no_slot_is_reused(context: SchedulingContext, array: ListArray) -> None:
    had = {job_id for job_id, hosts in array.hosts_of.items() if HostId(1) in hosts}
    choice = choose(context, array)
    jobs = [one.assignment.job_id for one in choice.chosen]
    assert len(set(jobs)) == len(jobs)
    assert not had & set(jobs)
    assert Counter(one.slot for one in choice.chosen) == Counter(array.taken)


@settings(max_examples=150)
@given(askings(), arrays())
def test_every_due_date_lies_ahead_and_within_the_delay_bound(context: SchedulingContext, array: ListArray) -> None:
    bounds = bound_s(array)
    for one in choose(context, array).chosen:
        assert NOW + one.assignment.est_runtime_s <= one.assignment.due_at
        assert one.assignment.due_at <= NOW + bounds[one.assignment.batch_id]
        assert one.assignment.timeout_at > one.assignment.due_at


def is_due_in_its_turn(context: SchedulingContext, choice: Choice) -> None:
    """A tight job is due behind endangered work, a relaxed one behind all work, in progress or in this reply."""
    busy = busy_of(context.wants, context.host, held_work(context.held, context.catalogue.versions, now=context.now))
    for one in choice.chosen:
        plan, told = one.version.plan_class, one.assignment
        before_s = busy.start_s(plan) if told.tight else busy.queue_s(plan)
        assert told.due_at >= context.now + before_s + told.est_runtime_s - 1e-6
        busy = busy.with_job(plan, told.est_runtime_s, tight=told.tight)


@settings(max_examples=150)
@given(askings(), arrays())
def test_jobs_of_a_reply_are_due_in_queue_order(context: SchedulingContext, array: ListArray) -> None:
    is_due_in_its_turn(context, choose(context, array))


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([0.5, 2.0, 4.0, 6.0, 9.0, 30.0]), min_size=1, max_size=4),
    st.lists(st.booleans(), max_size=4),
    st.floats(0.0, 1.0),
    st.integers(1, 3),
)
def test_full_queue_keeps_relaxed_due_dates_feasible(
    hours: list[float], held_tight: list[bool], p: float, ncpus: int
) -> None:
    """Batches that end within hours, jobs of an hour, and a host that requests twenty of them."""
    deadlines = [Instant(NOW + 3600.0 * one) for one in hours]
    array = ListArray(
        [a_group(i + 1, 20, qos=QoS.SHORT_DEADLINE, deadline_at=at, disk_bytes=0.0) for i, at in enumerate(deadlines)]
    )
    relaxed = DecayedSums(1e6, 1e6 * (1.0 - p), 1e6, NOW)
    context = an_asking(
        host=a_host(ncpus=ncpus),
        wants=(a_want(count=ncpus, req_s=Seconds(72_000.0 * ncpus)),),
        catalogue=a_catalogue(cuts=(some_cuts(retry_turnaround_s=3600.0),), scheduler__jobs_per_request=20),
        havs={AppVersionId(1): a_hav(consecutive_valid=12, relaxed=relaxed)},
        held=tuple(
            a_held(instance_id=9000 + i, job_id=9000 + i, sent_at=NOW, tight=tight)
            for i, tight in enumerate(held_tight)
        ),
    )
    is_due_in_its_turn(context, choose(context, array))


@settings(max_examples=150)
@given(askings(), arrays())
def test_everything_has_a_reason(context: SchedulingContext, array: ListArray) -> None:
    choice = choose(context, array)
    assert all(one.assignment.due_terms.because for one in choice.chosen)
    assert all(one.refusal.detail for one in choice.refused)
    if not choice.chosen and context.wants[1].req_s > 0:
        assert choice.refused


@settings(max_examples=150)
@given(askings(), arrays(), st.data())
def test_choice_without_jobs_has_a_reason(context: SchedulingContext, array: ListArray, data: st.DataObject) -> None:
    """Under every rule, for leased hosts, for work without charge and for apps that are not loaded yet."""
    catalogue = context.catalogue
    changed = catalogue.settings.changed("deadline.rule", data.draw(st.sampled_from(DeadlineRule)).value)
    changed = changed.changed("ordering.displace", data.draw(st.booleans()))
    reserved = catalogue.reserved
    if data.draw(st.booleans()):
        start_at = Instant(NOW + data.draw(st.sampled_from([600.0, 2e4, 8e4])))
        batch_id, cores = BatchId(data.draw(st.integers(1, 7))), data.draw(st.sampled_from([1.0, 2.0]))
        lease = Lease(batch_id, HostId(1), cores, start_at, Seconds(9e4), Instant(start_at + 3600.0), CPU, NOW)
        reserved = Reserved(leases={HostId(1): lease})
    for group in array.held:
        if data.draw(st.integers(0, 3)) == 0:
            group.batch = replace(group.batch, unpaid=True, order_tier=99)
        if data.draw(st.integers(0, 5)) == 0:
            group.batch = replace(group.batch, app_id=AppId(9))

    choice = choose(replace(context, catalogue=replace(catalogue, settings=changed, reserved=reserved)), array)

    assert choice.chosen or choice.reasons({})


@settings(max_examples=150)
@given(askings(), arrays())
def test_a_choice_is_repeated_from_its_seed(context: SchedulingContext, array: ListArray) -> None:
    again = ListArray(
        [replace(group, ready=list(group.ready)) for group in array.held],
        {job: set(hosts) for job, hosts in array.hosts_of.items()},
    )
    first, second = choose(context, array), choose(context, again)
    assert [one.assignment for one in first.chosen] == [one.assignment for one in second.chosen]
    assert first.refused == second.refused


@settings(max_examples=100)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 12))
def test_ungated_jobs_go_out_in_the_order_of_the_array(sizes: list[int], wanted: int) -> None:
    array = ListArray([a_group(number + 1, size) for number, size in enumerate(sizes)])
    in_order = [slot.instance_id for group in array.groups() for slot in group.slots()]
    context = an_asking(wants=(a_want(req_s=Seconds(wanted * 3600.0 - 1.0)),))
    given = [one.assignment.instance_id for one in choose(context, array).chosen]
    assert given == in_order[:wanted]


def gated_groups(kind: str) -> ListGroup:
    """Return 40 jobs behind a gate: of row 2, of row 4, or retries of it."""
    if kind == "retries":
        slots = [a_ready(instance_id=1000 + i, job_id=1000 + i, retries=1) for i in range(40)]
        return a_group(1, ready=slots, qos=QoS.AFAP, disk_bytes=0.0)
    if kind == "late":
        return a_group(1, 40, qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW + 5e4), disk_bytes=0.0)
    return a_group(1, 40, qos=QoS.AFAP, disk_bytes=0.0)


def a_good_host(fraction: float, *, ncpus: int, wanted: int, **changes: Any) -> SchedulingContext:
    relaxed = DecayedSums(1e6, 0.0, 0.0, NOW)
    named: dict[str, Any] = {"scheduler__urgent_share_fraction": fraction, "scheduler__daily_quota_start": 10_000}
    return an_asking(
        host=a_host(ncpus=ncpus),
        wants=(a_want(count=ncpus, req_s=Seconds(3600.0 * wanted)),),
        catalogue=a_catalogue(cuts=(some_cuts(),), **named),
        havs={AppVersionId(1): a_hav(consecutive_valid=12, relaxed=relaxed)},
        **changes,
    )


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["no estimate", "late", "retries"]),
    st.sampled_from([0.0, 0.25, 0.5, 0.8, 1.0]),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=8),
)
def test_host_keeps_its_gated_share_over_requests(
    kind: str, fraction: float, ncpus: int, turns: list[tuple[int, int]]
) -> None:
    """The host requests some jobs and returns its oldest one; a gated job is allowed while the share is below the
    limit.
    """
    array = ListArray([gated_groups(kind), a_group(9, 40, disk_bytes=0.0)])
    held: tuple[InstanceInProgress, ...] = ()
    for seed, (wanted, returned) in enumerate(turns):
        context = a_good_host(fraction, ncpus=ncpus, wanted=wanted, held=held, seed=seed)
        for one in choose(context, array).chosen:
            told = one.assignment
            names: dict[str, Any] = {"instance_id": told.instance_id, "job_id": told.job_id, "sent_at": NOW}
            held = (*held, a_held(**names, tight=told.tight, gated=told.gated, est_runtime_s=Seconds(1.0)))
        gated = sum(one.job_id < 9000 for one in held)
        assert gated <= max(fraction * len(held) + 1e-9, 1 if fraction else 0)
        held = held[returned:]
        if sum(one.job_id < 9000 for one in held) > fraction * len(held):
            held = ()  # it returned an ordinary job, so it exceeds its gated share by that


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(["no estimate", "late", "retries"]), st.sampled_from([0.2, 0.5, 0.9]), st.integers(0, 1000))
def test_idle_host_gets_gated_jobs_at_its_share(kind: str, fraction: float, first: int) -> None:
    gated = 0
    for seed in range(first, first + 200):
        array = ListArray([gated_groups(kind), a_group(9, 40)])
        [one] = choose(a_good_host(fraction, ncpus=1, wanted=1, seed=seed), array).chosen
        gated += one.assignment.gated
    assert abs(gated / 200 - fraction) < 0.15


@st.composite
def ranked_askings(draw: st.DrawFn) -> SchedulingContext:
    """Generate requests under any rule, with or without gates lowered by the request rate, and acceleration flags."""
    context = draw(askings())
    rule = draw(st.sampled_from(DeadlineRule))
    deadline = replace(context.catalogue.settings.deadline, rule=rule)
    lowered = (RelaxedGate(AppId(1), CPU, Gate.TIGHT, draw(st.sampled_from([0.5, 0.7]))),)
    cuts = {
        of_type: replace(cut, relaxed=draw(st.sampled_from([(), lowered])))
        for of_type, cut in context.catalogue.cut_points.items()
    }
    flags = Acceleration(
        NOW,
        draw(st.sampled_from([frozenset(), frozenset({HostId(1)})])),
        draw(st.sampled_from([frozenset(), frozenset({AppId(1)})])),
        frozenset(BatchId(one) for one in draw(st.lists(st.integers(1, 6), max_size=3))),
    )
    catalogue = replace(
        context.catalogue,
        settings=replace(context.catalogue.settings, deadline=deadline),
        cut_points=cuts,
        acceleration=flags if rule is DeadlineRule.ACCELERATED else None,
    )
    return replace(context, catalogue=catalogue)


@settings(max_examples=150)
@given(ranked_askings(), arrays())
def test_order_within_a_pass_has_named_exceptions(context: SchedulingContext, array: ListArray) -> None:
    """Every job ordered before a sent job was sent too, or has a stated reason."""
    seen = traced(context, array)
    of_pass: dict[tuple[str, str], list[TraceStep]] = {}
    for look in seen.steps:
        of_pass.setdefault((look.processor_type, look.stage), []).append(look)
        named = look.refusal is not None or bool(look.later) or bool(look.passed_over)
        is_empty = not seen.groups[look.place].slots()  # all of it went to other processors of the host
        assert look.given or named or is_empty
    for (kind, one_pass), looks in of_pass.items():
        places = [look.place for look in looks]
        late = {one for one in places if is_late(seen.groups[one].batch.deadline_at, context.now)}
        behind = late if one_pass is Stage.PROMPT else set()  # those in time go first (decision 84)
        assert places == sorted(set(places), key=lambda place: (place in behind, place)), (kind, one_pass)
    for (kind, one_pass), looks in of_pass.items():
        if one_pass is not Stage.ALL:
            continue
        last = max((look.place for look in looks if look.given), default=-1)
        known = {look.place for look in seen.steps if look.processor_type == kind}
        assert known >= set(range(last))


@settings(max_examples=150)
@given(ranked_askings(), arrays())
def test_no_gated_job_goes_to_a_host_below_its_gate(context: SchedulingContext, array: ListArray) -> None:
    catalogue = context.catalogue
    flags, rule = catalogue.acceleration, catalogue.settings.deadline.rule
    for one in choose(context, array).chosen:
        found = percentile_of(one.version, context.havs, catalogue, now=context.now)
        if rule is DeadlineRule.MUSTER:
            cuts = catalogue.cut_points.get((one.version.app_id, one.version.processor_type))
            gates = reachable(catalogue.settings.deadline, cuts)
            is_prompt = one.batch.qos is QoS.AFAP and gates.afap is AfapPolicy.PROMPT
            assert not (is_prompt and one.slot.retries) or found.passes(gates.p_retry)
            assert not one.assignment.tight or found.passes(min(gates.p_afap, gates.p_tight))
            assert one.assignment.due_terms.row.number != 4 or found.passes(gates.p_late)
            assert one.assignment.gated or not one.assignment.tight
        if rule is DeadlineRule.PROPOSAL and one.assignment.tight:
            assert found.p is not None
            assert found.p > min(catalogue.settings.deadline.p_afap, catalogue.settings.deadline.p_tight)
        if flags is not None and one.batch.batch_id in flags.batches and one.batch.app_id in flags.apps:
            assert context.host.host_id in flags.hosts


@settings(max_examples=150)
@given(ranked_askings(), arrays())
def test_every_refusal_has_a_reason_under_every_rule(context: SchedulingContext, array: ListArray) -> None:
    choice = choose(context, array)
    refusals = [*(one.refusal for one in choice.refused), *(why for _, _, why in choice.not_given)]
    assert all(why.detail and "{" not in why.detail for why in refusals)
    assert all(
        one.assignment.due_terms.because and "{" not in one.assignment.due_terms.because for one in choice.chosen
    )
