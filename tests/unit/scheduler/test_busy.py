"""Busy times: list scheduling, endangered work separate from the whole queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.apps import CPU, NVIDIA, PlanClass, ProcessorType
from domain.hosts import Coprocessor
from domain.units import AppVersionId, Instant, Seconds
from scheduler.busy import Timeline, busy_of, held_work, reported_work
from scheduler.context import ClientTask
from tests.builders import NOW, a_held, a_host, a_plan_class, an_app_version
from tests.unit.scheduler.arrays import a_want

ONE_CPU = PlanClass("")
HALF_GPU = PlanClass("half", ncpus=0.2, gpu_type=NVIDIA, gpu_count=0.5)


def test_eight_jobs_on_eight_idle_cores_end_after_one_runtime() -> None:
    line = Timeline.of([0.0] * 8)
    for _ in range(8):
        assert line.start_s(1) == 0.0
        line = line.after(1, 4 * 3600.0)
    assert line.start_s(1) == 4 * 3600.0


def test_a_job_of_several_cpus_waits_for_the_last_of_them() -> None:
    line = Timeline.of([0.0, 100.0, 200.0])
    assert line.start_s(2) == 100.0
    assert line.after(2, 50.0).instances == ((150.0,), (150.0,), (200.0,))


def test_a_fraction_of_a_cpu_beyond_one_takes_another() -> None:
    assert Timeline.of([0.0, 100.0]).start_s(1.5) == 100.0


def test_two_jobs_share_a_device_at_half() -> None:
    line = Timeline.of([0.0])
    line = line.after(0.5, 60.0)
    assert line.start_s(0.5) == 0.0
    line = line.after(0.5, 90.0)
    assert line.start_s(0.5) == 60.0
    assert line.start_s(1.0) == 90.0


def test_a_whole_device_job_needs_one_device_that_is_wholly_free() -> None:
    line = Timeline.of([0.0, 0.0]).after(0.5, 60.0).after(1.0, 30.0)
    assert line.instances == ((30.0, 30.0), (0.0, 60.0))


def test_jobs_of_different_shares_fit_in_the_same_device() -> None:
    line = Timeline.of([0.0]).after(0.5, 60.0).after(0.25, 30.0)
    assert line.start_s(0.25) == 0.0
    assert line.start_s(0.5) == 30.0


def test_three_share_a_device_at_a_third() -> None:
    line = Timeline.of([0.0])
    for _ in range(3):
        assert line.start_s(0.33) == 0.0
        line = line.after(0.33, 10.0)
    assert line.start_s(0.33) == 10.0


def test_a_job_larger_than_the_host_takes_all_of_it() -> None:
    assert Timeline.of([0.0, 5.0]).after(9, 10.0).instances == ((15.0,), (15.0,))


def test_start_uses_least_busy_instance_and_idle_count() -> None:
    want = a_want(count=4, req_instances=1.9, estimated_delay_s=Seconds(500.0))
    busy = busy_of((want,), a_host(ncpus=4), ())
    assert busy.start[CPU].instances == ((0.0,), (500.0,), (500.0,), (500.0,))
    assert busy.start_s(ONE_CPU) == 0.0
    assert busy.queue_s(a_plan_class(ncpus=2.0)) == 500.0


def test_tight_work_in_progress_delays_tight_work() -> None:
    held = [a_held(instance_id=1, sent_at=NOW - 100.0, est_runtime_s=Seconds(1000.0), tight=True)]
    busy = busy_of((a_want(count=1),), a_host(ncpus=1), held_work(held, {}, now=NOW))
    assert busy.start_s(ONE_CPU) == 900.0


def test_relaxed_work_is_in_the_queue_only() -> None:
    held = [a_held(instance_id=i, sent_at=NOW, est_runtime_s=Seconds(1000.0)) for i in (1, 2, 3)]
    busy = busy_of((a_want(count=2),), a_host(ncpus=2), held_work(held, {}, now=NOW))
    assert (busy.start_s(ONE_CPU), busy.queue_s(ONE_CPU)) == (0.0, 1000.0)


def test_jobs_sent_before_have_run_one_after_the_other_since() -> None:
    held = [a_held(instance_id=i, sent_at=NOW - 1500.0, est_runtime_s=Seconds(1000.0)) for i in (1, 2, 3)]
    busy = busy_of((a_want(count=1),), a_host(ncpus=1), held_work(held, {}, now=NOW))
    assert busy.queue_s(ONE_CPU) == 1500.0  # 3000 s of work, 1500 s done


def test_overdue_work_is_not_negative() -> None:
    held = [a_held(sent_at=NOW - 9000.0, est_runtime_s=Seconds(1000.0))]
    busy = busy_of((a_want(count=1),), a_host(ncpus=1), held_work(held, {}, now=NOW))
    assert busy.queue_s(ONE_CPU) == 0.0


def test_a_held_job_occupies_what_its_version_says() -> None:
    version = an_app_version(plan_class=a_plan_class(ncpus=2.0))
    held = [a_held(sent_at=NOW, est_runtime_s=Seconds(1000.0))]
    work = held_work(held, {version.app_version_id: version}, now=NOW)
    busy = busy_of((a_want(count=2),), a_host(ncpus=2), work)
    assert busy.queue_s(ONE_CPU) == 1000.0


@pytest.mark.parametrize(("app_version_id", "ncpus"), [(1, 4.0), (2, 1.0), (2, 4.0), (7, 4.0)])
def test_held_job_occupies_its_cpus_with_any_version(app_version_id: AppVersionId, ncpus: float) -> None:
    """Version 1 uses one CPU, version 2 four, and version 7 is unknown."""
    four = an_app_version(app_version_id=AppVersionId(2), plan_class=a_plan_class(ncpus=4.0))
    versions = {one.app_version_id: one for one in (an_app_version(), four)}
    held = [a_held(app_version_id=app_version_id, ncpus=ncpus, sent_at=NOW, est_runtime_s=Seconds(1000.0))]
    host, wants = a_host(ncpus=4), (a_want(count=4),)
    assert busy_of(wants, host, held_work(held, versions, now=NOW)).queue_s(ONE_CPU) == 1000.0

    queue = (ClientTask(held[0].name, Instant(NOW + 9e5), Seconds(1000.0), ncpus=1.0 if ncpus > 1.0 else 4.0),)
    assert busy_of(wants, host, reported_work(queue, held, host)).queue_s(ONE_CPU) == 1000.0


def test_gpu_job_occupies_what_its_version_says() -> None:
    version = an_app_version(plan_class=replace(HALF_GPU, ncpus=0.2))
    held = [a_held(ncpus=2.0, sent_at=NOW, est_runtime_s=Seconds(1000.0))]
    host = a_host(ncpus=2, coprocessors=(Coprocessor(NVIDIA, 1),))
    queue = (ClientTask(held[0].name, Instant(NOW + 9e5), Seconds(1000.0), 0.2, NVIDIA, 0.5),)
    for work in (held_work(held, {version.app_version_id: version}, now=NOW), reported_work(queue, held, host)):
        assert busy_of((a_want(count=2),), host, work).queue_s(ONE_CPU) == 0.0


def test_client_queue_counts_availability_and_other_projects() -> None:
    host = a_host(ncpus=1, on_fraction=0.5)
    queue = (ClientTask("other_1", Instant(NOW + 9e5), Seconds(600.0)),)
    busy = busy_of((a_want(count=1),), host, reported_work(queue, (), host))
    assert (busy.start_s(ONE_CPU), busy.queue_s(ONE_CPU)) == (0.0, 1200.0)


def test_a_tight_job_is_found_in_the_clients_queue_by_its_name() -> None:
    host = a_host(ncpus=1)
    queue = (ClientTask("pi_1_1_1", Instant(NOW + 9e5), Seconds(600.0)),)
    held = (a_held(name="pi_1_1_1", tight=True),)
    assert busy_of((a_want(count=1),), host, reported_work(queue, held, host)).start_s(ONE_CPU) == 600.0


def test_a_gpu_job_occupies_cpus_only_if_it_uses_a_whole_one() -> None:
    host = a_host(ncpus=2, coprocessors=(Coprocessor(NVIDIA, 1),))
    busy = busy_of((a_want(NVIDIA, count=1), a_want()), host, ())
    light = busy.with_job(HALF_GPU, 100.0, tight=True)
    heavy = busy.with_job(PlanClass("cuda", ncpus=1.0, gpu_type=NVIDIA), 100.0, tight=True)
    two_cpus = PlanClass("", ncpus=2.0)
    assert (light.start_s(two_cpus), heavy.start_s(two_cpus)) == (0.0, 100.0)
    assert (light.start_s(HALF_GPU), heavy.start_s(HALF_GPU)) == (0.0, 100.0)


def test_relaxed_jobs_do_not_delay_tight_ones_tight_delay_all() -> None:
    busy = busy_of((a_want(count=1),), a_host(ncpus=1), ())
    relaxed = busy.with_job(ONE_CPU, 100.0, tight=False)
    tight = relaxed.with_job(ONE_CPU, 50.0, tight=True)
    assert (relaxed.start_s(ONE_CPU), relaxed.queue_s(ONE_CPU)) == (0.0, 100.0)
    assert (tight.start_s(ONE_CPU), tight.queue_s(ONE_CPU)) == (50.0, 150.0)
    assert busy.queue_s(ONE_CPU) == 0.0  # immutable: the earlier value is unchanged


def test_processors_of_a_type_without_a_wish_are_known_too() -> None:
    fake = ProcessorType("fake_gpu")
    host = a_host(ncpus=2, coprocessors=(Coprocessor(fake, 2),))
    queue = (ClientTask("x", Instant(NOW + 9e5), Seconds(60.0), 1.0, fake, 1.0),)
    busy = busy_of((a_want(),), host, reported_work(queue, (), host))
    assert busy.queue[fake].instances == ((0.0,), (60.0,))
    assert busy.queue[CPU].instances == ((0.0,), (60.0,))


def test_work_on_a_removed_device_is_ignored() -> None:
    queue = (ClientTask("x", Instant(NOW + 9e5), Seconds(60.0), 0.1, NVIDIA, 1.0),)
    busy = busy_of((a_want(),), a_host(ncpus=2), reported_work(queue, (), a_host(ncpus=2)))
    assert busy.queue[CPU].instances == ((0.0,), (0.0,))
