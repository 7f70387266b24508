"""One evaluation per class and request: which version decides, and when it is repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.apps import CPU
from domain.batches import QoS
from domain.hosts import DecayedSums
from domain.refusals import Refusal, RefusalCode
from domain.units import AppVersionId, Instant, Seconds
from scheduler.context import ClientTask, SchedulingContext
from scheduler.evaluation import ClassEvaluator, Evaluation
from tests.builders import NOW, a_hav, a_held, a_plan_class, an_app_version
from tests.unit.scheduler.arrays import a_catalogue, a_group, an_asking

JOB_S = 3600.0


def judge(context: SchedulingContext, seed: int = 0) -> ClassEvaluator:
    return ClassEvaluator(replace(context, seed=seed))


def yes(found: Evaluation | Refusal) -> Evaluation:
    assert isinstance(found, Evaluation), found
    return found


def test_an_answer_is_kept_until_a_job_is_sent() -> None:
    one, group = judge(an_asking()), a_group(1)
    first = one.evaluate(0, group, CPU, retry=False)
    assert one.evaluate(0, group, CPU, retry=False) is first
    one.given(yes(first), group.job_class)
    assert one.evaluate(0, group, CPU, retry=False) is not first


def test_a_refusal_is_kept_while_the_host_only_gets_busier() -> None:
    one, small, large = judge(an_asking()), a_group(1), a_group(2, memory_bytes=9e9)
    refused = one.evaluate(1, large, CPU, retry=False)
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.MEMORY
    assert not one.given(yes(one.evaluate(0, small, CPU, retry=False)), small.job_class)
    assert one.evaluate(1, large, CPU, retry=False) is refused


def test_the_last_job_of_a_quota_asks_for_every_answer_again() -> None:
    one, group = judge(an_asking(havs={AppVersionId(1): a_hav(quota_per_day=1)})), a_group(1)
    sent = [one.given(yes(one.evaluate(0, group, CPU, retry=False)), group.job_class) for _ in range(2)]
    assert sent == [False, True]
    refused = one.evaluate(0, group, CPU, retry=False)
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.DAILY_QUOTA


def test_curiosity_is_for_relaxed_jobs_only() -> None:
    new = an_app_version(app_version_id=2, plan_class=a_plan_class(name="avx", ncpus=1.0, cpu_speed_fraction=0.9))
    known = a_hav(speed=DecayedSums(50.0, 5e-8, 5e-17, NOW), relaxed=DecayedSums(50.0, 0.0, 0.0, NOW))
    context = an_asking(catalogue=a_catalogue(an_app_version(), new), havs={AppVersionId(1): known})

    def versions(**group: Any) -> set[int]:
        found = [yes(judge(context, seed).evaluate(0, a_group(1, **group), CPU, retry=False)) for seed in range(40)]
        return {one.usable.version.app_version_id for one in found}

    assert versions() == {1, 2}
    assert versions(qos=QoS.AFAP) == {1}


def test_only_tight_work_in_progress_moves_the_due_date() -> None:
    def due_in_s(**held: Any) -> float:
        context = an_asking(
            held=(a_held(sent_at=NOW, instance_id=1, **held), a_held(sent_at=NOW, instance_id=2, **held))
        )
        return yes(judge(context).evaluate(0, a_group(1, qos=QoS.AFAP), CPU, retry=False)).due.due_at - NOW

    assert due_in_s(tight=False) == 2.5 * JOB_S
    assert due_in_s(tight=True) == 3.5 * JOB_S


def test_client_queue_takes_precedence_over_stored_jobs() -> None:
    held = (a_held(sent_at=NOW, est_runtime_s=Seconds(9e9)),)
    context = an_asking(held=held, in_progress=(ClientTask("other", NOW, Seconds(60.0)),))
    assert isinstance(judge(context).evaluate(0, a_group(1), CPU, retry=False), Evaluation)
    busy = tuple(ClientTask(str(i), NOW, Seconds(9e9)) for i in range(2))
    refused = judge(an_asking(in_progress=busy)).evaluate(0, a_group(1), CPU, retry=False)
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.TOO_SLOW


@pytest.mark.parametrize("told", [None, ()], ids=["without a reported queue", "with an empty reported queue"])
def test_resent_jobs_count_in_the_queue_from_now_on(told: tuple[ClientTask, ...] | None) -> None:
    lost = tuple(
        a_held(instance_id=i, sent_at=Instant(NOW - 2 * JOB_S), est_runtime_s=Seconds(3 * JOB_S), tight=True)
        for i in (1, 2)
    )
    context = an_asking(held=lost, resent=lost, in_progress=told)
    due = yes(judge(context).evaluate(0, a_group(1, qos=QoS.AFAP), CPU, retry=False)).due
    assert due.due_at - NOW == 3 * JOB_S + 2.5 * JOB_S
