"""Jobs, instances and changes of settings as people look at them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.dispatch import Upload
from domain.jobs import InstanceState, JobState
from domain.units import AppVersionId, BatchId, HostId, InstanceId, Instant, JobClassId, JobId, Seconds


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting an operator changed; a value of None is the default."""

    key: str
    from_value: object
    to_value: object
    changed_at: Instant
    changed_by: str
    why: str
    change_id: int = field(default=0, compare=False)  # of the store's own


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose a batch is, and of which app, by name."""

    app: str
    submitter: str
    account: str


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance as people look at it."""

    instance_id: InstanceId
    job_id: JobId
    state: InstanceState
    retries: int
    tight: bool
    host_id: HostId | None
    app_version_id: AppVersionId | None
    sent_at: Instant | None
    due_at: Instant | None
    reported_at: Instant | None
    est_runtime_s: Seconds | None
    elapsed_s: Seconds | None
    exit_status: int | None
    reason: str
    because: str
    stderr: str
    uploads: tuple[Upload, ...] = ()


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as people look at it."""

    job_id: JobId
    batch_id: BatchId
    job_class_id: JobClassId
    state: JobState
    command_line: str
    failure: str
    canonical_instance_id: InstanceId | None
    instances: tuple[InstanceRow, ...] = ()
