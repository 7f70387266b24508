"""Defines the messages of the client protocol as data classes. Pure.

Units are those of the protocol (seconds, bytes, flop/s), names are ours. A request contains statements by the client:
nothing in it is trusted, and numbers are finite but otherwise unchecked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.dispatch import ReportedResult
from domain.errors import MusterError
from domain.quick import quick_dataclass
from domain.units import Instant, Seconds


class ProtocolError(MusterError):
    """A malformed message. `status` is the HTTP status of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


# States of a reported result (docs/protocol.md#reports).
STATE_COMPUTE_ERROR = 3
STATE_UPLOADED = 5
STATE_ABORTED = 6


@dataclass(frozen=True, slots=True)
class CoprocRequest:
    """The GPUs of one type, and the amount of work requested for them."""

    type: str
    count: int
    peak_flop_per_s: float = 0.0
    ram_bytes: float = 0.0
    driver_version: int = 0
    usable: bool = True  # False: listed, but the client found no driver for it
    req_s: Seconds = Seconds(0.0)
    req_instances: float = 0.0
    estimated_delay_s: Seconds = Seconds(0.0)


@quick_dataclass(frozen=True, slots=True)
class HeldResult:
    """An unfinished result on the client (other_result)."""

    name: str
    plan_class: str = ""


@quick_dataclass(frozen=True, slots=True)
class InProgress:
    """An unfinished job of any project in the client's queue (ip_result)."""

    name: str
    report_deadline: Instant
    remaining_s: Seconds
    ncpus: float = 1.0
    gpu_type: str = ""
    gpu_count: float = 0.0


@quick_dataclass(frozen=True, slots=True)
class TrickleUp:
    """A message from a running app (msg_from_host). `sent_at` is the client's time, in whole seconds."""

    result_name: str
    sent_at: Instant
    variety: str
    text: str


@quick_dataclass(frozen=True, slots=True)
class HostInfo:
    """The host's description of itself. Fields omitted by the client have defaults."""

    domain_name: str = ""
    ip_addr: str = ""
    host_cpid: str = ""
    timezone_s: int = 0
    ncpus: int = 1
    cpu_vendor: str = ""
    cpu_model: str = ""
    cpu_features: str = ""  # written by the client code only; the decoder skips it
    flop_per_s: float = 0.0
    iop_per_s: float = 0.0
    ram_bytes: float = 0.0
    swap_bytes: float = 0.0
    disk_total_bytes: float = 0.0
    disk_free_bytes: float = 0.0
    os_name: str = ""
    os_version: str = ""
    software: str = ""  # NAME/VERSION separated by blanks: docker, podman, virtualbox


@quick_dataclass(frozen=True, slots=True)
class SchedulerRequest:
    """A client's scheduler RPC."""

    authenticator: str
    host_id: int = 0
    rpc_seqno: int = 0
    client_version: tuple[int, int, int] = (0, 0, 0)
    dont_send_work: bool = False
    duration_correction_factor: float = 1.0
    resource_share_fraction: float = 1.0
    cpu_req_s: Seconds = Seconds(0.0)
    cpu_req_instances: float = 0.0
    estimated_delay_s: Seconds = Seconds(0.0)
    platforms: tuple[str, ...] = ()  # platform_name first, then the alternative platforms in order
    code_sign_key: str = ""
    on_fraction: float = 1.0
    active_fraction: float = 1.0
    gpu_active_fraction: float = 1.0
    client_now: Instant | None = None  # the client's time when it wrote the request; None: not sent
    ram_max_used_busy_fraction: float = 1.0
    ram_max_used_idle_fraction: float = 1.0
    max_ncpus_fraction: float = 1.0
    work_buf_min_s: Seconds = Seconds(0.0)
    disk_project_share_bytes: float | None = None
    disk_project_used_bytes: float = 0.0
    host: HostInfo = field(default_factory=HostInfo)
    coprocs: tuple[CoprocRequest, ...] = ()
    results: tuple[ReportedResult, ...] = ()
    other_results: tuple[HeldResult, ...] = ()
    in_progress: tuple[InProgress, ...] | None = None  # None: the client does not send this list
    sticky_files: tuple[str, ...] = ()  # names of sticky files on the client
    trickles: tuple[TrickleUp, ...] = ()
    more_trickles: int = 0  # number of messages not decoded


# ------------------------------------------------------------------ reply


@quick_dataclass(frozen=True, slots=True)
class Message:
    """Text for the client's log (low, high) or for its user (notice)."""

    text: str
    priority: str = "low"


@dataclass(frozen=True, slots=True)
class AppElement:
    name: str
    user_friendly_name: str = ""


@quick_dataclass(frozen=True, slots=True)
class DownloadElement:
    """A file that the client downloads. App files have a `signature`, inputs an `md5`."""

    name: str
    urls: tuple[str, ...]
    nbytes: int
    md5: str = ""
    signature: str = ""
    executable: bool = False
    sticky: bool = False


@quick_dataclass(frozen=True, slots=True)
class UploadElement:
    """A file that the client will upload; the client returns `token` in xml_signature."""

    name: str
    url: str
    max_bytes: int
    token: str


@quick_dataclass(frozen=True, slots=True)
class FileRef:
    file_name: str
    open_name: str = ""
    main_program: bool = False
    copy_file: bool = False
    optional: bool = False


@quick_dataclass(frozen=True, slots=True)
class AppVersionElement:
    app_name: str
    version_num: int
    platform: str
    plan_class: str = ""
    avg_ncpus: float = 1.0
    flop_per_s: float = 1e9
    api_version: str = ""
    arguments: str = ""
    coproc_type: str = ""
    coproc_count: float = 0.0
    file_refs: tuple[FileRef, ...] = ()


@quick_dataclass(frozen=True, slots=True)
class WorkunitElement:
    name: str
    app_name: str
    fpops_est: float
    fpops_bound: float
    memory_bytes: float
    disk_bytes: float
    command_line: str = ""
    file_refs: tuple[FileRef, ...] = ()


@quick_dataclass(frozen=True, slots=True)
class ResultElement:
    name: str
    wu_name: str
    report_deadline: Instant  # sent in whole seconds, rounded down
    platform: str
    version_num: int
    plan_class: str = ""
    file_refs: tuple[FileRef, ...] = ()
    report_immediately: bool = False  # otherwise the client may wait for an hour


@quick_dataclass(frozen=True, slots=True)
class ProjectPreferences:
    """The volunteer's preferences for this project. Empty `app_ids`, and 0 for a maximum, mean no limit."""

    modified_at: Instant
    no_cpu: bool = False
    no_gpu: bool = False
    beta: bool = False
    max_jobs: int = 0
    max_cpus: int = 0
    app_ids: tuple[int, ...] = ()


@quick_dataclass(frozen=True, slots=True)
class GuiUrl:
    """A link that the client shows with the project."""

    name: str
    description: str
    url: str


@quick_dataclass(frozen=True, slots=True)
class SchedulerReply:
    """A scheduler reply. Elements are written in the order in which the client needs them."""

    master_url: str
    request_delay_s: Seconds
    project_name: str = ""
    project_is_down: bool = False
    messages: tuple[Message, ...] = ()
    user_name: str = ""
    user_id: int | None = None  # None: unknown account, no credit either
    user_credit: tuple[float, float] = (0.0, 0.0)  # total, recent average
    user_create_at: Instant | None = None
    email_hash: str = ""
    cross_project_id: str = ""
    external_cpid: str = ""  # public form of the cross-project id
    host_id: int | None = None  # only when newly created
    host_credit: tuple[float, float] = (0.0, 0.0)
    host_create_at: Instant | None = None
    team_id: int = 0  # 0: none
    team_name: str = ""
    gui_urls: tuple[GuiUrl, ...] = ()
    feed_url: str = ""  # of the news, which the client shows as notices
    next_rpc_delay_s: Seconds | None = None
    send_full_workload: bool = False
    dont_use_dcf: bool = False
    preferences: ProjectPreferences | None = None  # None: the client keeps its current ones
    code_sign_key: str = ""
    code_sign_key_signature: str = ""
    acks: tuple[str, ...] = ()
    ack_trickles: bool = False  # the client deletes all trickle messages of the request
    aborts: tuple[str, ...] = ()
    aborts_if_not_started: tuple[str, ...] = ()
    delete_files: tuple[str, ...] = ()
    apps: tuple[AppElement, ...] = ()
    downloads: tuple[DownloadElement, ...] = ()
    uploads: tuple[UploadElement, ...] = ()
    app_versions: tuple[AppVersionElement, ...] = ()
    workunits: tuple[WorkunitElement, ...] = ()
    results: tuple[ResultElement, ...] = ()


# ------------------------------------------------------------------ uploads


@dataclass(frozen=True, slots=True)
class SizeQuery:
    """Asks how many bytes of a file the server has."""

    name: str


@dataclass(frozen=True, slots=True)
class UploadHeader:
    """The header that precedes the contents of an uploaded file."""

    name: str
    token: str
    max_bytes: int
    nbytes: int  # full size of the file
    md5: str  # of the full file
    offset: int  # of the bytes that follow


@dataclass(frozen=True, slots=True)
class UploadReply:
    """Upload status: 0 done, 1 transient error, -1 permanent error."""

    status: int
    message: str = ""
    file_size: int | None = None
