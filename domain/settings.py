"""Settings with their defaults, units, ranges and meanings. Pure.

A setting's key is "section.name". The running system reads values from the database. `Settings.from_mapping` checks
them and reports the key, the expected value and the actual value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any, get_type_hints

from domain.access import AccessSettings
from domain.bounds import knob, name_of_setting, one_of, written
from domain.deadline_settings import AfapPolicy, DeadlineRule, DeadlineSettings
from domain.errors import InvalidInputError
from domain.ordering_settings import OrderingSettings
from domain.units import DAY_S, HOUR_S, Seconds

__all__ = [
    "MASTER_URL",
    "AccessSettings",
    "AfapPolicy",
    "DeadlineRule",
    "DeadlineSettings",
    "EstimatorSettings",
    "FeederSettings",
    "FileSettings",
    "LifecycleSettings",
    "MailSettings",
    "NotificationSettings",
    "OrderingSettings",
    "ProjectSettings",
    "RankingSettings",
    "SchedulerSettings",
    "ServerSettings",
    "Settings",
    "StorageSettings",
    "meaning_of",
]

MASTER_URL = r"https?://[^\s<>\"'&]{1,180}/"  # leaves room in a client's line for the name of a service


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    name: str = knob("Muster", "project name shown to volunteers")
    url: str = knob(
        "http://127.0.0.1:8080/",
        "master URL; must end in a slash",
        pattern=MASTER_URL,
        expected="an http or https URL of at most 189 characters that ends in /",
    )
    min_password_length: int = knob(6, "minimum length of volunteers' passwords, characters", low=1, high=64)
    account_creation: bool = knob(True, "let clients create accounts while attaching")
    down: bool = knob(False, "tell every client that the project is down for maintenance")


@dataclass(frozen=True, slots=True)
class FeederSettings:
    slots: int = knob(1000, "slots of each worker's job array", low=10, high=1_000_000)
    interval_s: Seconds = knob(
        Seconds(1.0), "interval between full refills of the job array; a low array is topped up earlier", low=0.01
    )
    refusals_to_rotate: int = knob(
        50, "requests in a row that cannot take a job before it leaves the job array for a time", low=1
    )
    cool_off_s: Seconds = knob(
        Seconds(300.0), "time that jobs which requests could not take stay out of the job array", low=1
    )
    gated_share_fraction: float = knob(
        0.5, "maximum share of an app's slots, per processor type, for jobs behind a gate", low=0, high=1
    )
    batch_share_fraction: float = knob(
        0.5, "maximum share of an app's slots, per processor type, for one batch", low=0, high=1
    )
    tail_fraction: float = knob(
        0.05,
        "last fraction of a batch's jobs that every worker may send; each earlier job has one worker",
        low=0,
        high=1,
    )
    tail_jobs: int = knob(20, "minimum number of a batch's last jobs that every worker may send", low=0)


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    request_delay_s: Seconds = knob(
        Seconds(60.0),
        "delay until a client's next request; reduced to as little as a sixth if its work ends earlier",
        low=1,
    )
    no_work_delay_s: Seconds = knob(
        Seconds(300.0),
        "delay until the next request when no work was available for the host; shorter while it has work to report",
        low=1,
    )
    refused_delay_s: Seconds = knob(
        DAY_S, "delay until the next request when the account is unknown or no app version runs on the host", low=1
    )
    next_contact_s: Seconds = knob(DAY_S, "maximum time between two requests of a client", low=60)
    jobs_per_request: int = knob(8, "maximum jobs sent per request and processor", low=1, high=1000)
    in_progress_per_cpu: int = knob(16, "maximum jobs in progress per CPU of a host", low=1, high=10_000)
    in_progress_per_gpu: int = knob(16, "maximum jobs in progress per GPU of a host", low=1, high=10_000)
    daily_quota: int = knob(500, "maximum daily quota: jobs per processor and app version", low=1)
    daily_quota_start: int = knob(50, "initial daily quota of a new host: jobs per processor and app version", low=1)
    shared_quota_start: int = knob(
        4000,
        "initial daily quota, in jobs, shared by all new hosts of an account or an address; 0 = unlimited",
        low=0,
        high=100_000_000,
    )
    newcomer_fraction: float = knob(
        0.05,
        "last fraction of a batch without a gate that is reserved for new hosts and hosts with an idle processor",
        low=0,
        high=1,
    )
    urgent_share_fraction: float = knob(0.5, "maximum share of a host's jobs that are behind a gate", low=0, high=1)
    afap_first_fraction: float = knob(
        0.9,
        "share of requests in which AFAP jobs without an early due date come before jobs that can wait",
        low=0,
        high=1,
    )
    clone_grace_s: Seconds = knob(
        Seconds(0.0), "time after a host is created during which clone detection is off", low=0
    )
    max_clock_skew_s: Seconds = knob(
        HOUR_S, "maximum clock difference between a host and the project; hosts beyond it get no work", low=600
    )
    max_request_bytes: int = knob(8_000_000, "maximum size of a scheduler request, bytes", low=10_000)


@dataclass(frozen=True, slots=True)
class LifecycleSettings:
    grace_fraction: float = knob(
        0.1, "grace period after the due date, as a share of the time from dispatch to due date", low=0, high=2
    )
    min_grace_s: Seconds = knob(Seconds(300.0), "minimum grace period", low=0)
    max_grace_s: Seconds = knob(DAY_S, "maximum grace period", low=0)
    max_lost_instances: int = knob(
        20,
        "lost instances (timed out, aborted, detached) after which a job fails instead of being retried",
        low=1,
        high=1000,
    )
    sweep_interval_s: Seconds = knob(Seconds(10.0), "interval between sweeps for timed-out instances", low=0.05)
    validate_interval_s: Seconds = knob(Seconds(0.5), "interval between searches for jobs to validate", low=0.01)
    tail_overhead_fraction: float = knob(  # these four settings: docs/decisions/0062
        0.25,
        "maximum number of copies of late jobs, as a share of the batch's instances; 0 = no copies",
        low=0,
        high=10,
    )
    tail_fraction: float = knob(0.15, "last fraction of a batch's jobs in which late jobs are copied", low=0, high=1)
    tail_late_factor: float = knob(
        1.0,
        "copy one of a batch's last jobs when every instance of it has taken this multiple of its expected "
        "turnaround; 0 = off",
        low=0,
    )
    tail_unsent_fraction: float = knob(
        0.05,
        "copy lost jobs of a batch without a deadline once at most this share of its jobs is unsent",
        low=0,
        high=1,
    )
    tail_interval_s: Seconds = knob(Seconds(300.0), "interval between searches for late jobs to copy", low=1)
    acceleration_interval_s: Seconds = knob(
        HOUR_S, "interval between searches for late jobs with deadline.rule = accelerated", low=1
    )
    outage_s: Seconds = knob(Seconds(600.0), "minimum length of a server outage that extends open due dates", low=10)


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """Limits on comparing outputs by content. An output that exceeds a limit is invalid."""

    processes: int = knob(2, "number of processes that compare outputs, one job at a time each", low=1, high=64)
    max_bytes: int = knob(
        64_000_000, "maximum bytes of one instance's outputs compared by content", low=1000, high=10**10
    )
    max_values: int = knob(
        5_000_000, "maximum number of values (numbers and texts) compared in one instance's outputs", low=1, high=10**9
    )
    max_depth: int = knob(100, "maximum nesting depth of a compared output", low=1, high=900)
    max_read_s: Seconds = knob(Seconds(30.0), "maximum CPU time for reading one instance's outputs", low=1, high=3600)
    max_memory_bytes: int = knob(
        1_000_000_000, "memory limit of a process that compares outputs, bytes", low=200_000_000, high=10**12
    )


@dataclass(frozen=True, slots=True)
class FileSettings:
    max_input_bytes: int = knob(1_000_000_000, "maximum size of an input or app file, bytes", low=1, high=10**15)
    max_batch_bytes: int = knob(
        2_000_000_000, "maximum estimated size of one batch's jobs in the database, bytes", low=1, high=10**15
    )
    max_output_bytes: int = knob(1_000_000_000, "maximum value of an output's max_bytes", low=1, high=10**15)
    max_trickle_bytes: int = knob(4_096, "maximum size of a stored trickle message, bytes", low=0, high=65_536)
    trickles_per_instance: int = knob(100, "maximum number of trickle messages stored per instance", low=0, high=1000)


@dataclass(frozen=True, slots=True)
class RankingSettings:
    min_rows: int = knob(
        20, "minimum number of hosts with results, per app and processor type, for computing percentiles", low=1
    )
    min_samples: float = knob(
        3.0, "number of results that a host needs to be ranked; older results count less than 1", low=0
    )
    active_s: Seconds = knob(
        Seconds(7 * DAY_S), "a host is active if it contacted the server within this time", low=HOUR_S
    )
    used_s: Seconds = knob(
        Seconds(30 * DAY_S), "a host is ranked if it had a result or timeout within this time", low=HOUR_S
    )
    forgive_s: Seconds = knob(
        Seconds(30 * DAY_S),
        "rank a host as failure-free after 3 valid results and this long without a failure; 0 = never",
        low=0,
    )
    consecutive_valid_infinite: int = knob(
        10, "rank a host as failure-free with more consecutive valid results than this", low=1
    )
    run_interval_s: Seconds = knob(
        DAY_S, "interval between full rankings by the background process; 0 = ranking only by the cron job", low=0
    )
    refresh_interval_s: Seconds = knob(
        HOUR_S, "interval between refreshes of the percentiles by the background process; 0 = never", low=0
    )


@dataclass(frozen=True, slots=True)
class EstimatorSettings:
    look_s: Seconds = knob(Seconds(5.0), "interval between searches for batches to forecast", low=0.05)
    pause_s: Seconds = knob(
        Seconds(60.0), "minimum time during which validations are collected before a new forecast", low=0
    )
    timer_s: Seconds = knob(Seconds(900.0), "maximum age of a forecast before it is renewed", low=1)


_PARAMETER = r"(?:endpoint=https?://[^\s&?#<>\"']{1,200}|region=[a-z0-9-]{1,40})"
BUCKET_URL = (
    rf"(?:s3://[a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9](?:/[A-Za-z0-9_-][A-Za-z0-9._-]{{0,99}}){{0,5}}/?"
    rf"(?:\?{_PARAMETER}(?:&{_PARAMETER})?)?)?"
)
_EXPECTED_BUCKET = "nothing, or an address like s3://bucket/prefix?endpoint=https://s3.example.org&region=eu-1"


@dataclass(frozen=True, slots=True)
class StorageSettings:
    keep_ended_s: Seconds = knob(
        Seconds(7 * DAY_S), "time after which the jobs of an ended batch move to the history tables", low=0
    )
    keep_parts_s: Seconds = knob(
        Seconds(30 * DAY_S),
        "time an abandoned partial upload is kept; uploads of jobs in progress are always kept",
        low=DAY_S,
    )
    keep_trickles_s: Seconds = knob(Seconds(90 * DAY_S), "time trickle messages are kept", low=DAY_S)
    backup_age_s: Seconds = knob(
        Seconds(2 * DAY_S), "age from which the last recorded backup needs attention; 0 = not checked", low=0
    )
    url: str = knob(
        "",
        "bucket for new complete files, like s3://bucket/prefix?endpoint=https://…&region=…; empty = the folder files/",
        pattern=BUCKET_URL,
        expected=_EXPECTED_BUCKET,
    )
    read_url: str = knob(
        "",
        "second bucket to search for files while they are moved to or from it; empty = none",
        pattern=BUCKET_URL,
        expected=_EXPECTED_BUCKET,
    )
    redirect: bool = knob(
        False,
        "redirect downloads to a signed address of the bucket, valid for an hour; false = serve them through a node",
    )


_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}(?:/(?:3[0-2]|[12]?[0-9]))?"
_IPV6 = r"[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))?"
_NETWORK = rf"(?:{_IPV4}|{_IPV6})"
_NETWORKS = rf"(?:{_NETWORK}(?:\s*,\s*{_NETWORK})*)?"
_EXPECTED = "comma-separated addresses or networks, such as 127.0.0.0/8, ::1"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Limits of a worker's HTTP server, per client address."""

    trusted_proxies: str = knob(
        "127.0.0.0/8, ::1",
        "comma-separated addresses of reverse proxies whose X-Forwarded-For is trusted; empty = none",
        pattern=_NETWORKS,
        expected=_EXPECTED,
    )
    metrics_networks: str = knob(
        "127.0.0.0/8, ::1",
        "comma-separated addresses that may read a worker's /metrics; empty = none",
        pattern=_NETWORKS,
        expected=_EXPECTED,
    )
    address_requests_per_s: float = knob(
        50.0, "sustained requests per second per address and worker; 0 = unlimited", low=0
    )
    address_burst: int = knob(1000, "burst of requests per address and worker", low=1)
    host_requests_per_s: float = knob(
        2.0, "sustained scheduler requests per second per host and worker; 0 = unlimited", low=0
    )
    host_burst: int = knob(200, "burst of scheduler requests per host and worker", low=1)
    volunteer_new_hosts: int = knob(
        2000,
        "new hosts per volunteer and day (UTC); further hosts must wait until the next day; 0 = unlimited",
        low=0,
    )
    address_new_hosts: int = knob(
        2000, "new hosts per address and day (UTC), all volunteers together; 0 = unlimited", low=0
    )
    connections: int = knob(
        10_000, "maximum open connections per worker; further clients must retry later", low=10, high=1_000_000
    )
    idle_timeout_s: Seconds = knob(
        Seconds(75.0),
        "idle timeout of connections without a complete request; takes effect when a worker restarts",
        low=1,
    )
    upload_bytes_per_s: float = knob(
        1000.0, "minimum average upload speed after five minutes, bytes per second; 0 = no minimum", low=0
    )
    body_timeout_s: Seconds = knob(
        Seconds(60.0), "timeout for receiving a request body, plus one second per 10 kB announced", low=1
    )


@dataclass(frozen=True, slots=True)
class MailSettings:
    server: str = knob(
        "",
        "SMTP server; empty = no mail. The password is read from MUSTER_SMTP_PASSWORD",
        pattern=r"[^\s/]{0,253}",
        expected="a host name or address, or nothing",
    )
    port: int = knob(587, "port of the SMTP server", low=1, high=65535)
    tls: str = one_of(
        "starttls", "encryption of the connection to the SMTP server: starttls, tls or none", "starttls", "tls", "none"
    )
    user: str = knob("", "user name at the SMTP server; empty = no sign-in")
    sender: str = knob(
        "",
        "address from which mail is sent",
        pattern=r"([^@\s<>]{1,64}@[^@\s<>]{1,189})?",
        expected="an e-mail address, or nothing",
    )


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    private_networks: str = knob(
        "",
        "comma-separated private addresses that webhooks may use, also without TLS; empty = only public addresses",
        pattern=_NETWORKS,
        expected=_EXPECTED,
    )
    app_errors: int = knob(20, "minimum number of failed results of an app in 15 minutes for a notification", low=1)
    app_error_fraction: float = knob(
        0.5, "minimum share of an app's results in 15 minutes that failed, for a notification", low=0, high=1
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All sections. `Settings()` has the default values."""

    project: ProjectSettings = ProjectSettings()
    deadline: DeadlineSettings = DeadlineSettings()
    feeder: FeederSettings = FeederSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    lifecycle: LifecycleSettings = LifecycleSettings()
    validation: ValidationSettings = ValidationSettings()
    files: FileSettings = FileSettings()
    ordering: OrderingSettings = OrderingSettings()
    ranking: RankingSettings = RankingSettings()
    estimator: EstimatorSettings = EstimatorSettings()
    storage: StorageSettings = StorageSettings()
    access: AccessSettings = AccessSettings()
    server: ServerSettings = ServerSettings()
    mail: MailSettings = MailSettings()
    notifications: NotificationSettings = NotificationSettings()

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Settings:
        """Return the defaults with these values changed ("section.name" -> value). Raises InvalidInputError.

        >>> Settings.from_mapping({"deadline.p_tight": 0.85}).deadline.p_tight
        0.85
        """
        settings = cls()
        for key, value in sorted(values.items()):
            settings = settings.changed(key, value)
        return settings

    @classmethod
    def from_stored(cls, values: Mapping[str, object]) -> tuple[Settings, tuple[InvalidInputError, ...]]:
        """Return the defaults with the stored values, and an error for each stored value that is no longer valid.

        An upgrade may rename a setting or narrow its range. The node must still start, and logs the errors.

        >>> settings, unfit = Settings.from_stored({"deadline.p_tight": 0.85, "feeder.colour": "blue"})
        >>> settings.deadline.p_tight, [error.field for error in unfit]
        (0.85, ['feeder.colour'])
        """
        settings, unfit = cls(), list[InvalidInputError]()
        for key, value in sorted(values.items()):
            try:
                settings = settings.changed(key, value)
            except InvalidInputError as error:
                unfit.append(error)
        return settings, tuple(unfit)

    def changed(self, key: str, value: object) -> Settings:
        """Return a copy in which one value is changed. Raises InvalidInputError.

        >>> Settings().changed("deadline.p_tight", 2)
        Traceback (most recent call last):
        domain.errors.InvalidInputError: deadline.p_tight: expected a number from 0 to 1, got 2
        """
        if key not in _knobs():
            raise InvalidInputError(key, name_of_setting(key, self.as_mapping()), key)
        section_name, _, name = key.partition(".")
        checked = _checked(key, value)
        # Any: only the section's name is known here; _checked has converted the value to its field's type.
        changes: dict[str, Any] = {section_name: replace(getattr(self, section_name), **{name: checked})}
        return replace(self, **changes)

    def as_mapping(self) -> dict[str, object]:
        """Return all settings by key."""
        return {
            f"{section.name}.{knob_.name}": getattr(getattr(self, section.name), knob_.name)
            for section in fields(self)
            for knob_ in fields(getattr(self, section.name))
        }


def meaning_of(key: str) -> str:
    """Return the help text of a setting.

    >>> meaning_of("feeder.slots")
    "slots of each worker's job array"
    """
    _, metadata = _knobs()[key]
    return str(metadata["meaning"])


@cache
def _knobs() -> Mapping[str, tuple[Any, Mapping[str, Any]]]:
    """Return the type and metadata of each setting. Cached, because each load of the catalogue checks its settings."""
    found, defaults = dict[str, tuple[Any, Mapping[str, Any]]](), Settings()
    for one in fields(defaults):
        section = getattr(defaults, one.name)
        kinds = get_type_hints(type(section))
        found.update((f"{one.name}.{f.name}", (kinds[f.name], f.metadata)) for f in fields(section))
    return found


def _checked(key: str, value: object) -> object:
    kind, metadata = _knobs()[key]
    kind = getattr(kind, "__supertype__", kind)  # Seconds is a float
    low, high = metadata["low"], metadata["high"]
    expected = metadata["expected"] if kind is str else _expected(kind, low, high)
    if issubclass(kind, StrEnum):
        if value not in list(kind):
            raise InvalidInputError(key, expected, value)
        return kind(value)
    if kind is bool or isinstance(value, bool):
        if not (kind is bool and isinstance(value, bool)):
            raise InvalidInputError(key, expected, value)
        return value
    if kind is str:
        if not (isinstance(value, str) and re.fullmatch(metadata["pattern"], value)):
            raise InvalidInputError(key, expected, value)
        return value
    if not isinstance(value, (int, float)):
        raise InvalidInputError(key, expected, value)
    finite = abs(value) <= sys.float_info.max  # false for NaN too
    if not finite or (kind is int and value != int(value)):
        raise InvalidInputError(key, expected, value)
    if (low is not None and value < low) or (high is not None and value > high):
        raise InvalidInputError(key, expected, value)
    return kind(value)


def _expected(kind: type, low: float | None, high: float | None) -> str:
    if issubclass(kind, StrEnum):
        return "one of " + ", ".join(kind)
    if kind is bool:
        return "true or false"
    noun = "a whole number" if kind is int else "a number"
    if low is not None and high is not None:
        return f"{noun} from {written(low)} to {written(high)}"
    if low is not None:
        return f"{noun} of at least {written(low)}"
    return noun
