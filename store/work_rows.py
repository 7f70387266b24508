"""How do rows of jobs and instances become values? Pure."""

from __future__ import annotations

import msgspec

from domain.dispatch import Reported, SentJob, Upload
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
from domain.settlement import InstanceFacts, JobFacts, TailInstance
from domain.units import Seconds
from domain.views import InstanceRow, JobRow
from store.rows import Row


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
        row["because"] or "",
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
