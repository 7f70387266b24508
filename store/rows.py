"""Converts rows of people, apps, batches, hosts, jobs and instances to values and back. Pure.

A row is what asyncpg returns: a mapping from column to a value whose type only the query knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from domain.apps import App, AppFile, AppVersion, OnePerVolunteer, PlanClass, ProcessorType
from domain.batches import Account, Batch, BatchCounts, BatchState, QoS, Submitter
from domain.dispatch import Reported, SentJob, Upload
from domain.due_terms import DueTerms
from domain.hosts import Coprocessor, DecayedSums, Host, HostAppVersion
from domain.jobs import (
    Candidate,
    Input,
    InstanceInProgress,
    InstanceState,
    JobClass,
    JobState,
    Output,
    Ready,
    ValidatorKind,
    instance_name,
)
from domain.ordering import ServiceLevel
from domain.ranking import CutPoints
from domain.settlement import InstanceFacts, JobFacts, TailInstance
from domain.units import Instant, Seconds
from domain.views import InstanceRow, JobRow, SettingChange
from domain.volunteers import Credentials, Volunteer, VolunteerRecord


class Row(Protocol):
    """What asyncpg returns."""

    def __getitem__(self, column: str, /) -> Any:  # Any: only the query knows
        ...


def account(row: Row) -> Account:
    return Account(row["account_id"], row["name"], row["parent_id"], row["shares"], tuple(row["permissions"]))


def submitter(row: Row) -> Submitter:
    return Submitter(
        row["submitter_id"],
        row["name"],
        row["account_id"],
        row["shares"],
        row["logical_at"],
        tuple(row["permissions"]),
    )


def volunteer(row: Row, prefix: str = "") -> Volunteer:
    """`prefix` stands before each column where a join would make names meet."""
    return Volunteer(
        row[prefix + "volunteer_id"],
        row[prefix + "name"],
        row[prefix + "created_at"],
        email_hash=hashlib.md5(row[prefix + "email"].encode(), usedforsecurity=False).hexdigest(),
        cross_project_id=row[prefix + "cross_project_id"],
        beta=row[prefix + "beta"],
        no_gpu=row[prefix + "no_gpu"],
        max_jobs=row[prefix + "max_jobs"],
        apps=tuple(row[prefix + "app_ids"]),
        no_cpu=row[prefix + "no_cpu"],
        max_cpus=row[prefix + "max_cpus"],
        preferred_at=row[prefix + "preferred_at"],
    )


def volunteer_record(row: Row) -> VolunteerRecord:
    credentials = Credentials(
        row["authenticator_nonce"], row["authenticator_hash"], row["password_salt"], row["password_hash"]
    )
    return VolunteerRecord(volunteer(row), row["email"], credentials)


def app(row: Row) -> App:
    return App(
        row["app_id"],
        row["name"],
        row["user_friendly_name"],
        row["beta"],
        row["deprecated"],
        row["adaptive_copies"],
        row["one_per_host"],
        OnePerVolunteer(row["one_per_volunteer"]),
    )


def app_settings(app: App) -> tuple[object, ...]:
    """What can be changed of an app, in the order of update_app and insert_app."""
    return (
        app.user_friendly_name,
        app.beta,
        app.deprecated,
        app.adaptive_copies,
        app.one_per_host,
        app.one_per_volunteer.value,
    )


def plan_class(row: Row) -> PlanClass:
    gpu_type = row["gpu_type"]
    return PlanClass(
        row["name"],
        ncpus=row["ncpus"],
        gpu_type=None if gpu_type is None else ProcessorType(gpu_type),
        gpu_count=row["gpu_count"],
        min_gpu_ram_bytes=row["min_gpu_ram_bytes"],
        min_driver_version=row["min_driver_version"],
        min_host_ncpus=row["min_host_ncpus"],
        min_host_ram_bytes=row["min_host_ram_bytes"],
        os_pattern=row["os_pattern"],
        cpu_speed_fraction=row["cpu_speed_fraction"],
        gpu_speed_fraction=row["gpu_speed_fraction"],
    )


def app_file(row: Row) -> AppFile:
    return AppFile(
        row["name"],
        row["nbytes"],
        row["md5"],
        row["signature"],
        main_program=row["main_program"],
        open_name=row["open_name"],
        copy_file=row["copy_file"],
        executable=row["executable"],
    )


def app_version(row: Row, plan_classes: Mapping[str, PlanClass], files: Iterable[AppFile]) -> AppVersion:
    return AppVersion(
        row["app_version_id"],
        row["app_id"],
        row["platform"],
        row["version_num"],
        plan_classes[row["plan_class"]],
        row["api_version"],
        tuple(files),
        row["deprecated"],
        row["created_at"],
    )


def cut_points(row: Row) -> CutPoints:
    return CutPoints(
        row["app_id"],
        ProcessorType(row["processor_type"]),
        row["computed_at"],
        row["n"],
        tuple(row["turnaround"]),
        tuple(row["consecutive_valid"]),
        row["score_mean"],
        tight_n=row["tight_n"],
        tight_mean=row["tight_mean"],
        tight_sd=row["tight_sd"],
        retry_turnaround_s=row["retry_turnaround_s"],
        median_safe_runtime_s=row["median_safe_runtime_s"],
    )


def batch(row: Row) -> Batch:
    """A row of batch_with_counts."""
    return Batch(
        row["batch_id"],
        row["submitter_id"],
        row["account_id"],
        row["app_id"],
        row["name"],
        QoS(row["qos"]),
        BatchState(row["state"]),
        row["created_at"],
        row["order_tier"],
        row["order_key"],
        row["logical_end_at"],
        deadline_at=row["deadline_at"],
        completion_at=row["completion_at"],
        median_turnaround_s=row["median_turnaround_s"],
        last_first_dispatch_at=row["last_first_dispatch_at"],
        user_priority=row["user_priority"],
        ended_at=row["ended_at"],
        counts=BatchCounts(
            row["jobs_total"],
            row["jobs_validated"],
            row["jobs_failed"],
            row["unsent"],
            row["in_progress"],
            row["retries"],
            row["sent"],
            row["reported"],
            row["deadlines_missed"],
        ),
        completion_q50_at=row["completion_q50_at"],
        completion_q90_at=row["completion_q90_at"],
        queue=row["queue"],
        level=ServiceLevel(row["level"]),
        hold=row["hold"],
        sent_most=row["sent_most"],
        unpaid=row["unpaid"],
        job_pe=row["job_pe"],
    )


def host(row: Row) -> Host:
    return Host(
        row["host_id"],
        row["volunteer_id"],
        row["host_cpid"],
        row["rpc_seqno"],
        row["created_at"],
        row["last_rpc_at"],
        row["domain_name"],
        row["ncpus"],
        row["flop_per_s"],
        row["ram_bytes"],
        row["disk_free_bytes"],
        row["on_fraction"],
        row["active_fraction"],
        row["gpu_active_fraction"],
        tuple(row["platforms"]),
        row["os_name"],
        row["os_version"],
        row["cpu_vendor"],
        row["cpu_model"],
        row["client_version"],
        msgspec.json.decode(row["coprocessors"], type=tuple[Coprocessor, ...]),
        row["clock_skew_s"],
    )


def host_app_version(row: Row) -> HostAppVersion:
    at = Instant(row["stats_at"])
    return HostAppVersion(
        row["host_id"],
        row["app_version_id"],
        row["consecutive_valid"],
        row["quota_per_day"],
        row["day"],
        row["sent_today"],
        speed=DecayedSums(row["speed_n"], row["speed_sum"], row["speed_sum_sq"], at),
        tight=DecayedSums(row["tight_n"], row["tight_sum"], row["tight_sum_sq"], at),
        relaxed=DecayedSums(row["relaxed_n"], row["relaxed_sum"], row["relaxed_sum_sq"], at),
        n_valid=row["n_valid"],
        n_error=row["n_error"],
        n_timeout=row["n_timeout"],
        n_due=row["n_due"],
        inherited_from=row["inherited_from"],
        log_n=row["log_n"],
        log_sum=row["log_sum"],
        log_sum_sq=row["log_sum_sq"],
        tight_missed_n=row["tight_missed_n"],
        clean_since_at=row["clean_since_at"],
    )


def setting_change(row: Row) -> SettingChange:
    return SettingChange(
        row["key"],
        decoded(row["from_value"]),
        decoded(row["to_value"]),
        row["changed_at"],
        row["changed_by"],
        row["why"],
        row["audit_id"],
    )


def encoded(value: object) -> str:
    """`value` as JSON text, for a jsonb column.

    >>> encoded((1.5, "a"))
    '[1.5,"a"]'
    """
    return msgspec.json.encode(value).decode()


def decoded(text: str | None) -> object:
    """What a jsonb column holds; None for null.

    >>> decoded('"fifo"'), decoded(None)
    ('fifo', None)
    """
    return None if text is None else msgspec.json.decode(text)


def due_terms(text: str | None) -> DueTerms | None:
    return None if text is None else msgspec.json.decode(text, type=DueTerms)


def decoded_object(text: str) -> dict[str, object]:
    """What a jsonb column holds that is an object.

    >>> decoded_object('{"tier": 0}')
    {'tier': 0}
    """
    return msgspec.json.decode(text, type=dict[str, object])


def job_class(row: Row) -> JobClass:
    return JobClass(
        row["job_class_id"],
        row["batch_id"],
        row["fpops_est_flop"],
        row["fpops_bound_flop"],
        row["memory_bytes"],
        row["disk_bytes"],
        row["delay_bound_s"],
        row["ncpus"],
        row["quorum"],
        row["max_errors"],
        row["max_instances"],
        row["hr_type"],
        ValidatorKind(row["validator"]),
        row["tolerance"],
        inputs(row["inputs"]) or (),
        outputs(row["outputs"]),
    )


def inputs(text: str | None) -> tuple[Input, ...] | None:
    """The files of an inputs column; None for null."""
    return None if text is None else msgspec.json.decode(text, type=tuple[Input, ...])


def outputs(text: str) -> tuple[Output, ...]:
    return msgspec.json.decode(text, type=tuple[Output, ...])


def uploads(text: str | None) -> tuple[Upload, ...]:
    """The uploads a query gathered; none for null."""
    return () if text is None else msgspec.json.decode(text, type=tuple[Upload, ...])


def held(row: Row) -> InstanceInProgress:
    """`app_name` and `no_longer_needed` come with the row."""
    return InstanceInProgress(
        row["instance_id"],
        instance_name(row["app_name"], row["batch_id"], row["job_id"], row["instance_id"]),
        row["job_id"],
        row["batch_id"],
        row["job_class_id"],
        row["app_version_id"],
        row["host_id"],
        row["volunteer_id"],
        row["sent_at"],
        row["due_at"],
        row["est_runtime_s"],
        row["tight"],
        row["no_longer_needed"],
        row["median_turnaround_s"],
        row["gated"],
    )


def reported(row: Row, entry: InstanceInProgress | None = None) -> Reported:
    """`entry`: the row as a held instance, where it is there already."""
    return Reported(
        held(row) if entry is None else entry,
        InstanceState(row["state"]),
        row["app_name"],
        row["fpops_est_flop"],
        outputs(row["outputs"]),
        uploads(row["uploads"]),
        row["turnaround_sample"],
        row["timeout_at"],
        row["reported_at"],
    )


def sent_job(row: Row) -> SentJob:
    return SentJob(row["instance_id"], row["command_line"], inputs(row["inputs"]))


def candidate(row: Row) -> Candidate:
    ready = Ready(
        row["instance_id"],
        row["job_id"],
        row["batch_id"],
        row["job_class_id"],
        row["retries"],
        row["sibling_returned"],
        row["hr_class"],
        row["copies"],
    )
    return Candidate(ready, tuple(row["sibling_hosts"]), tuple(row["sibling_volunteers"]))


def instance_facts(row: Row, app_name: str) -> InstanceFacts:
    return InstanceFacts(
        row["instance_id"],
        instance_name(app_name, row["batch_id"], row["job_id"], row["instance_id"]),
        InstanceState(row["state"]),
        row["host_id"],
        row["app_version_id"],
        row["sent_at"],
        row["due_at"],
        row["reported_at"],
        row["est_runtime_s"],
        row["elapsed_s"],
        row["tight"],
        uploads(row["uploads"]),
        row["turnaround_sample"],
        row["timeout_at"],
        row["median_turnaround_s"],
    )


def job_facts(row: Row, job_class: JobClass, instances: tuple[InstanceFacts, ...]) -> JobFacts:
    return JobFacts(
        row["job_id"],
        row["batch_id"],
        row["serial"],
        JobState(row["state"]),
        job_class,
        row["copies"],
        row["canonical_instance_id"],
        row["batch_aborted"],
        row["app_name"],
        instances,
        row["tail_copies"],
        row["more_instances"],
    )


def instance_row(row: Row) -> InstanceRow:
    return InstanceRow(
        row["instance_id"],
        row["job_id"],
        InstanceState(row["state"]),
        row["retries"],
        row["tight"],
        row["host_id"],
        row["app_version_id"],
        row["sent_at"],
        row["due_at"],
        row["reported_at"],
        row["est_runtime_s"],
        row["elapsed_s"],
        row["exit_status"],
        row["reason"] or "",
        due_terms(row["due_terms"]),
        row["stderr"] or "",
        uploads(row["uploads"]),
    )


def job_row(row: Row, instances: tuple[InstanceRow, ...] = ()) -> JobRow:
    return JobRow(
        row["job_id"],
        row["batch_id"],
        row["job_class_id"],
        JobState(row["state"]),
        row["command_line"],
        row["failure"] or "",
        row["canonical_instance_id"],
        instances,
    )


def tail_instance(row: Row) -> TailInstance:
    state = InstanceState(row["state"])
    if row["sent_at"] is None:
        return TailInstance(row["instance_id"], state, row["tight"])
    return TailInstance(
        row["instance_id"],
        state,
        row["tight"],
        row["host_id"],
        row["app_version_id"],
        row["sent_at"],
        row["est_runtime_s"] or Seconds(0.0),
        row["ln_ratio"],
    )
