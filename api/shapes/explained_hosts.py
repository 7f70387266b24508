"""A decision for a host run dry, as the API tells of it."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from api.shapes.ordering import StaleShown


class ReasonShown(TypedDict):
    code: str
    why: str


class WantShown(TypedDict):
    """What a host is supposed to ask for of one kind of processor."""

    processor_type: str
    count: float
    idle: float
    req_s: float


class LeaseShown(TypedDict):
    """A host's last lease for a big job; `holds`: it is not over. `supposed`: its next request would make this."""

    batch_id: int
    host_id: int
    processor_type: str
    cores: float
    made_at: float
    start_at: float
    starts_in_s: float
    expires_at: float
    holds: bool
    supposed: bool
    ended_at: float | None
    because: str


class ExplainedInstance(TypedDict):
    instance_id: int
    due_at: float
    est_runtime_s: float
    tight: bool


class ExplainedHost(TypedDict):
    host_id: int
    volunteer_id: int
    ncpus: int
    flop_per_s: float
    ram_bytes: float
    disk_free_bytes: float
    availability_fraction: float
    platforms: list[str]
    last_rpc_at: float
    silent_s: float
    calls_per_hour: float
    in_progress: list[ExplainedInstance]


class StandingShown(TypedDict):
    """How a host stands with an app: `refused` and `why`, or everything else."""

    app: str
    processor_type: str
    refused: NotRequired[str]
    why: NotRequired[str]
    version: NotRequired[str]
    app_version_id: NotRequired[int]
    p: NotRequired[float | None]
    p_because: NotRequired[str]
    flop_per_s: NotRequired[float]
    speed_samples: NotRequired[float]
    slack_factor: NotRequired[float]
    quota_left: NotRequired[int]


class WouldGet(TypedDict):
    instance_id: int
    job_id: int
    batch_id: int
    app: str
    app_version_id: int
    due_at: float
    due_in_s: float
    est_runtime_s: float
    tight: bool
    because: str


class RefusedAtLarge(TypedDict):
    """What a whole request, or an app, was refused for."""

    app: str | None
    processor_type: str | None
    code: str
    why: str


class PassedOver(TypedDict):
    code: str
    slots: int
    why: str


LookShown = TypedDict(
    "LookShown",
    {
        "processor_type": str,
        "pass": str,
        "given": int,
        "code": str | None,
        "why": str | None,
        "passed_over": list[PassedOver],
    },
)


class GroupShown(TypedDict):
    """A group of like slots at its `place`, and each look that was taken at it."""

    place: int
    batch_id: int
    app: str | None
    job_class_id: int
    urgent: bool
    slots: int
    given: int
    looks: list[LookShown]


class HostExplained(TypedDict):
    """What a host would get if it asked now, and why not more; `groups` are the first of `groups_total`.

    `array` is the job array that was decided on: `worker`, that of the worker that answers, or `filled`, one filled
    from the database for this answer. `would_search`: a request would also search the database for more jobs.
    """

    computed_at: float
    array: str
    would_search: bool
    host: ExplainedHost
    refused: ReasonShown | None
    wants: list[WantShown]
    lease: LeaseShown | None
    stale_cut_points: list[StaleShown]
    standing: list[StandingShown]
    would_get: list[WouldGet]
    refused_at_large: list[RefusedAtLarge]
    groups: list[GroupShown]
    groups_total: int
