"""A traced decision equals the untraced one and lists its steps."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import CPU
from domain.batches import QoS
from domain.refusals import Refusal, RefusalCode
from domain.units import DAY_S, AppId, Instant, Seconds, later
from scheduler.context import SchedulingContext
from scheduler.selection import Later, choose
from scheduler.stages import Stage
from scheduler.trace import bests_of, stages_by_group, traced
from tests.builders import NOW, a_hav, a_ready, an_app
from tests.facts import missing
from tests.unit.scheduler.arrays import ListArray, ListGroup, a_catalogue, a_group, a_want, an_asking, some_cuts

GROUPS = st.lists(
    st.fixed_dictionaries(
        {
            "size": st.integers(1, 4),
            "qos": st.sampled_from([QoS.THROUGHPUT, QoS.AFAP, QoS.SHORT_DEADLINE]),
            "memory_bytes": st.sampled_from([1e8, 1e11]),
            "deadline_at": st.sampled_from([later(NOW, 60.0), later(NOW, 1e6)]),
            "app_id": st.sampled_from([AppId(1), AppId(2)]),
            "retries": st.integers(0, 1),
        }
    ),
    max_size=6,
)


def groups_of(drawn: list[dict[str, Any]]) -> list[ListGroup]:
    groups = []
    for number, values in enumerate(drawn, 1):
        size, retries = values.pop("size"), values.pop("retries")
        ready = [a_ready(instance_id=number * 1000 + i, job_id=number * 1000 + i, retries=retries) for i in range(size)]
        groups.append(a_group(number, ready=ready, **values))
    return groups


@given(drawn=GROUPS, req_s=st.sampled_from([1.0, 2e4, 1e6]), ranked=st.booleans(), recorded=st.booleans())
def test_traced_decision_equals_the_untraced_one(
    drawn: list[dict[str, Any]], req_s: float, ranked: bool, recorded: bool
) -> None:
    catalogue = a_catalogue(
        apps=(an_app(), an_app(app_id=AppId(2), name="e", beta=True)), cuts=[some_cuts()] if ranked else []
    )
    context = an_asking(
        catalogue=catalogue,
        wants=(a_want(req_s=Seconds(req_s)),),
        havs={1: a_hav(consecutive_valid=3)} if recorded else {},
    )
    plain = ListArray(groups_of(copy.deepcopy(drawn)))
    seen = ListArray(groups_of(copy.deepcopy(drawn)))

    expected, found = choose(context, plain), traced(context, seen)

    assert found.choice.chosen == expected.chosen
    assert found.choice.counts() == expected.counts()
    assert (seen.taken, len(seen.noted)) == (plain.taken, len(plain.noted))
    assert sum(look.given for look in found.steps) == len(expected.chosen)


def asked(*groups: ListGroup, context: SchedulingContext | None = None) -> list[tuple[Stage, int, int, str]]:
    looks = traced(context or an_asking(), ListArray(list(groups))).steps
    return [
        (look.stage, look.place, look.given, str(look.refusal.code) if look.refusal else look.later) for look in looks
    ]


def test_a_refused_group_says_why_with_both_numbers() -> None:
    found = traced(an_asking(), ListArray([a_group(memory_bytes=1e12), a_group(2)]))

    first, second = found.steps
    assert first.refusal is not None and first.refusal.code is RefusalCode.MEMORY
    assert not missing(first.refusal.detail, "job needs 1 TB", "host offers 8 GB")
    assert (first.given, second.given, second.refusal) == (0, 1, None)


def test_gated_work_is_looked_at_in_its_own_pass_first() -> None:
    looks = asked(a_group(), a_group(2, qos=QoS.AFAP))

    assert looks == [(Stage.GATED, 1, 1, "")]


def test_gated_jobs_beyond_their_share_come_last() -> None:
    context = an_asking(
        catalogue=a_catalogue(scheduler__urgent_share_fraction=0.0), wants=(a_want(req_s=Seconds(1.0)),)
    )

    looks = asked(a_group(1, qos=QoS.AFAP), context=context)

    assert looks[0] == (Stage.GATED, 0, 0, Later.SHARE_USED_UP.value)
    assert looks[-1] == (Stage.LEFT_OVER, 0, 1, "")


def test_ungated_work_waits_for_the_stage_all() -> None:
    looks = asked(a_group(1, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 1e7)))

    assert looks == [(Stage.GATED, 0, 0, Later.UNGATED.value), (Stage.ALL, 0, 1, "")]


@pytest.mark.parametrize(("share", "order"), [(1.0, [1, 0, 2, 3]), (0.0, [0, 1, 2, 3])])
def test_groups_are_in_the_sequence_of_the_request(share: float, order: list[int]) -> None:
    soon = a_group(2, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 5 * 86400.0))
    groups = [a_group(1), soon, a_group(3), a_group(4, order_tier=102, unpaid=True)]
    context = an_asking(catalogue=a_catalogue(scheduler__afap_first_fraction=share))

    found = stages_by_group(context, traced(context, ListArray(groups)))

    assert list(found) == order
    assert (Stage.PROMPT in found[1], found[3]) == (share == 1.0, (Stage.UNPAID,))


def test_unpaid_work_is_for_hosts_without_other_work() -> None:
    unpaid = a_group(1, order_tier=102, order_key=0.0, unpaid=True)
    a_little = an_asking(wants=(a_want(req_s=Seconds(1.0)),))

    assert asked(unpaid, a_group(2), context=a_little) == [(Stage.ALL, 0, 1, "")]
    assert asked(unpaid, a_group(2, memory_bytes=1e12), context=a_little) == [
        (Stage.ALL, 0, 0, "memory"),
        (Stage.UNPAID, 1, 1, ""),
    ]


def test_gated_unpaid_work_waits_for_ungated_work() -> None:
    unpaid = a_group(1, order_tier=100, qos=QoS.AFAP, unpaid=True)
    a_little = an_asking(wants=(a_want(req_s=Seconds(1.0)),))

    assert asked(unpaid, a_group(2), context=a_little)[-1] == (Stage.ALL, 0, 1, "")
    assert asked(unpaid, context=a_little) == [(Stage.UNPAID, 0, 1, "")]


def test_slots_the_host_may_not_have_are_counted_by_reason() -> None:
    group = a_group(1, size=2)
    array = ListArray([group], hosts_of={group.ready[0].job_id: {an_asking().host.host_id}})

    [look] = traced(an_asking(), array).steps

    assert look.given == 1
    assert [(code, count) for code, count, _ in look.passed_over] == [(RefusalCode.SAME_HOST, 1)]


def test_the_version_of_every_app_is_said_or_why_there_is_none() -> None:
    catalogue = a_catalogue(apps=(an_app(), an_app(app_id=AppId(2), name="e", beta=True)))

    first, second = bests_of(an_asking(catalogue=catalogue), catalogue.apps)

    assert first[:2] == (AppId(1), CPU) and not isinstance(first[2], Refusal)
    assert isinstance(second[2], Refusal) and second[2].code is RefusalCode.BETA


def test_a_pass_that_ends_early_is_named() -> None:
    """Jobs that turn out to be ungated end the first stage; the last one still reaches the groups behind them."""
    relaxed = [
        a_group(number, qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW + 60 * DAY_S)) for number in range(1, 301)
    ]
    seen = traced(an_asking(), ListArray([*relaxed, a_group(900, qos=QoS.AFAP)]))
    assert seen.cut_short == ((CPU, Stage.GATED),)
    assert [one.batch.batch_id for one in seen.choice.chosen] == [900]
    few = traced(an_asking(), ListArray([*relaxed[1:200], a_group(900, qos=QoS.AFAP)]))
    assert few.cut_short == ()
    assert [one.batch.batch_id for one in few.choice.chosen] == [900]


def test_trace_has_groups_skipped_behind_a_gate_with_reason() -> None:
    """Jobs of many sizes in one batch without an estimate: the first is evaluated, the others share its result."""
    groups = [a_group(1, qos=QoS.AFAP, job_class_id=number) for number in range(1, 6)]
    newcomer = an_asking(catalogue=a_catalogue(cuts=[some_cuts()], deadline__afap="table"))
    looks = [look for look in traced(newcomer, ListArray(groups)).steps if look.stage is Stage.ALL]
    assert [look.place for look in looks] == [0, 1, 2, 3, 4]
    assert {look.refusal.code for look in looks if look.refusal is not None} == {RefusalCode.NO_RANK}
    assert all(look.refusal is not None for look in looks)
