"""Replies about batches, jobs and applications."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from muster_client.shapes.forecasts import PreviewShown, RiskShown

Json = dict[str, Any]  # Any: a document described on its resource's page


class BatchShown(TypedDict):
    """A batch with its job counts. `at_risk`: it missed its deadline, or may miss it by the latest forecast.

    `waits_for`: "another volunteer" or "another host" if no current one may run its remaining jobs, or "a host that can
    run its jobs" if no active one can; `waits_because` explains it.
    """

    batch_id: int
    name: str
    app: str
    submitter: str
    account: str
    qos: str
    state: str
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    unsent: int
    in_progress: int
    retries: int
    sent: int
    reported: int
    deadlines_missed: int
    created_at: float
    ended_at: float | None
    deadline_at: float | None
    logical_end_at: float
    completion_at: float | None
    completion_q50_at: float | None
    completion_q90_at: float | None
    forecast_state: str
    at_risk: RiskShown | None
    waits_for: str | None
    waits_because: str | None
    order_tier: int
    order_key: float
    user_priority: int
    level: str
    queue: str
    hold: str | None


class OneBatchShown(BatchShown):
    """`paid_by` describes the grant that chose the queue (its name, usage and end), and is empty without one."""

    paid_by: str


class BatchPage(TypedDict):
    batches: list[BatchShown]
    next_cursor: str | None


class Submitted(TypedDict):
    """A new batch; a preview has no id. `forecast` is None if no completion time could be forecast."""

    batch_id: NotRequired[int]
    forecast: PreviewShown | None


class ErrorVersion(TypedDict):
    platform: str
    version_num: int
    plan_class: str
    instances: int


class ErrorExample(TypedDict):
    """An instance of a group; `stderr` is the end of its standard error."""

    instance_id: int
    job_id: int
    host_id: int
    reason: str
    stderr: str


class ErrorGroup(TypedDict):
    """Errors with the same state, exit status and last lines of standard error.

    In `message`, numbers, addresses and folders are replaced; without standard error, it is the reason.
    """

    state: str
    exit_status: int | None
    message: str
    instances: int
    jobs: int
    hosts: int
    versions: list[ErrorVersion]
    example: ErrorExample


class BatchErrors(TypedDict):
    """Groups of a batch's errors, the largest first. `more`: further errors than the `looked_at` were not read."""

    batch_id: int
    looked_at: int
    more: bool
    groups: list[ErrorGroup]
    groups_left_out: int


class Retried(TypedDict):
    """A batch whose failed jobs were opened again: `jobs_retried` of them now."""

    batch_id: int
    state: str
    jobs_retried: int
    jobs_failed: int


class Importance(TypedDict):
    batch_id: int
    user_priority: int
    level: str
    queue: str
    account: str
    deadline_at: float | None


class UploadShown(TypedDict):
    name: str
    nbytes: int
    md5: str


class InstanceShown(TypedDict):
    """An instance of a job. `because` is the reason for its due date.

    `copied_because`: why it is a copy of a late job; it counts one retry more than its job. None if it is no copy.
    """

    instance_id: int
    state: str
    retries: int
    tight: bool
    host_id: int | None
    app_version_id: int | None
    sent_at: float | None
    due_at: float | None
    reported_at: float | None
    est_runtime_s: float | None
    elapsed_s: float | None
    exit_status: int | None
    credit: float | None
    reason: str
    copied_because: str | None
    because: str
    stderr: str
    uploads: list[UploadShown]


class OneInstance(InstanceShown):
    job_id: int
    batch_id: int


class ListedInstanceShown(TypedDict):
    """An instance in the list of a batch. `urgent`: unsent, and sent before the others of its batch.

    `copied_because` as in InstanceShown.
    """

    instance_id: int
    job_id: int
    state: str
    retries: int
    urgent: bool
    tight: bool
    created_at: float
    host_id: int | None
    sent_at: float | None
    due_at: float | None
    reported_at: float | None
    reason: str
    copied_because: str | None


class InstancePage(TypedDict):
    instances: list[ListedInstanceShown]
    next_cursor: str | None


class TrickleShown(TypedDict):
    """A message sent by an app during a job. `sent_at` is the host's time."""

    sent_at: float
    received_at: float
    variety: str
    text: str


class TricklePage(TypedDict):
    trickles: list[TrickleShown]
    next_cursor: str | None


class JobShown(TypedDict):
    """A job; lists omit its instances."""

    job_id: int
    batch_id: int
    state: str
    command_line: str
    failure: str
    canonical_instance_id: int | None
    instances: list[InstanceShown]


class OutputShown(TypedDict):
    """An output of a job's result. `state`: here, gone (the file no longer exists), or not_brought (optional and not
    uploaded).
    """

    name: str
    file_name: str | None
    nbytes: int | None
    md5: str | None
    state: str


class ResultShown(TypedDict):
    """A job and its canonical instance: host, run times, outputs. `because` explains a missing result.

    `inputs` are the names of the job's own input files on the server.
    """

    job_id: int
    batch_id: int
    state: str
    command_line: str
    inputs: list[str]
    canonical_instance_id: int | None
    host_id: int | None
    elapsed_s: float | None
    cpu_s: float | None
    exit_status: int | None
    because: str | None
    outputs: list[OutputShown]


class ResultPage(TypedDict):
    results: list[ResultShown]
    next_cursor: str | None


class JobPage(TypedDict):
    jobs: list[JobShown]
    next_cursor: str | None


class AppShown(TypedDict):
    app_id: int
    name: str
    user_friendly_name: str
    beta: bool
    deprecated: bool
    adaptive_copies: int
    one_per_host: bool
    one_per_volunteer: Literal["quorum", "always", "never"]
    versions: list[str]


class AppPage(TypedDict):
    apps: list[AppShown]
    next_cursor: str | None


class NewApp(TypedDict):
    app_id: int
    name: str


class VersionShown(TypedDict):
    """A version of an app. `state`: offered, deprecated, withdrawn or aborted."""

    app_version_id: int
    state: str
    platform: str
    version_num: int
    plan_class: str
    processor_type: str
    api_version: str
    files: list[str]


class AppFileShown(TypedDict):
    """A file of an app version. `copy_file`: each job has a copy; otherwise a link under `open_name`."""

    name: str
    open_name: str
    nbytes: int
    md5: str
    main_program: bool
    copy_file: bool


class OneVersion(TypedDict):
    app_version_id: int
    app_id: int
    state: str
    platform: str
    version_num: int
    plan_class: str
    processor_type: str
    api_version: str
    created_at: float
    files: list[AppFileShown]


class VersionPage(TypedDict):
    versions: list[VersionShown]
    next_cursor: str | None


class AppDetail(AppShown):
    current: list[VersionShown]


class PlanClassShown(TypedDict):
    """The resources that versions of the class use and require. `gpu_type` None: CPU only."""

    name: str
    ncpus: float
    gpu_type: str | None
    gpu_count: float
    min_gpu_ram_bytes: float
    min_driver_version: int
    min_host_ncpus: int
    min_host_ram_bytes: float
    os_pattern: str
    cpu_speed_fraction: float
    gpu_speed_fraction: float
    needs: str
    arguments: str
    all_cpus: bool


class PlanClassPage(TypedDict):
    plan_classes: list[PlanClassShown]
    next_cursor: str | None


class NewVersion(TypedDict):
    app_version_id: int


class FileShown(TypedDict):
    name: str
    nbytes: int
    md5: str


class ProcessShown(TypedDict):
    """The last heartbeat of a process. `kind` is worker or background."""

    name: str
    kind: str
    reported_at: float
    report: Json


class SamplesShown(TypedDict):
    """Figures over time. `at` is the start of each step of `step_s`; values are null where there is no sample."""

    from_at: float
    to_at: float
    step_s: int
    at: list[float]
    series: dict[str, list[float | None]]


class ProcessPage(TypedDict):
    processes: list[ProcessShown]
    next_cursor: str | None
