"""The selection of jobs: stages, order, limits, due dates and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from domain.apps import CPU, NVIDIA, OnePerVolunteer
from domain.batches import BatchCounts, QoS
from domain.dispatch import Assignment
from domain.due_terms import DueRow
from domain.hosts import Coprocessor, DecayedSums, HostAppVersion
from domain.jobs import Input, InstanceInProgress
from domain.refusals import RefusalCode
from domain.restrictions import Restricted, Restriction
from domain.units import DAY_S, HOUR_S, AppVersionId, FlopPerSecond, HostId, Instant, JobId, Seconds, VolunteerId
from scheduler.choice import Choice
from scheduler.selection import GATES_LOOKED_AT, GROUPS_LOOKED_AT, SLOTS_LOOKED_AT, choose
from tests.builders import NOW, a_hav, a_held, a_host, a_plan_class, a_ready, a_volunteer, an_app, an_app_version
from tests.facts import missing
from tests.unit.scheduler.arrays import ListArray, ListGroup, a_catalogue, a_group, a_want, an_asking, some_cuts

AFAP: dict[str, Any] = {"qos": QoS.AFAP}
MANY = (a_want(req_s=Seconds(1e9)),)
JOB_S = 3600.0  # R of a_job_class on a_host


def ranked(p: float = 0.95, **changes: Any) -> dict[AppVersionId, HostAppVersion]:
    """A host with this percentile in some_cuts()."""
    sums = DecayedSums(1e9, 1e9 * (1.0 - p), 1e9, NOW)
    return {AppVersionId(1): a_hav(consecutive_valid=11, relaxed=sums, **changes)}


def ids(choice: Choice) -> list[int]:
    return [one.assignment.instance_id for one in choice.chosen]


def codes(choice: Choice) -> set[RefusalCode]:
    return {one.refusal.code for one in choice.refused}


def array(*groups: ListGroup) -> ListArray:
    return ListArray(list(groups))


# ------------------------------------------------------------------ what an assignment is


def test_a_job_is_taken_from_the_array_with_everything_to_write() -> None:
    ready = array(a_group(3, 2))
    choice = choose(an_asking(), ready)
    (chosen,) = choice.chosen
    one = chosen.assignment
    assert (one.instance_id, one.job_id, one.batch_id, one.job_class_id) == (3000, 3000, 3, 3)
    assert (chosen.batch.app_id, one.app_version_id, one.host_id, one.volunteer_id) == (1, 1, 1, 1)
    assert (one.sent_at, one.due_at, one.est_runtime_s, one.tight) == (NOW, NOW + 7 * DAY_S, JOB_S, False)
    assert one.timeout_at == one.due_at + 0.1 * 7 * DAY_S
    assert one.due_terms.row.number == 1 and not missing(one.due_terms.because, "throughput", "1 h", "7 d")
    inputs = one.due_terms.in_full.removeprefix(one.due_terms.because)
    assert not missing(
        inputs, "[muster:", "start 0 s", "queue 0 s", "R 1 h", "R_q 2 h 30 min", "P 0.500", "gate none 0]"
    )
    assert (chosen.flop_per_s, chosen.version.version_num) == (1e9, 100)
    assert ready.taken == [chosen.slot]
    assert choice.examined == 1


def test_a_tight_job_says_so() -> None:
    (chosen,) = choose(an_asking(), array(a_group(1, **AFAP))).chosen
    assert (chosen.assignment.tight, chosen.assignment.due_at) == (True, NOW + 2.5 * JOB_S)
    assert chosen.assignment.due_terms.row is DueRow.PROMPT_2_NO_ESTIMATE
    assert chosen.assignment.due_terms.row.number == 2 and not missing(
        chosen.assignment.due_terms.because, "P 0.500 >= 0.5"
    )


def test_the_host_class_is_fixed_where_jobs_ask_for_hosts_alike() -> None:
    host = a_host(cpu_vendor="GenuineIntel")
    (chosen,) = choose(an_asking(host=host), array(a_group(1, hr_type=1))).chosen
    assert chosen.assignment.hr_class == 21


def test_untrusted_host_is_checked_by_adaptive_copies() -> None:
    catalogue = a_catalogue(apps=[an_app(adaptive_copies=2)])
    copies = [
        choose(an_asking(catalogue=catalogue), array(a_group(1, quorum=quorum))).chosen[0].assignment.copies
        for quorum in (1, 2)
    ]
    assert copies == [2, 0]
    trusted = an_asking(catalogue=catalogue, havs={AppVersionId(1): a_hav(consecutive_valid=10**9)})
    assert choose(trusted, array(a_group(1))).chosen[0].assignment.copies == 0


# ------------------------------------------------------------------ how many


def test_one_second_gets_one_job() -> None:
    assert len(choose(an_asking(), array(a_group(1, 9))).chosen) == 1


def test_wanted_seconds_are_covered_with_as_few_jobs_as_will_do() -> None:
    context = an_asking(wants=(a_want(req_s=Seconds(2.5 * JOB_S)),))
    assert len(choose(context, array(a_group(1, 9))).chosen) == 3


def test_every_idle_instance_gets_a_job() -> None:
    context = an_asking(host=a_host(ncpus=4), wants=(a_want(count=4, req_instances=4.0),))
    assert len(choose(context, array(a_group(1, 9))).chosen) == 4


def test_a_job_of_several_cpus_covers_several_instances() -> None:
    catalogue = a_catalogue(an_app_version(plan_class=a_plan_class(ncpus=2.0)))
    host = a_host(ncpus=4)
    context = an_asking(host=host, catalogue=catalogue, wants=(a_want(count=4, req_instances=4.0),))
    assert len(choose(context, array(a_group(1, 9))).chosen) == 2


def test_a_request_gets_no_more_than_its_limit() -> None:
    context = an_asking(wants=MANY, catalogue=a_catalogue(scheduler__jobs_per_request=3))
    assert len(choose(context, array(a_group(1, 50))).chosen) == 6


def test_a_host_holds_no_more_than_its_limit() -> None:
    held = tuple(a_held(instance_id=i) for i in range(3))
    context = an_asking(wants=MANY, held=held, catalogue=a_catalogue(scheduler__in_progress_per_cpu=2))
    assert len(choose(context, array(a_group(1, 50))).chosen) == 1
    full = choose(an_asking(wants=MANY, held=held, catalogue=a_catalogue(scheduler__in_progress_per_cpu=1)), array())
    assert codes(full) == {RefusalCode.IN_PROGRESS_LIMIT}


def test_next_version_is_used_after_the_daily_quota() -> None:
    second = an_app_version(app_version_id=2, plan_class=a_plan_class(name="sse", ncpus=1.0, cpu_speed_fraction=0.5))
    havs = {AppVersionId(1): a_hav(quota_per_day=1), AppVersionId(2): a_hav(app_version_id=2, quota_per_day=1)}
    context = an_asking(wants=MANY, havs=havs, catalogue=a_catalogue(an_app_version(), second))
    choice = choose(context, array(a_group(1, 20, **AFAP)))
    assert [one.assignment.app_version_id for one in choice.chosen] == [1, 1, 2, 2]
    assert codes(choice) == {RefusalCode.DAILY_QUOTA}


def test_disk_is_used_up_by_the_jobs_of_the_reply() -> None:
    context = an_asking(wants=MANY, host=a_host(disk_free_bytes=2.5e8))
    choice = choose(context, array(a_group(1, 9)))
    assert len(choice.chosen) == 2


def test_a_smaller_job_still_fits_where_a_larger_one_does_not() -> None:
    context = an_asking(wants=MANY, host=a_host(disk_free_bytes=2.5e8))
    choice = choose(context, array(a_group(1, 3), a_group(2, 5, disk_bytes=2e7)))
    assert ids(choice) == [1000, 1001, 2000, 2001]
    assert codes(choice) == {RefusalCode.DISK}


def test_the_queue_grows_with_the_reply_until_the_delay_bound() -> None:
    context = an_asking(wants=MANY)
    choice = choose(context, array(a_group(1, 50, delay_bound_s=3.0 * JOB_S)))
    assert len(choice.chosen) == 6  # three in sequence on each of two CPUs


def test_tight_jobs_of_a_reply_are_due_one_after_the_other() -> None:
    host = a_host(ncpus=1)
    context = an_asking(host=host, wants=(a_want(count=1, req_s=Seconds(3 * JOB_S)),))
    choice = choose(context, array(a_group(1, 9, **AFAP)))
    assert [one.assignment.due_at - NOW for one in choice.chosen] == [2.5 * JOB_S, 3.5 * JOB_S, 4.5 * JOB_S]


# ------------------------------------------------------------------ order and passes


def test_groups_are_walked_in_order() -> None:
    context = an_asking(wants=(a_want(req_s=Seconds(5 * JOB_S)),))
    assert ids(choose(context, array(a_group(2, 3), a_group(1, 3)))) == [1000, 1001, 1002, 2000, 2001]


def test_gated_jobs_come_first_for_a_host_that_passes() -> None:
    groups = [a_group(1, 3), a_group(2, 3, **AFAP)]
    context = an_asking(havs=ranked(), catalogue=a_catalogue(cuts=[some_cuts()]))
    assert ids(choose(context, array(*groups))) == [2000]


def test_a_host_below_every_gate_gets_ungated_jobs_in_order() -> None:
    groups = [a_group(1, 3, **AFAP), a_group(2, 3)]
    context = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()], deadline__afap="table"))
    choice = choose(context, array(*groups))
    assert ids(choice) == [2000]
    assert codes(choice) == {RefusalCode.BELOW_GATE}


def test_ungated_afap_jobs_come_before_deferrable_work() -> None:
    groups = [a_group(1, 3), a_group(2, 3, **AFAP)]
    context = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()]))
    choice = choose(context, array(*groups))
    assert ids(choice) == [2000]
    assert not choice.chosen[0].assignment.tight
    in_order = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()], deadline__afap="table"))
    assert ids(choose(in_order, array(*groups))) == [1000]


def test_a_retry_that_can_wait_is_not_for_a_host_that_has_enough() -> None:
    held = tuple(a_held(instance_id=90 + n, job_id=90 + n, est_runtime_s=Seconds(90 * HOUR_S)) for n in range(2))
    retries = a_group(1, ready=[a_ready(instance_id=1000, job_id=1000, retries=1)])
    much = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()]), held=held)
    choice = choose(much, array(retries))
    assert (ids(choice), codes(choice)) == ([], {RefusalCode.NOT_YET})
    less = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()]))
    assert ids(choose(less, array(retries))) == [1000]


def test_an_owner_who_stores_work_for_three_days_gets_it() -> None:
    held = tuple(a_held(instance_id=90 + n, job_id=90 + n, est_runtime_s=Seconds(9 * HOUR_S)) for n in range(4))
    stores = an_asking(held=held, alone_s=Seconds(3 * DAY_S), wants=(a_want(req_s=Seconds(40 * JOB_S)),))
    assert len(ids(choose(stores, array(a_group(1, 16))))) == 16


def test_afap_batches_do_not_starve_deferrable_work() -> None:
    """AFAP jobs come first in nine of ten requests; in the others the order of all batches applies."""
    catalogue = a_catalogue(cuts=[some_cuts()])
    sent = [
        ids(
            choose(
                an_asking(havs=ranked(0.3), catalogue=catalogue, seed=seed), array(a_group(1, 3), a_group(2, 3, **AFAP))
            )
        )
        for seed in range(1, 401)
    ]
    waited = sum(one == [1000] for one in sent)
    assert waited + sum(one == [2000] for one in sent) == 400
    assert 25 <= waited <= 55
    never = a_catalogue(cuts=[some_cuts()], scheduler__afap_first_fraction=0.0)
    context = an_asking(havs=ranked(0.3), catalogue=never)
    assert ids(choose(context, array(a_group(1, 3), a_group(2, 3, **AFAP)))) == [1000]


def test_batch_due_soon_goes_first_like_an_afap_batch() -> None:
    """T_retry is five hours, so it goes first from twenty hours before its deadline; a factor of 0 turns this off."""

    def sent(left_h: float, **settings: Any) -> list[int]:
        catalogue = a_catalogue(cuts=[some_cuts(retry_turnaround_s=Seconds(5 * HOUR_S))], **settings)
        due = a_group(2, 3, qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW + left_h * HOUR_S))
        return ids(choose(an_asking(havs=ranked(0.3), catalogue=catalogue), array(a_group(1, 3), due)))

    assert sent(21.0) == [1000]
    assert sent(19.0) == [2000]
    assert sent(19.0, deadline__first_factor=0.0) == [1000]
    assert sent(-1.0, deadline__first_factor=0.0) == [1000]


def test_batch_due_within_delay_bound_goes_first_if_unmeasured() -> None:
    """Half of the bound then counts as T_retry, and a deadline beyond the delay bound is never near."""

    def sent(left_s: float) -> list[int]:
        due = a_group(2, 3, qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW + left_s))
        return ids(choose(an_asking(), array(a_group(1, 3), due)))

    bound_s = a_group(1, 1).job_class.delay_bound_s
    assert sent(bound_s + 1.0) == [1000]
    assert sent(bound_s - 1.0) == [2000]


def test_due_soon_depends_on_the_requested_processor_type() -> None:
    """A retry takes five hours on a CPU and one on a GPU: 19 hours are near for a CPU only."""
    cuts = [
        some_cuts(retry_turnaround_s=Seconds(5 * HOUR_S)),
        some_cuts(kind=NVIDIA, retry_turnaround_s=Seconds(HOUR_S)),
    ]
    due = a_group(2, 3, qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW + 19 * HOUR_S))
    context = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=cuts))
    assert ids(choose(context, array(a_group(1, 3), due))) == [2000]


def test_retries_come_first_for_a_host_that_passes() -> None:
    retried = a_group(2, ready=[a_ready(instance_id=2000, job_id=2000, retries=1)], qos=QoS.AFAP)
    context = an_asking(havs=ranked(), catalogue=a_catalogue(cuts=[some_cuts()]))
    assert ids(choose(context, array(a_group(1, 3), retried))) == [2000]


def test_retry_is_refused_where_a_siblings_copy_is_not() -> None:
    slots = [
        a_ready(instance_id=1, job_id=1, retries=2),
        a_ready(instance_id=2, job_id=2, retries=1),
        a_ready(instance_id=3, job_id=3, sibling_returned=True),
    ]
    context = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()]), wants=MANY)
    choice = choose(context, array(a_group(1, ready=slots, qos=QoS.AFAP)))
    assert ids(choice) == [3]


def test_jobs_whose_sticky_files_are_on_the_host_come_first() -> None:
    sticky = (Input("genome", "in", 10**9, "0" * 32, sticky=True),)
    groups = [a_group(1, 3), a_group(2, 3, inputs=sticky)]
    assert ids(choose(an_asking(sticky_files=frozenset({"genome", "x"})), array(*groups))) == [2000]
    groups = [a_group(1, 3), a_group(2, 3, inputs=sticky)]
    assert ids(choose(an_asking(sticky_files=frozenset({"x"})), array(*groups))) == [1000]


def test_beta_jobs_come_before_others_for_those_who_opted_in() -> None:
    apps = [an_app(), an_app(app_id=2, name="new", beta=True)]
    catalogue = a_catalogue(an_app_version(), an_app_version(app_version_id=2, app_id=2), apps=apps)
    groups = [a_group(1, 3), a_group(2, 3, app_id=2)]
    context = an_asking(catalogue=catalogue, volunteer=a_volunteer(beta=True))
    assert ids(choose(context, array(*groups))) == [2000]
    assert ids(choose(an_asking(catalogue=catalogue), array(a_group(2, 3, app_id=2), a_group(3, 1)))) == [3000]


def test_at_most_half_are_gated_while_others_wait() -> None:
    context = an_asking(wants=(a_want(req_s=Seconds(4 * JOB_S)),))
    assert ids(choose(context, array(a_group(1, 9, **AFAP), a_group(2, 9)))) == [1000, 1001, 2000, 2001]


def test_all_jobs_may_be_gated_without_other_work() -> None:
    context = an_asking(wants=(a_want(req_s=Seconds(4 * JOB_S)),))
    assert ids(choose(context, array(a_group(1, 9, **AFAP), a_group(2, 1)))) == [1000, 1001, 2000, 1002]


def test_late_batch_leaves_the_gated_share_to_others() -> None:
    """A missed deadline cannot be met by tight jobs: its jobs go first, but the gated half is for AFAP jobs."""

    def sent(late_first: bool, rest: int) -> list[int]:
        late = a_group(2, 9, qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW - 1.0))
        soon = a_group(1, rest, **AFAP)
        groups = (late, soon) if late_first else (soon, late)
        context = an_asking(wants=(a_want(req_s=Seconds(4 * JOB_S)),))
        return ids(choose(context, array(*groups, a_group(3, 9))))

    assert sent(True, 9) == sent(False, 9) == [1000, 1001, 2000, 2001]
    assert sent(True, 1) == sent(False, 1) == [1000, 2000, 2001, 2002]


def test_hosts_below_the_gate_get_late_jobs_after_afap_jobs() -> None:
    late = a_group(2, 9, qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW - 1.0))
    catalogue = a_catalogue(cuts=[some_cuts()])
    context = an_asking(havs=ranked(0.2), catalogue=catalogue, wants=(a_want(req_s=Seconds(3 * JOB_S)),))
    assert ids(choose(context, array(late, a_group(1, 1, **AFAP), a_group(3, 9)))) == [1000, 2000, 2001]


def test_the_gated_share_can_be_lifted() -> None:
    catalogue = a_catalogue(scheduler__urgent_share_fraction=1.0)
    context = an_asking(wants=(a_want(req_s=Seconds(4 * JOB_S)),), catalogue=catalogue)
    assert ids(choose(context, array(a_group(1, 9, **AFAP), a_group(2, 9)))) == [1000, 1001, 1002, 1003]


def test_the_proposal_knows_no_such_cap() -> None:
    catalogue = a_catalogue(deadline__rule="proposal", deadline__p_afap=0.4)
    context = an_asking(wants=(a_want(req_s=Seconds(4 * JOB_S)),), catalogue=catalogue)
    assert ids(choose(context, array(a_group(1, 9, **AFAP), a_group(2, 9)))) == [1000, 1001, 1002, 1003]


# ------------------------------------------------------------------ processor types


def a_gpu_request(**changes: Any) -> Any:
    cuda = an_app_version(app_version_id=2, plan_class=a_plan_class(name="cuda", ncpus=0.2, gpu_type=NVIDIA))
    host = a_host(coprocessors=(Coprocessor(NVIDIA, 1, FlopPerSecond(1e12)),))
    named = {
        "host": host,
        "catalogue": a_catalogue(an_app_version(), cuda),
        "wants": (a_want(NVIDIA, count=1), a_want(CPU)),
    }
    return an_asking(**{**named, **changes})


def test_gpus_are_served_first_and_cpus_separately() -> None:
    choice = choose(a_gpu_request(), array(a_group(1, 9)))
    assert [one.assignment.app_version_id for one in choice.chosen] == [2, 1]


def test_a_volunteer_without_gpu_work_gets_cpu_jobs() -> None:
    choice = choose(a_gpu_request(volunteer=a_volunteer(no_gpu=True)), array(a_group(1, 9)))
    assert [one.assignment.app_version_id for one in choice.chosen] == [1]
    assert codes(choice) == {RefusalCode.NO_GPU}


def test_a_group_one_processor_could_use_is_not_noted_as_refused() -> None:
    ready = array(a_group(1, 9))
    choice = choose(a_gpu_request(catalogue=a_catalogue()), ready)
    assert [one.assignment.app_version_id for one in choice.chosen] == [1]
    assert codes(choice) == {RefusalCode.NO_APP_VERSION}
    assert ready.noted == []


# ------------------------------------------------------------------ single jobs


@pytest.mark.parametrize(
    ("app", "quorum", "chosen"),
    [
        pytest.param({}, 1, [1001, 1002, 1003], id="quorum 1"),
        pytest.param({}, 2, [1002, 1003], id="quorum 2"),
        pytest.param({"adaptive_copies": 2}, 1, [1002, 1003], id="adaptive copies"),
        pytest.param({"one_per_volunteer": OnePerVolunteer.ALWAYS}, 1, [1002, 1003], id="always"),
        pytest.param({"one_per_volunteer": OnePerVolunteer.NEVER}, 2, [1001, 1002, 1003], id="never"),
        pytest.param({"one_per_host": False}, 1, [1000, 1001, 1002], id="hosts get several"),
    ],
)
def test_app_limits_instances_per_host_and_volunteer(app: dict[str, Any], quorum: int, chosen: list[int]) -> None:
    """The host has had an instance of job 1000 and has one of job 1003; its volunteer has had one of job 1001."""
    ready = array(a_group(1, 4, quorum=quorum))
    ready.hosts_of[JobId(1000)] = {HostId(1)}
    ready.volunteers_of[JobId(1001)] = {VolunteerId(1)}
    held: tuple[InstanceInProgress, ...] = ()
    if "one_per_host" in app:
        ready.hosts_of[JobId(1003)] = {HostId(1)}
        held = (a_held(job_id=JobId(1003)),)
    context = an_asking(wants=MANY, held=held, catalogue=a_catalogue(apps=[an_app(**app)]))

    assert ids(choose(context, ready)) == chosen


def test_copies_asked_for_limit_instances_per_volunteer() -> None:
    """Job 8 was sent while the app replicated; job 7 never required a second result."""
    ready = array(a_group(1, ready=[a_ready(instance_id=1, job_id=7), a_ready(instance_id=2, job_id=8, copies=2)]))
    ready.volunteers_of = {JobId(7): {VolunteerId(1)}, JobId(8): {VolunteerId(1)}}

    assert ids(choose(an_asking(wants=MANY), ready)) == [1]


def test_refusal_names_another_host_or_volunteer() -> None:
    for quorum, code in ((1, RefusalCode.SAME_HOST), (2, RefusalCode.SAME_VOLUNTEER)):
        ready = array(a_group(1, 1, quorum=quorum))
        ready.hosts_of[JobId(1000)] = {HostId(1)}

        assert codes(choose(an_asking(wants=MANY), ready)) == {code}


def test_two_instances_of_a_job_do_not_go_into_one_reply() -> None:
    slots = [a_ready(instance_id=1, job_id=7), a_ready(instance_id=2, job_id=7), a_ready(instance_id=3, job_id=8)]
    assert ids(choose(an_asking(wants=MANY), array(a_group(1, ready=slots)))) == [1, 3]


def test_jobs_of_another_class_of_hosts_are_passed_over() -> None:
    slots = [a_ready(instance_id=1, job_id=1, hr_class=11), a_ready(instance_id=2, job_id=2, hr_class=21)]
    host = a_host(cpu_vendor="GenuineIntel")
    assert ids(choose(an_asking(host=host, wants=MANY), array(a_group(1, ready=slots, hr_type=1)))) == [2]


def test_group_is_left_after_the_slot_search_limit() -> None:
    ready = array(a_group(1, SLOTS_LOOKED_AT + 5), a_group(2, 1))
    for number in range(SLOTS_LOOKED_AT):
        ready.hosts_of[JobId(1000 + number)] = {HostId(1)}
    choice = choose(an_asking(), ready)
    assert ids(choice) == [2000]
    assert ready.noted == [(ready.held[0], RefusalCode.SAME_HOST)]


RANKED = a_catalogue(cuts=[some_cuts()])
LAST_JOBS: dict[str, Any] = {"counts": BatchCounts(jobs_total=1000, unsent=40)}  # below the newcomers' 5 %
FOUR = (a_want(req_s=Seconds(4 * JOB_S)),)  # more than its idle processors: none
IDLE = (a_want(req_s=Seconds(4 * JOB_S), req_instances=2.0),)


def test_newcomers_get_ungated_work_as_others_do() -> None:
    newcomer, ranked_host = an_asking(wants=FOUR, catalogue=RANKED), an_asking(catalogue=RANKED, havs=ranked())
    assert len(choose(newcomer, array(a_group(1, 40))).chosen) == 4
    assert len(choose(newcomer, array(a_group(1, 9, **LAST_JOBS))).chosen) == 4
    assert len(choose(replace(ranked_host, wants=FOUR), array(a_group(1, 40))).chosen) == 4


def test_last_jobs_are_for_newcomers_and_idle_processors() -> None:
    ready = array(a_group(1, 9, **LAST_JOBS))
    choice = choose(an_asking(wants=FOUR, catalogue=RANKED, havs=ranked()), ready)
    assert (ids(choice), codes(choice)) == ([], {RefusalCode.NEWCOMER_SHARE})
    assert ready.noted == [(ready.held[0], RefusalCode.NEWCOMER_SHARE)]
    assert len(choose(an_asking(wants=IDLE, catalogue=RANKED, havs=ranked()), ready).chosen) == 2


def test_without_ranked_hosts_last_jobs_are_for_all() -> None:
    assert len(choose(an_asking(wants=FOUR, havs=ranked()), array(a_group(1, 9, **LAST_JOBS))).chosen) == 4


def test_retries_and_other_rules_know_no_newcomers_share() -> None:
    urgent = [a_ready(instance_id=i, job_id=i, sibling_returned=True) for i in range(40)]
    context = an_asking(wants=FOUR, catalogue=RANKED, havs=ranked())
    assert len(choose(context, array(a_group(1, ready=urgent, **LAST_JOBS))).chosen) == 4
    fixed = a_catalogue(cuts=[some_cuts()], deadline__rule="fixed")
    assert len(choose(replace(context, catalogue=fixed), array(a_group(1, 9, **LAST_JOBS))).chosen) == 4


def test_trying_a_version_does_not_make_a_host_a_newcomer() -> None:
    new = an_app_version(app_version_id=2, plan_class=a_plan_class(name="avx", ncpus=1.0, cpu_speed_fraction=1.0))
    catalogue = a_catalogue(an_app_version(), new, cuts=[some_cuts()])
    speed = DecayedSums(20.0, 20 / 1e9, 20 / 1e18, NOW)
    tried = set()
    for seed in range(40):
        context = an_asking(
            host=a_host(ncpus=8),
            wants=(a_want(count=8, req_s=Seconds(8 * JOB_S), req_instances=8.0),),
            catalogue=catalogue,
            havs=ranked(0.8, speed=speed),
            seed=seed,
        )
        choice = choose(context, array(a_group(1, 200)))
        assert len(choice.chosen) == 8
        tried |= {one.assignment.app_version_id for one in choice.chosen}
    assert tried == {1, 2}


# ------------------------------------------------------------------ refusals


def test_an_empty_array_says_so() -> None:
    assert codes(choose(an_asking(), array())) == {RefusalCode.NO_SLOTS}


def test_an_empty_array_names_paused_work() -> None:
    pause = Restriction(Restricted.QUEUE, "bonus", 0, "disk full", "ada", NOW)
    ban = Restriction(Restricted.HOST, "7", 0, "wrong results", "ada", NOW)
    for found, code in (((pause, ban), RefusalCode.PAUSED), ((ban,), RefusalCode.NO_SLOTS)):
        restrictions = {(one.kind, one.name): one for one in found}
        context = an_asking(catalogue=replace(a_catalogue(), restrictions=restrictions))
        assert codes(choose(context, array())) == {code}


def test_paused_apps_are_named() -> None:
    pause = Restriction(Restricted.APP, "1", 0, "disk full", "ada", NOW)
    catalogue = replace(a_catalogue(apps=[an_app(name="rho")]), restrictions={(pause.kind, pause.name): pause})
    [refused] = choose(an_asking(catalogue=catalogue), array()).refused
    assert refused.refusal.terms == ("app rho",)


def test_nothing_wanted_is_nothing_refused() -> None:
    assert choose(an_asking(wants=()), array(a_group(1))) == Choice((), (), 0)


def test_app_refusal_is_reported_once_and_noted_per_group() -> None:
    ready = array(a_group(1), a_group(2), a_group(3))
    choice = choose(an_asking(host=a_host(platforms=("windows_x86_64",))), ready)
    assert [(one.refusal.code, one.app_id, one.batch_id) for one in choice.refused] == [(RefusalCode.PLATFORM, 1, None)]
    assert [code for _, code in ready.noted] == [RefusalCode.PLATFORM] * 3


def test_refusals_are_summed_up_for_the_volunteer() -> None:
    ready = array(a_group(1, memory_bytes=9e9), a_group(2, memory_bytes=10e9), a_group(3, fpops_est_flop=1e18))
    reasons = choose(an_asking(), ready).reasons({})
    refusals, why = reasons[RefusalCode.MEMORY]
    assert (refusals, missing(why, "9 GB", "host offers 8 GB")) == (2, [])
    assert reasons[RefusalCode.TOO_SLOW][0] == 1
    assert {one.batch_id for one in choose(an_asking(), ready).refused} == {1, 2, 3}


def test_reason_names_the_app_of_its_numbers() -> None:
    ready = array(a_group(1, memory_bytes=9e9), a_group(2, app_id=2, memory_bytes=10e9))
    apps = an_app(), an_app(app_id=2, name="fold")
    versions = an_app_version(), an_app_version(app_version_id=2, app_id=2)
    context = an_asking(catalogue=a_catalogue(*versions, apps=apps))

    count, why = choose(context, ready).reasons(context.catalogue.apps)[RefusalCode.MEMORY]

    assert (count, why.partition(": ")[0]) == (2, "pi")
    assert not missing(why, "9 GB") and "10 GB" not in why


def test_an_app_the_catalogue_does_not_have_yet_is_refused() -> None:
    assert codes(choose(an_asking(), array(a_group(1, app_id=9)))) == {RefusalCode.NO_SLOTS}


# ------------------------------------------------------------------ cost and repetition


def test_slots_of_a_refused_group_are_not_looked_at() -> None:
    group = a_group(1, 1000, memory_bytes=9e9)
    choose(an_asking(), array(group))
    assert group.times_looked_into == 0


def test_a_request_can_be_repeated_from_its_seed() -> None:
    second = an_app_version(app_version_id=2, plan_class=a_plan_class(name="sse", ncpus=1.0))
    catalogue = a_catalogue(an_app_version(), second)

    def versions(seed: int) -> Sequence[int]:
        choice = choose(an_asking(wants=MANY, catalogue=catalogue, seed=seed), array(a_group(1, 3)))
        return [one.assignment.app_version_id for one in choice.chosen]

    assert versions(4) == versions(4)
    assert len({tuple(versions(seed)) for seed in range(20)}) == 2


def test_a_late_job_goes_to_the_best_hosts_only() -> None:
    late: dict[str, Any] = {"qos": QoS.SHORT_DEADLINE, "deadline_at": Instant(NOW + HOUR_S)}
    catalogue = a_catalogue(cuts=[some_cuts()])
    good = choose(an_asking(havs=ranked(0.95), catalogue=catalogue), array(a_group(1, **late)))
    assert good.chosen[0].assignment.due_terms.row.number == 5
    fair = choose(an_asking(havs=ranked(0.8), catalogue=catalogue), array(a_group(1, **late)))
    assert codes(fair) == {RefusalCode.BELOW_GATE}


def test_estimate_opens_afap_batch_to_hosts_below_the_gate() -> None:
    counts = BatchCounts(jobs_total=100, jobs_validated=50)
    catalogue = a_catalogue(cuts=[some_cuts()])

    def assigned(percentile: float) -> Assignment:
        group = a_group(1, completion_at=Instant(NOW + 6 * DAY_S), counts=counts, **AFAP)
        (chosen,) = choose(an_asking(havs=ranked(percentile), catalogue=catalogue), array(group)).chosen
        return chosen.assignment

    good, other = assigned(0.95), assigned(0.2)
    assert (good.tight, good.due_terms.row.number) == (True, 2)
    assert (other.tight, other.due_terms.row.number) == (False, 3)
    assert good.due_at == other.due_at < NOW + DAY_S  # both are idle: jobs start at once


def test_search_limit_bounds_groups_and_is_reported() -> None:
    ready = array(*(a_group(number, memory_bytes=9e9) for number in range(1, GROUPS_LOOKED_AT + 51)))
    choice = choose(an_asking(), ready)
    assert choice.examined == GROUPS_LOOKED_AT
    assert len(ready.noted) == GROUPS_LOOKED_AT
    [told] = [one.refusal.detail for one in choice.refused if one.refusal.code is RefusalCode.REQUEST_LIMIT]
    assert not missing(told, "256 of 306", "limit")


def test_ungated_work_is_found_behind_many_gated_groups() -> None:
    """Any number of gated classes, or batches of one class, may precede it."""
    for gated in (GROUPS_LOOKED_AT - 1, GROUPS_LOOKED_AT, GROUPS_LOOKED_AT + 50):
        groups = [a_group(number, **AFAP) for number in range(1, gated + 1)]
        context = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()], deadline__afap="table"))
        choice = choose(context, array(*groups, a_group(9000, 1)))
        assert ids(choice) == [9_000_000]
        assert choice.counts() == {RefusalCode.BELOW_GATE: gated}


def test_ordinary_work_follows_once_the_gated_share_is_used() -> None:
    groups = [a_group(number, **AFAP) for number in range(1, GROUPS_LOOKED_AT + 51)]
    held = (a_held(instance_id=90, job_id=90, tight=True),)
    context = an_asking(havs=ranked(), catalogue=a_catalogue(cuts=[some_cuts()]), held=held)
    assert ids(choose(context, array(*groups, a_group(9000, 1)))) == [9_000_000]


def test_used_gated_share_limits_the_search_of_prompt_groups() -> None:
    """All of them are gated for it: one look tells of the rest."""
    groups = [a_group(number, batch_id=number, **AFAP) for number in range(1, 51)]
    held = (a_held(instance_id=90, job_id=90, tight=True),)
    context = an_asking(havs=ranked(), catalogue=a_catalogue(cuts=[some_cuts()]), held=held)
    choice = choose(context, array(*groups, a_group(9000, 1)))
    assert ids(choice) == [9_000_000]
    assert choice.examined <= 3


def test_ordinary_work_is_reached_behind_late_jobs_of_all_sizes() -> None:
    at = Instant(NOW + HOUR_S)
    groups = [
        a_group(number, qos=QoS.SHORT_DEADLINE, deadline_at=at, fpops_est_flop=1e12 * number)
        for number in range(2, GROUPS_LOOKED_AT + 52)
    ]
    context = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()]))
    assert ids(choose(context, array(*groups, a_group(9000, 1)))) == [9_000_000]


def test_retries_a_host_may_not_have_hide_nothing() -> None:
    groups = [
        a_group(number, ready=[a_ready(instance_id=number, job_id=number, retries=1)], qos=QoS.AFAP)
        for number in range(1, GROUPS_LOOKED_AT + 51)
    ]
    context = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()]))
    assert ids(choose(context, array(*groups, a_group(9000, 1)))) == [9_000_000]


def test_gates_are_looked_at_a_bounded_number_of_times_too() -> None:
    at = Instant(NOW + HOUR_S)
    groups = [
        a_group(number, qos=QoS.SHORT_DEADLINE, deadline_at=at, fpops_est_flop=1e13)
        for number in range(1, GATES_LOOKED_AT + 11)
    ]
    context = an_asking(havs=ranked(0.3), catalogue=a_catalogue(cuts=[some_cuts()], deadline__first_factor=0.0))
    choice = choose(context, array(*groups, a_group(9000, 1)))
    assert (ids(choice), choice.examined) == ([], GATES_LOOKED_AT)
    assert codes(choice) == {RefusalCode.BELOW_GATE, RefusalCode.REQUEST_LIMIT}


def test_work_behind_unfit_groups_is_found_below_the_limit() -> None:
    unfit = [a_group(number, memory_bytes=9e9) for number in range(1, GROUPS_LOOKED_AT)]
    assert len(choose(an_asking(), array(*unfit, a_group(1000, 1))).chosen) == 1


def test_app_without_a_version_does_not_hide_other_apps() -> None:
    apps = [an_app(), an_app(app_id=2, name="other")]
    catalogue = a_catalogue(an_app_version(), an_app_version(app_version_id=2, app_id=2, platform="vax"), apps=apps)
    unfit = [a_group(number, app_id=2) for number in range(1, GROUPS_LOOKED_AT + 51)]
    ready = array(*unfit, a_group(1000, 1))
    choice = choose(an_asking(catalogue=catalogue), ready)
    assert ids(choice) == [1_000_000]
    assert [one.refusal.code for one in choice.refused] == [RefusalCode.PLATFORM]
    assert len(ready.noted) == GROUPS_LOOKED_AT
