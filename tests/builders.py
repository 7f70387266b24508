"""Builds valid values; a test sets only the fields that matter to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.apps import App, AppFile, AppVersion, PlanClass
from domain.batches import Batch, BatchCounts, BatchState, QoS
from domain.due_terms import DueRow, DueTerms
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceInProgress, InstanceState, JobClass, JobState, Output, Ready
from domain.ranking import Gate
from domain.settings import DeadlineRule
from domain.settlement import InstanceFacts, JobFacts
from domain.units import (
    AccountId,
    AppId,
    AppVersionId,
    BatchId,
    Flop,
    FlopPerSecond,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    JobId,
    Seconds,
    SubmitterId,
    VolunteerId,
)
from domain.volunteers import Volunteer

NOW = Instant(1_800_000_000.0)
LINUX = "x86_64-pc-linux-gnu"


def an_app(**changes: Any) -> App:
    return replace(App(AppId(1), "pi", "Digits of pi"), **changes)


def a_plan_class(**changes: Any) -> PlanClass:
    return replace(PlanClass("mt", ncpus=2.0), **changes)


def an_app_version(**changes: Any) -> AppVersion:
    main = AppFile("pi_1.00_linux", 1000, "0" * 32, "signature\n.\n", main_program=True)
    version = AppVersion(AppVersionId(1), AppId(1), LINUX, 100, api_version="7.5.0", files=(main,))
    return replace(version, **changes)


def a_volunteer(**changes: Any) -> Volunteer:
    return replace(Volunteer(VolunteerId(1), "Ada", Instant(NOW - 1e6)), **changes)


def a_host(**changes: Any) -> Host:
    host = Host(
        HostId(1),
        VolunteerId(1),
        host_cpid="1" * 32,
        rpc_seqno=5,
        created_at=Instant(NOW - 1e6),
        last_rpc_at=Instant(NOW - 3600.0),
        ncpus=2,
        flop_per_s=FlopPerSecond(1e9),
        ram_bytes=8e9,
        disk_free_bytes=1e11,
        platforms=(LINUX,),
        os_name="Linux Debian",
        os_version="12",
        client_version=72005,
    )
    return replace(host, **changes)


def a_hav(**changes: Any) -> HostAppVersion:
    return replace(HostAppVersion(HostId(1), AppVersionId(1)), **changes)


def a_job_class(**changes: Any) -> JobClass:
    job_class = JobClass(
        JobClassId(1),
        BatchId(1),
        fpops_est_flop=Flop(3.6e12),
        fpops_bound_flop=Flop(3.6e13),
        memory_bytes=1e8,
        disk_bytes=1e8,
        delay_bound_s=Seconds(7 * 86400.0),
        outputs=(Output("out", 100_000),),
    )
    return replace(job_class, **changes)


def a_batch(**changes: Any) -> Batch:
    batch = Batch(
        BatchId(1),
        SubmitterId(1),
        AccountId(1),
        AppId(1),
        "a batch",
        QoS.THROUGHPUT,
        BatchState.ACTIVE,
        created_at=Instant(NOW - 1000.0),
        order_tier=0,
        order_key=NOW + 1000.0,
        logical_end_at=Instant(NOW + 1000.0),
        counts=BatchCounts(jobs_total=100, unsent=100),
    )
    return replace(batch, **changes)


def a_ready(**changes: Any) -> Ready:
    return replace(Ready(InstanceId(1), JobId(1), BatchId(1), JobClassId(1)), **changes)


def a_held(**changes: Any) -> InstanceInProgress:
    held = InstanceInProgress(
        InstanceId(1),
        "pi_1_1_1",
        JobId(1),
        BatchId(1),
        JobClassId(1),
        AppVersionId(1),
        HostId(1),
        VolunteerId(1),
        sent_at=Instant(NOW - 3600.0),
        due_at=Instant(NOW + 86400.0),
        est_runtime_s=Seconds(3600.0),
        tight=False,
    )
    return replace(held, **changes)


def some_due_terms(**changes: Any) -> DueTerms:
    """Due terms of an idle host with P = 0.5 and a throughput job that takes it an hour."""
    numbers, idle_s, runtime_s = (3600.0, 86400.0), Seconds(0.0), Seconds(3600.0)
    rule, row, safe_s = DeadlineRule.MUSTER, DueRow.TABLE_1, Seconds(9000.0)
    return replace(
        DueTerms(rule, row, numbers, False, idle_s, idle_s, runtime_s, safe_s, 0.5, Gate.NONE, 0.0), **changes
    )


def instance_facts(number: int, state: InstanceState = InstanceState.REPORTED, **changes: Any) -> InstanceFacts:
    """An instance that was never sent, in any state."""
    facts = InstanceFacts(
        InstanceId(number), f"pi_1_1_{number}", state, None, None, None, None, None, None, None, tight=False, uploads=()
    )
    return replace(facts, **changes)


def job_facts(*instances: InstanceFacts, job_class: JobClass | None = None, **changes: Any) -> JobFacts:
    facts = JobFacts(
        JobId(1),
        BatchId(1),
        serial=1,
        state=JobState.OPEN,
        job_class=job_class or a_job_class(),
        copies=0,
        canonical_instance_id=None,
        batch_aborted=False,
        app_name="pi",
        instances=instances,
    )
    return replace(facts, **changes)
