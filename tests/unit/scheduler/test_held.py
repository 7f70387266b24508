"""Lost jobs, and jobs that the client should drop."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import AppVersion, VersionState
from domain.catalogue import Catalogue
from domain.dispatch import Reported
from domain.havs import HavEventKind
from domain.jobs import InstanceInProgress, InstanceState
from domain.units import AppVersionId, HostId, InstanceId, Instant, JobId, Seconds
from scheduler.held import MOST_STRAYS, HeldReview, aborted_versions, review_held, runnable_versions, stray_ids
from tests.builders import LINUX, NOW, a_held, a_host, an_app_version
from tests.unit.scheduler.test_reports import a_reported

RUNNABLE = frozenset({AppVersionId(1)})


def review(
    held: list[InstanceInProgress], listed: Collection[str] = (), reported: Collection[str] = (), **changes: Any
) -> HeldReview:
    values: dict[str, Any] = {
        "strays": {},
        "host_id": HostId(1),
        "runnable": RUNNABLE,
        "aborted": (),
        "hold_back": False,
        "now": NOW,
    } | changes
    return review_held(listed, reported, held, values.pop("strays"), **values)


def numbered(number: int, **changes: Any) -> InstanceInProgress:
    return a_held(instance_id=InstanceId(number), job_id=JobId(number), name=f"pi_1_{number}_{number}", **changes)


def test_jobs_of_an_aborted_version_are_aborted_while_listed() -> None:
    listed, reported, other = numbered(1), numbered(2), numbered(3, app_version_id=AppVersionId(7))
    names = {listed.name, other.name, reported.name}
    found = review([listed, reported, other], names, {reported.name}, aborted=RUNNABLE, runnable=())

    assert (found.abort, found.kept, found.ended) == ((listed.name,), (listed, other), ())


def test_a_banned_host_drops_listed_jobs() -> None:
    listed, reported, lost = numbered(1), numbered(2), numbered(3)
    ended = a_reported(held=numbered(4), state=InstanceState.ABORTED)
    names = {listed.name, reported.name, "pi_1_4_4", "pi_1_9_9"}
    strays = {InstanceId(4): ended}

    found = review([listed, reported, lost], names, {reported.name}, strays=strays, drop_all=True, runnable=())

    assert (found.abort, found.kept, found.taken_over) == ((listed.name, "pi_1_4_4"), (listed,), ())
    assert [one.instance_id for one in found.ended] == [lost.instance_id]


def test_withdrawn_versions_are_not_sent_again() -> None:
    states = {AppVersionId(number): state for number, state in enumerate(VersionState, start=1)}
    versions = {one: an_app_version(app_version_id=one, state=state) for one, state in states.items()}
    catalogue = Catalogue(versions=versions)

    sent = {states[one] for one in runnable_versions(catalogue, a_host(platforms=(LINUX,)))}
    assert sent == {VersionState.OFFERED, VersionState.DEPRECATED}
    assert {states[one] for one in aborted_versions(catalogue)} == {VersionState.ABORTED}


def test_a_job_the_client_neither_lists_nor_reports_is_resent() -> None:
    lost, listed, reported = numbered(1), numbered(2), numbered(3)
    found = review([lost, listed, reported], {listed.name}, {reported.name})
    assert found == HeldReview(resend=(lost,), kept=(lost, listed))


@pytest.mark.parametrize(
    ("due_in_s", "resent"), [pytest.param(3600.0, True, id="just in time"), pytest.param(3599.0, False, id="too late")]
)
def test_a_lost_job_is_resent_while_the_host_can_be_in_time(due_in_s: float, resent: bool) -> None:
    lost = a_held(due_at=Instant(NOW + due_in_s), est_runtime_s=Seconds(3600.0))
    found = review([lost])
    assert (found.resend == (lost,)) is resent
    assert (len(found.ended) == 1) is not resent


def test_job_lost_too_late_to_resend_counts_as_time_out() -> None:
    given = {"sent_at": Instant(NOW - 3600.0), "due_at": Instant(NOW + 3599.0), "est_runtime_s": Seconds(3600.0)}
    [ended] = review([a_held(**given, tight=True)]).ended

    assert (ended.to_state, ended.exit_status) == (InstanceState.ABORTED, None)
    assert ended.hav_event is not None
    assert (ended.hav_event.kind, ended.hav_event.tight) == (HavEventKind.TIMED_OUT, True)
    assert ended.hav_event.ln_turnaround_ratio == ended.turnaround_sample == math.log(10.0)


@pytest.mark.parametrize(
    ("changes", "arguments", "recorded"),
    [
        pytest.param({"no_longer_needed": True}, {}, None, id="its job is no longer needed"),
        pytest.param(
            {"app_version_id": AppVersionId(9)}, {}, HavEventKind.LOST, id="a version that it can no longer run"
        ),
        pytest.param({}, {"runnable": ()}, HavEventKind.LOST, id="no new tasks"),
    ],
)
def test_a_lost_job_of_no_use_there_costs_quota_at_most(
    changes: dict[str, Any], arguments: dict[str, Any], recorded: HavEventKind | None
) -> None:
    found = review([a_held(**changes)], **arguments)
    [ended] = found.ended
    assert (ended.from_state, ended.to_state) == (InstanceState.IN_PROGRESS, InstanceState.ABORTED)
    assert (ended.hav_event.kind if ended.hav_event else None) is recorded and ended.reason
    assert found.resend == found.kept == ()


def test_nothing_is_resent_or_ended_while_work_is_held_back() -> None:
    found = review([a_held(no_longer_needed=True)], hold_back=True, runnable=())
    assert found == HeldReview(kept=(a_held(no_longer_needed=True),))


def test_listed_job_no_longer_needed_is_aborted_unless_started() -> None:
    found = review([a_held(no_longer_needed=True)], {"pi_1_1_1"})
    assert found.abort_if_not_started == ("pi_1_1_1",)
    assert found.kept and not found.abort


@pytest.mark.parametrize(
    ("state", "needed", "abort", "late"),
    [
        (InstanceState.TIMED_OUT, True, False, False),
        (InstanceState.TIMED_OUT, False, False, True),
        (InstanceState.ABORTED, True, False, False),
        (InstanceState.VALID, True, True, False),
        (InstanceState.FAILED, True, False, False),
        (InstanceState.FAILED, False, False, True),
    ],
)
def test_listed_job_that_ended_here_is_aborted_if_useless(
    state: InstanceState, needed: bool, abort: bool, late: bool
) -> None:
    strays: dict[InstanceId, Reported | None] = {
        InstanceId(1): a_reported(held=a_held(no_longer_needed=not needed), state=state)
    }
    found = review([], {"pi_1_1_1"}, strays=strays)
    assert (found.abort == ("pi_1_1_1",)) is abort
    assert (found.abort_if_not_started == ("pi_1_1_1",)) is late


def test_only_unknown_names_of_our_making_are_aborted() -> None:
    found = review([], {"pi_1_1_1", "pi_1_2_2", "job of another kind"}, strays={InstanceId(1): None})
    assert found.abort == ("pi_1_1_1",), "pi_1_2_2 was not looked up"


def test_strays_are_what_is_listed_and_not_in_progress() -> None:
    assert stray_ids(["pi_1_1_1", "pi_1_2_2", "x"], [a_held()]) == (2,)


def test_no_more_strays_are_looked_up_than_a_query_should_take() -> None:
    assert len(stray_ids([f"pi_1_1_{n}" for n in range(1, 5000)], [])) == MOST_STRAYS


def test_a_host_of_another_platform_cannot_run_what_it_had() -> None:
    versions: dict[AppVersionId, AppVersion] = {AppVersionId(1): an_app_version()}
    catalogue = Catalogue(versions=versions)
    assert runnable_versions(catalogue, a_host(platforms=(LINUX,))) == RUNNABLE
    assert runnable_versions(catalogue, a_host(platforms=("windows_x86_64",))) == frozenset()


ids = st.sets(st.integers(1, 6))


@given(given=ids, listed=ids, reported=ids, unneeded=ids, no_work=st.booleans(), back=st.booleans())
def test_each_job_is_either_kept_reported_or_ended(
    given: set[int], listed: set[int], reported: set[int], unneeded: set[int], no_work: bool, back: bool
) -> None:
    held = [numbered(n, no_longer_needed=n in unneeded) for n in sorted(given)]
    strays = dict.fromkeys(stray_ids({numbered(n).name for n in listed}, held))
    found = review(
        held,
        {numbered(n).name for n in listed},
        {numbered(n).name for n in reported},
        strays=strays,
        runnable=() if no_work else RUNNABLE,
        hold_back=back,
    )
    kept, ended = {h.instance_id for h in found.kept}, {r.instance_id for r in found.ended}
    assert kept | ended | (given & reported) == given
    assert not kept & ended and not (kept | ended) & reported
    assert set(found.resend) <= set(found.kept)
    assert not set(found.abort) & set(found.abort_if_not_started)
    assert all(h.name not in found.abort for h in found.kept)
