"""Hosts and what they hold, as the API tells of them."""

from __future__ import annotations

from typing import TypedDict


class CoprocessorShown(TypedDict):
    type: str
    count: int
    peak_flop_per_s: float
    ram_bytes: float
    driver_version: int


class HostShown(TypedDict):
    """A computer as it described itself last."""

    host_id: int
    volunteer_id: int
    domain_name: str
    created_at: float
    last_rpc_at: float
    ncpus: int
    flop_per_s: float
    ram_bytes: float
    disk_free_bytes: float
    on_fraction: float
    active_fraction: float
    platforms: list[str]
    os_name: str
    os_version: str
    cpu_vendor: str
    cpu_model: str
    client_version: int
    coprocessors: list[CoprocessorShown]


class SlowShown(TypedDict):
    """An app version that a host is slow with: `x` of its hosts were slower at the last full ranking."""

    app_version_id: int
    x: float
    relative_turnaround: float | None


class FailuresShown(TypedDict):
    """What went wrong on a host since `since`: a week ago, or the first of the last 10,000 failures of all hosts.

    Of batches that ended longer than the setting `storage.keep_ended_s` ago nothing is counted.
    """

    errors: int
    invalid: int
    timed_out: int
    last_at: float
    since: float


class ListedHostShown(HostShown):
    """A host of a list. `n_*` count over all app versions, an invalid result as an error.

    `slow` and `failures` are null where hosts are not listed for them.
    """

    in_progress: int
    n_valid: int
    n_error: int
    n_timeout: int
    slow: SlowShown | None
    failures: FailuresShown | None


class HostPage(TypedDict):
    hosts: list[ListedHostShown]
    next_cursor: str | None


class HavShown(TypedDict):
    """What is known of a host with one app version. `*_n` of turnaround are the decayed weights of its samples."""

    app_version_id: int
    consecutive_valid: int
    quota_per_day: int
    sent_today: int
    n_valid: int
    n_error: int
    n_timeout: int
    n_due: int
    tight_n: float
    relaxed_n: float


class HostDetail(HostShown):
    app_versions: list[HavShown]


class HeldShown(TypedDict):
    instance_id: int
    job_id: int
    batch_id: int
    app: str
    sent_at: float
    due_at: float
    est_runtime_s: float
    tight: bool


class HeldPage(TypedDict):
    instances: list[HeldShown]
    next_cursor: str | None
