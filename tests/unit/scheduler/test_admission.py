"""Matching requests with host records, and their work requests."""

from __future__ import annotations

import hashlib

import pytest

from domain.apps import ANONYMOUS, CPU, ProcessorType
from domain.catalogue import Catalogue
from domain.dispatch import RequestView
from domain.refusals import RefusalCode
from domain.settings import SchedulerSettings, Settings
from domain.units import DAY_S, AppId, AppVersionId, HostId, Instant, Seconds, later
from scheduler.admission import (
    Admission,
    Contact,
    HostCase,
    admit,
    context_of,
    key_of,
    kinds_of,
    less_resent,
    refuse_all,
    wants_of,
)
from scheduler.context import SchedulingContext, WorkRequest
from scheduler.held import HeldReview
from tests.builders import NOW, a_hav, a_held, a_host, a_plan_class, a_volunteer, an_app_version
from tests.facts import missing
from tests.unit.scheduler.project import a_request, a_success, listed
from wire.messages import CoprocRequest, HostInfo, InProgress, SchedulerRequest

GPU = ProcessorType("fake_gpu")
EMPTY = Catalogue()


def case_of(
    request: SchedulerRequest, view: RequestView, settings: SchedulerSettings = SchedulerSettings()
) -> HostCase:
    return admit(request, view, a_volunteer(), settings=settings, now=NOW).case


def context_at(
    now: Instant, request: SchedulerRequest, admission: Admission, view: RequestView, catalogue: Catalogue = EMPTY
) -> SchedulingContext:
    """Return the context of a request of a host without jobs in progress."""
    wants = wants_of(request, admission.host)
    return context_of(Contact(request, key_of(request), now, catalogue), admission, view, wants, HeldReview())


@pytest.mark.parametrize(
    ("host_id", "seqno", "known", "case"),
    [
        pytest.param(0, 0, False, HostCase.FIRST_CONTACT, id="never seen"),
        pytest.param(0, 9, True, HostCase.STATE_LOST, id="the CPID is known"),
        pytest.param(1, 5, False, HostCase.NOT_THEIRS, id="no such host of this volunteer"),
        pytest.param(1, 4, True, HostCase.CLONE, id="behind the stored 5"),
        pytest.param(1, -1, True, HostCase.CLONE, id="a negative number"),
        pytest.param(1, 5, True, HostCase.KNOWN, id="the same request again"),
        pytest.param(1, 6, True, HostCase.KNOWN, id="the next request"),
        pytest.param(1, 2**62, True, HostCase.KNOWN, id="an absurd number"),
    ],
)
def test_the_case_follows_from_id_and_serial_number(host_id: int, seqno: int, known: bool, case: HostCase) -> None:
    view = RequestView(a_volunteer(), a_host(rpc_seqno=5) if known else None)
    assert case_of(a_request(host_id=host_id, rpc_seqno=seqno), view) is case


def test_a_client_without_cpid_is_never_taken_for_another() -> None:
    view = RequestView(a_volunteer(), a_host())
    request = a_request(host=HostInfo())
    assert case_of(request, view) is HostCase.FIRST_CONTACT


def test_clones_are_not_sought_while_a_host_is_young() -> None:
    view = RequestView(a_volunteer(), a_host(rpc_seqno=5, created_at=Instant(NOW - 50.0)))
    request = a_request(host_id=1, rpc_seqno=2)
    assert case_of(request, view, SchedulerSettings(clone_grace_s=Seconds(100.0))) is HostCase.KNOWN
    assert case_of(request, view, SchedulerSettings(clone_grace_s=Seconds(50.0))) is HostCase.CLONE


def test_what_a_lost_client_held_ends_only_when_it_has_nothing() -> None:
    view = RequestView(a_volunteer(), a_host())
    for request, detach in (
        (a_request(), True),
        (a_request(other_results=listed("pi_1_1_1")), False),
        (a_request(results=(a_success("pi_1_1_1"),)), False),
    ):
        assert admit(request, view, a_volunteer(), settings=SchedulerSettings(), now=NOW).detach is detach


def test_a_host_that_gets_a_new_id_counts_requests_from_zero() -> None:
    for view in (RequestView(a_volunteer()), RequestView(a_volunteer(), a_host(rpc_seqno=8))):
        admission = admit(a_request(rpc_seqno=7), view, a_volunteer(), settings=SchedulerSettings(), now=NOW)
        assert admission.tell_id
        assert admission.host.rpc_seqno == 0


def test_a_clone_starts_without_statistics() -> None:
    view = RequestView(a_volunteer(), a_host(rpc_seqno=5), havs={AppVersionId(1): a_hav(consecutive_valid=30)})
    request = a_request(host_id=1, rpc_seqno=2)
    admission = admit(request, view, a_volunteer(), settings=SchedulerSettings(), now=NOW)
    context = context_at(NOW, request, admission, view)
    assert admission.create and context.havs == {}


def test_buffered_work_covers_the_minimum_buffer_or_time_offline() -> None:
    def alone_s(*, buffer_s: float, called: float | None) -> float:
        host = None if called is None else a_host(last_rpc_at=NOW - called)
        request = a_request(host_id=1, rpc_seqno=9, work_buf_min_s=Seconds(buffer_s))
        view = RequestView(a_volunteer(), host)
        admission = admit(request, view, a_volunteer(), settings=SchedulerSettings(), now=NOW)
        context = context_at(NOW, request, admission, view)
        return context.alone_s

    assert alone_s(buffer_s=3 * DAY_S, called=3600.0) == 3 * DAY_S
    assert alone_s(buffer_s=3600.0, called=2 * DAY_S) == 2 * DAY_S
    assert alone_s(buffer_s=3600.0, called=None) == 3600.0  # an unknown host
    assert alone_s(buffer_s=-5.0, called=-60.0) == 0.0
    assert alone_s(buffer_s=1e300, called=None) == 365 * DAY_S


def test_request_key_has_hash_and_distinct_reported_instances() -> None:
    key = key_of(a_request(results=(a_success("pi_1_1_7"), a_success("pi_1_1_7"), a_success("nonsense"))))
    assert key.authenticator_hash == hashlib.sha256(b"0123456789abcdef0123456789abcdef").digest()
    assert key.instance_ids == (7,)


# ---------------------------------------------------------------- wishes


def test_work_requests_list_gpus_first_and_skip_unwanted_types() -> None:
    request = a_request(
        coprocs=(
            CoprocRequest("fake_gpu", 1, 1e12, req_s=Seconds(600.0), estimated_delay_s=Seconds(44.9)),
            CoprocRequest("idle_gpu", 1, 1e12),
            CoprocRequest("NVIDIA", 0, req_s=Seconds(600.0), req_instances=2.0, usable=False),
        )
    )
    wants = wants_of(request, a_host())
    assert [(want.processor_type, want.req_s, want.estimated_delay_s) for want in wants] == [
        ("fake_gpu", 600.0, 44.9),
        (CPU, 7200.0, 0.0),
    ]


def test_wishes_are_bounded_by_the_processors_there_are() -> None:
    [want] = wants_of(a_request(cpu_req_s=Seconds(1e30), cpu_req_instances=900.0), a_host(ncpus=2))
    assert (want.req_s, want.req_instances, want.count) == (2 * 28 * 86400.0, 2.0, 2)


def test_no_new_tasks_means_no_wishes() -> None:
    assert wants_of(a_request(dont_send_work=True), a_host()) == ()


def test_resent_jobs_reduce_the_requested_seconds() -> None:
    gpu_version = an_app_version(
        app_version_id=AppVersionId(2), plan_class=a_plan_class(gpu_type=GPU, gpu_count=0.5, ncpus=0.1)
    )
    catalogue = Catalogue(versions={AppVersionId(1): an_app_version(), AppVersionId(2): gpu_version})
    wants = (WorkRequest(GPU, 1, Seconds(3600.0), 1.0), WorkRequest(CPU, 2, Seconds(7200.0), 2.0))
    left = less_resent(
        wants,
        [a_held(est_runtime_s=Seconds(3600.0)), a_held(app_version_id=AppVersionId(2), est_runtime_s=Seconds(3600.0))],
        catalogue,
    )
    assert [(w.processor_type, w.req_s, w.req_instances) for w in left] == [(GPU, 1800.0, 0.5), (CPU, 3600.0, 1.0)]
    assert [w.processor_type for w in less_resent(wants, [a_held(est_runtime_s=Seconds(1e6))], catalogue)] == [GPU]


def test_resent_job_reduces_the_request_by_its_cpus() -> None:
    [left] = less_resent(
        (WorkRequest(CPU, 4, Seconds(36_000.0), 4.0),),
        [a_held(ncpus=3.0, est_runtime_s=Seconds(3600.0))],
        Catalogue(versions={AppVersionId(1): an_app_version()}),
    )
    assert (left.req_s, left.req_instances) == (36_000.0 - 3 * 3600.0, 1.0)


def test_the_queue_of_the_client_is_taken_over_with_sane_numbers() -> None:
    queue = (InProgress("other_1", Instant(NOW), Seconds(-5.0), ncpus=1e9, gpu_type="NVIDIA", gpu_count=1.0),)
    view = RequestView(a_volunteer(), a_host())
    request = a_request(host_id=1, rpc_seqno=9, in_progress=queue)
    admission = admit(request, view, a_volunteer(), settings=SchedulerSettings(), now=NOW)
    context = context_at(NOW, request, admission, view)
    assert context.in_progress is not None
    [job] = context.in_progress
    assert (job.remaining_s, job.ncpus, job.gpu_type) == (0.0, 4096, "NVIDIA")


def test_a_client_that_sends_no_queue_is_not_taken_for_idle() -> None:
    view = RequestView(a_volunteer(), a_host())
    request = a_request(host_id=1, rpc_seqno=9)
    admission = admit(request, view, a_volunteer(), settings=SchedulerSettings(), now=NOW)
    assert context_at(NOW, request, admission, view).in_progress is None


def test_same_request_at_same_time_has_same_seed() -> None:
    view = RequestView(a_volunteer(), a_host())
    request = a_request(host_id=1, rpc_seqno=9)
    admission = admit(request, view, a_volunteer(), settings=SchedulerSettings(), now=NOW)

    def seed(now: float) -> int:
        return context_at(Instant(now), request, admission, view).seed

    assert seed(NOW) == seed(NOW) != seed(NOW + 1.0)


def test_work_is_searched_for_apps_with_a_version_that_could_run() -> None:
    ours = an_app_version()
    windows = an_app_version(app_id=AppId(2), platform="windows_x86_64")
    unwanted = an_app_version(app_id=AppId(3))
    catalogue = Catalogue(current={AppId(1): (ours,), AppId(2): (windows,), AppId(3): (unwanted,)})
    volunteer = a_volunteer(apps=(AppId(1), AppId(2)))
    view = RequestView(volunteer, a_host())
    request = a_request(host_id=1, rpc_seqno=9)
    admission = admit(request, view, volunteer, settings=SchedulerSettings(), now=NOW)
    context = context_at(NOW, request, admission, view, catalogue)
    assert kinds_of(context) == ((AppId(1), CPU),)


# ---------------------------------------------------------------- refusing everything


def test_a_whole_request_is_refused_for_one_reason() -> None:
    down = Settings().changed("project.down", True)
    assert refuse_all(a_request(), Settings(), paused=None, now=NOW) is None
    for request, settings, paused, code in (
        (a_request(dont_send_work=True), down, None, RefusalCode.NO_NEW_TASKS),
        (a_request(), down, None, RefusalCode.PROJECT_DOWN),
        (a_request(), Settings(), "a clock is off", RefusalCode.PROJECT_DOWN),
        (a_request(platforms=(ANONYMOUS,)), Settings(), None, RefusalCode.ANONYMOUS_PLATFORM),
    ):
        refusal = refuse_all(request, settings, paused=paused, now=NOW)
        assert refusal is not None and refusal.code is code


@pytest.mark.parametrize(
    ("ahead_s", "refused"),
    [(None, None), (3600.0, None), (-3600.0, None), (-3 * DAY_S, "3 d behind"), (4000.0, "1 h 7 min ahead of")],
)
def test_a_clock_is_refused_beyond_the_limit(ahead_s: float | None, refused: str | None) -> None:
    """A client that does not send its time is not checked."""
    client_now = None if ahead_s is None else later(NOW, ahead_s)

    refusal = refuse_all(a_request(client_now=client_now), Settings(), paused=None, now=NOW)

    if refused is None:
        assert refusal is None
    else:
        assert refusal is not None and refusal.code is RefusalCode.CLOCK_SKEW
        assert not missing(refusal.detail, refused, "1 h")


@pytest.mark.parametrize("number", [0.0, -1.0, 1e300])
def test_an_absurd_clock_is_refused_in_words(number: float) -> None:
    refusal = refuse_all(a_request(client_now=Instant(number)), Settings(), paused=None, now=NOW)

    assert refusal is not None
    assert len(refusal.detail) < 200


def test_the_limit_of_clocks_is_a_setting() -> None:
    wide = Settings().changed("scheduler.max_clock_skew_s", 4 * DAY_S)

    assert refuse_all(a_request(client_now=later(NOW, 3 * DAY_S)), wide, paused=None, now=NOW) is None


def test_an_unknown_host_id_is_kept_out_of_the_new_record() -> None:
    admission = admit(
        a_request(host_id=77, rpc_seqno=3),
        RequestView(a_volunteer()),
        a_volunteer(),
        settings=SchedulerSettings(),
        now=NOW,
    )
    assert admission.host.host_id == HostId(0) and admission.host.created_at == NOW
    assert "77" in admission.because
