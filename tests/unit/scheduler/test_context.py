"""The demand of a request, and its limits."""

from __future__ import annotations

from domain.apps import NVIDIA
from domain.refusals import Refusal, RefusalCode
from domain.units import Seconds
from scheduler.context import RemainingDemand, demand_of
from tests.builders import a_held, a_plan_class, a_volunteer, an_app_version
from tests.facts import missing
from tests.unit.scheduler.arrays import a_catalogue, a_want, an_asking

CUDA = an_app_version(app_version_id=2, plan_class=a_plan_class(name="cuda", gpu_type=NVIDIA))


def need(found: RemainingDemand | Refusal) -> RemainingDemand:
    assert isinstance(found, RemainingDemand), found
    return found


def test_limits_are_per_processor() -> None:
    context = an_asking(catalogue=a_catalogue(scheduler__jobs_per_request=3, scheduler__in_progress_per_cpu=4))
    assert need(demand_of(a_want(count=2), context, sent=0)).jobs == 6
    held = tuple(a_held(instance_id=i, tight=i < 2) for i in range(5))
    found = need(demand_of(a_want(count=2), an_asking(catalogue=context.catalogue, held=held), sent=0))
    assert (found.jobs, found.had, found.had_gated) == (3, 5, 2)


def test_a_full_host_is_refused_with_both_numbers() -> None:
    held = tuple(a_held(instance_id=i) for i in range(4))
    context = an_asking(catalogue=a_catalogue(scheduler__in_progress_per_cpu=2), held=held)
    refused = demand_of(a_want(count=2), context, sent=0)
    assert isinstance(refused, Refusal) and refused.code is RefusalCode.IN_PROGRESS_LIMIT
    assert not missing(refused.detail, "cpu:", "4 jobs", "limit 4")
    assert "volunteer" not in refused.detail


def test_gpu_jobs_do_not_count_against_the_cpus() -> None:
    held = tuple(a_held(instance_id=i, app_version_id=2) for i in range(4))
    catalogue = a_catalogue(an_app_version(), CUDA, scheduler__in_progress_per_cpu=2, scheduler__in_progress_per_gpu=4)
    context = an_asking(catalogue=catalogue, held=held)
    assert need(demand_of(a_want(count=2), context, sent=0)).jobs == 4
    assert isinstance(demand_of(a_want(NVIDIA, count=1), context, sent=0), Refusal)


def test_the_volunteers_wish_is_for_the_whole_host() -> None:
    held = (a_held(instance_id=1), a_held(instance_id=2, app_version_id=2))
    catalogue = a_catalogue(an_app_version(), CUDA)
    context = an_asking(volunteer=a_volunteer(max_jobs=4), held=held, catalogue=catalogue)
    assert need(demand_of(a_want(), context, sent=1)).jobs == 1
    refused = demand_of(a_want(), context, sent=2)
    assert isinstance(refused, Refusal) and refused.code is RefusalCode.IN_PROGRESS_LIMIT
    assert not missing(refused.detail, "cpu:", "4 jobs", "limit of this host 4")


def test_one_second_asks_for_one_job() -> None:
    one = need(demand_of(a_want(req_s=Seconds(1.0)), an_asking(), sent=0))
    assert one.open
    assert not one.after(1.0, Seconds(60.0), gated=False).open


def test_idle_instances_ask_for_a_job_each() -> None:
    found = need(demand_of(a_want(req_s=Seconds(1.0), req_instances=2.0), an_asking(), sent=0))
    assert found.after(1.0, Seconds(60.0), gated=False).open
    assert not found.after(2.0, Seconds(60.0), gated=False).open


def test_the_gated_share_counts_what_the_host_already_has() -> None:
    def has_room(fraction: float, drawn: float = 0.0, **has: int) -> bool:
        return RemainingDemand(1.0, 0.0, 8, **has).has_room_for_gated(1.0, Seconds(3600.0), fraction, drawn)

    assert not has_room(0.5, had=3, had_gated=2)
    assert has_room(0.75, had=3, had_gated=2)
    assert not has_room(0.5, had=2, had_gated=1)
    assert has_room(0.5, had=2, had_gated=0)


def test_small_gated_share_gives_a_job_in_some_requests() -> None:
    def has_room(fraction: float, drawn: float, **has: int) -> bool:
        return RemainingDemand(1.0, 0.0, 8, **has).has_room_for_gated(1.0, Seconds(3600.0), fraction, drawn)

    assert [has_room(0.5, drawn) for drawn in (0.0, 0.49, 0.5, 0.9)] == [True, True, False, False]
    assert [has_room(0.2, drawn, had=1) for drawn in (0.1, 0.3)] == [True, False]
    assert not has_room(0.2, 0.1, had=1, had_gated=1)
    assert not has_room(0.0, 0.0)
    assert has_room(1.0, 0.999)


def test_gated_jobs_in_progress_count_with_any_due_date() -> None:
    held = (a_held(instance_id=1, gated=True), a_held(instance_id=2), a_held(instance_id=3, tight=True))
    assert need(demand_of(a_want(), an_asking(held=held), sent=0)).had_gated == 2
