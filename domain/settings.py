"""Settings: every field with its default, unit, range and meaning. Pure.

A setting's key is "section.name". Values come from the database's setting table at run time;
`Settings.from_mapping` checks them and names the key, what was expected and what came.
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
from domain.bounds import knob, name_of_setting, written
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
    "OrderingSettings",
    "ProjectSettings",
    "RankingSettings",
    "SchedulerSettings",
    "ServerSettings",
    "Settings",
    "StorageSettings",
    "meaning_of",
]

MASTER_URL = r"https?://[^\s<>\"'&]{1,180}/"  # short enough for a client's line when a service's name follows it


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    name: str = knob("Muster", "the project's name as volunteers see it")
    url: str = knob(
        "http://127.0.0.1:8080/",
        "the master URL; ends in a slash",
        pattern=MASTER_URL,
        expected="an http or https URL of at most 189 characters that ends in /",
    )
    min_password_length: int = knob(6, "characters a volunteer's password must have", low=1, high=64)
    account_creation: bool = knob(True, "whether clients may make new accounts while attaching")
    down: bool = knob(False, "answer every client that the project is down")


@dataclass(frozen=True, slots=True)
class FeederSettings:
    slots: int = knob(1000, "slots of each worker's job array", low=10, high=1_000_000)
    interval_s: Seconds = knob(Seconds(1.0), "seconds between whole refills; a low array is filled up before", low=0.01)
    refusals_to_rotate: int = knob(50, "hosts that refuse a slot in a row before it rotates out", low=1)
    cool_off_s: Seconds = knob(Seconds(300.0), "seconds a rotated slot stays out", low=1)
    gated_share_fraction: float = knob(0.5, "most of a partition that gated jobs may take", low=0, high=1)
    batch_share_fraction: float = knob(0.5, "most of a partition that one batch may take", low=0, high=1)
    tail_fraction: float = knob(0.05, "last share of a batch that every worker holds", low=0, high=1)
    tail_jobs: int = knob(20, "last jobs of a batch that every worker holds, at least", low=0)


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    request_delay_s: Seconds = knob(
        Seconds(60.0), "seconds before a client calls again; down to a sixth if its work is done before", low=1
    )
    no_work_delay_s: Seconds = knob(Seconds(300.0), "the same when there was no work for it", low=1)
    refused_delay_s: Seconds = knob(
        DAY_S, "the same when the account is unknown or the host can run no app version", low=1
    )
    next_contact_s: Seconds = knob(DAY_S, "a client calls at the latest after this", low=60)
    jobs_per_request: int = knob(8, "most jobs per request and processor", low=1, high=1000)
    in_progress_per_cpu: int = knob(16, "most jobs in progress per CPU", low=1, high=10_000)
    in_progress_per_gpu: int = knob(16, "most jobs in progress per GPU", low=1, high=10_000)
    daily_quota: int = knob(500, "most jobs a day per processor and app version for a good host", low=1)
    daily_quota_start: int = knob(50, "the same for a host without a record", low=1)
    shared_quota_start: int = knob(
        4000,
        "most jobs a day, at first, of an account's computers without a record, and of an address's; 0 = any number",
        low=0,
        high=100_000_000,
    )
    newcomer_fraction: float = knob(
        0.05,
        "last share of an ungated batch's first instances kept for newcomers and idle processors",
        low=0,
        high=1,
    )
    urgent_share_fraction: float = knob(0.5, "most of a host's jobs that are gated (decision 50)", low=0, high=1)
    afap_first_fraction: float = knob(
        0.9, "share of requests in which AFAP jobs in their turn come before what can wait (decision 36)", low=0, high=1
    )
    clone_grace_s: Seconds = knob(Seconds(0.0), "seconds after host creation in which clones are not sought", low=0)
    max_clock_skew_s: Seconds = knob(
        HOUR_S, "no work for a host whose clock differs from the project's by more than this", low=600
    )
    max_request_bytes: int = knob(8_000_000, "largest scheduler request taken", low=10_000)


# Settings of due dates and of the gates before them. Each says which decision or sweep its default is from
# (docs/decisions/).


class DeadlineRule(StrEnum):
    MUSTER = "muster"  # scheduler/deadline/prompt.py, or table.py: `AfapPolicy`
    PROPOSAL = "proposal"  # the pseudo-code of docs/proposal.md as it is written
    FIXED = "fixed"  # now + delay bound
    ACCELERATED = "accelerated"  # docs/formulas.md#batch-acceleration


class AfapPolicy(StrEnum):
    PROMPT = "prompt"  # good hosts hurry, others in their turn: docs/decisions/0036
    TABLE = "table"  # the rows of other batches: scheduler/deadline/table.py


@dataclass(frozen=True, slots=True)
class DeadlineSettings:
    rule: DeadlineRule = knob(DeadlineRule.MUSTER, "how due dates are chosen: muster, proposal, fixed or accelerated")
    p_afap: float = knob(0.5, "least percentile to hurry for AFAP batches (decisions 36, 50)", low=0, high=1)
    p_late: float = knob(0.5, "least percentile when the host would finish close to C(B) (decision 50)", low=0, high=1)
    p_retry: float = knob(0.5, "least percentile for a retry (decision 50)", low=0, high=1)
    p_tight: float = knob(0.9, "least percentile when the host would finish after C(B) (decision 50)", low=0, high=1)
    min_slack_s: Seconds = knob(
        Seconds(3600.0), "least slack of a computed due date over the runtime (decision 50)", low=0
    )
    slack_factor: float = knob(2.5, "R_q over R until a host and its app have data (decision 50)", low=1, high=20)
    gate_wait_fraction: float = knob(
        0.25,
        "a gate is lowered when its jobs would wait longer than this share of R; 0 = never (decision 12)",
        low=0,
        high=10,
    )
    min_gate_wait_s: Seconds = knob(Seconds(1800.0), "least wait from which a gate is lowered (decision 12)", low=60)
    afap: AfapPolicy = knob(AfapPolicy.PROMPT, "due dates of AFAP batches: prompt, or as in the table of all batches")
    afap_turn_factor: float = knob(  # this and the next: the sweep in docs/decisions/0036
        2.0,
        "other hosts get AFAP jobs in their turn, if done within so many times a retry's time (decision 36)",
        low=0,
        high=100,
    )
    afap_due_factor: float = knob(
        1.1,
        "AFAP jobs are due so many times as far ahead as their host is done for sure (decision 50)",
        low=1,
        high=10,
    )
    first_factor: float = knob(
        4.0,
        "batches with a deadline go first, as AFAP ones, with less than so many times a retry's time left; 0 = never "
        "(decision 49)",
        low=0,
        high=100,
    )
    reliability_quantile_z: float = knob(
        1.2816, "z of the turnaround quantile R_q stands for (decision 47)", low=0, high=4
    )


@dataclass(frozen=True, slots=True)
class LifecycleSettings:
    grace_fraction: float = knob(0.1, "grace after due_at, share of the interval given", low=0, high=2)
    min_grace_s: Seconds = knob(Seconds(300.0), "least grace", low=0)
    max_grace_s: Seconds = knob(DAY_S, "most grace", low=0)
    max_lost_instances: int = knob(
        20, "lost instances (timed out, aborted, detached) after which a job fails instead of a retry", low=1, high=1000
    )
    sweep_interval_s: Seconds = knob(Seconds(10.0), "seconds between sweeps for time-outs", low=0.05)
    validate_interval_s: Seconds = knob(Seconds(0.5), "seconds between looks for jobs to settle", low=0.01)
    tail_overhead_fraction: float = knob(  # these four: docs/decisions/0062
        0.25, "copies of a batch's late jobs, at most, per instance its jobs need; 0 = none", low=0, high=10
    )
    tail_fraction: float = knob(0.15, "last share of a batch, whose late jobs are copied", low=0, high=1)
    tail_late_factor: float = knob(
        1.0, "a last job is copied when all it has are out for so many times what they take; 0 = no copies", low=0
    )
    tail_unsent_fraction: float = knob(
        0.05,
        "jobs of other batches are copied, too, if they are lost, when so few instances per job are unsent",
        low=0,
        high=1,
    )
    tail_interval_s: Seconds = knob(Seconds(300.0), "seconds between looks for last jobs to copy", low=1)
    acceleration_interval_s: Seconds = knob(HOUR_S, "the same of the rule accelerated", low=1)
    outage_s: Seconds = knob(Seconds(600.0), "an outage at least this long moves open due dates", low=10)


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """Limits of comparing outputs by their contents; an output beyond one is invalid, and says so."""

    processes: int = knob(2, "processes that compare outputs, one job each at a time", low=1, high=64)
    max_bytes: int = knob(
        64_000_000, "most bytes of one instance's outputs that are compared by content", low=1000, high=10**10
    )
    max_values: int = knob(
        5_000_000, "most numbers and texts in one instance's outputs that are compared", low=1, high=10**9
    )
    max_depth: int = knob(100, "most levels of nesting in an output that is compared", low=1, high=900)
    max_read_s: Seconds = knob(
        Seconds(30.0), "most seconds of processor time for reading one instance's outputs", low=1, high=3600
    )
    max_memory_bytes: int = knob(
        1_000_000_000, "most memory of a process that compares outputs", low=200_000_000, high=10**12
    )


@dataclass(frozen=True, slots=True)
class FileSettings:
    max_input_bytes: int = knob(1_000_000_000, "largest input or app file", low=1, high=10**15)
    max_batch_bytes: int = knob(
        2_000_000_000, "most bytes the jobs of one batch may take in the database, by estimate", low=1, high=10**15
    )
    max_output_bytes: int = knob(1_000_000_000, "largest max_bytes an output may ask for", low=1, high=10**15)
    max_trickle_bytes: int = knob(4_096, "largest trickle message of an app that is kept", low=0, high=65_536)
    trickles_per_instance: int = knob(100, "most trickle messages kept of one instance", low=0, high=1000)


@dataclass(frozen=True, slots=True)
class RankingSettings:
    min_rows: int = knob(20, "rows an (app, processor type) needs for percentiles", low=1)
    min_samples: float = knob(3.0, "effective samples a row needs to be ranked", low=0)
    active_s: Seconds = knob(Seconds(7 * DAY_S), "a host counts while it called within this", low=HOUR_S)
    used_s: Seconds = knob(Seconds(30 * DAY_S), "a row counts with a result or time-out within this", low=HOUR_S)
    forgive_s: Seconds = knob(
        Seconds(30 * DAY_S), "no failure for this long and 3 valid results rank as infinite, too; 0 = never", low=0
    )
    consecutive_valid_infinite: int = knob(10, "more valid results in a row than this rank as infinite", low=1)
    run_interval_s: Seconds = knob(
        DAY_S, "seconds between full rankings by the background process; 0 = a cron job alone does them", low=0
    )
    refresh_interval_s: Seconds = knob(
        HOUR_S, "seconds between refreshes of the cut points by the background process; 0 = none", low=0
    )


@dataclass(frozen=True, slots=True)
class EstimatorSettings:
    look_s: Seconds = knob(Seconds(5.0), "seconds between looks for batches to forecast", low=0.05)
    pause_s: Seconds = knob(Seconds(60.0), "seconds at least in which validations are gathered for a forecast", low=0)
    timer_s: Seconds = knob(Seconds(900.0), "seconds after which a batch is forecast in any case", low=1)


@dataclass(frozen=True, slots=True)
class StorageSettings:
    keep_ended_s: Seconds = knob(Seconds(7 * DAY_S), "seconds an ended batch's jobs stay in the busy tables", low=0)
    keep_parts_s: Seconds = knob(
        Seconds(30 * DAY_S),
        "seconds an upload nobody goes on with stays in the upload folder, unless its job is out",
        low=DAY_S,
    )
    keep_trickles_s: Seconds = knob(Seconds(90 * DAY_S), "seconds trickle messages are kept", low=DAY_S)


_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}(?:/(?:3[0-2]|[12]?[0-9]))?"
_IPV6 = r"[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))?"
_NETWORK = rf"(?:{_IPV4}|{_IPV6})"
_NETWORKS = rf"(?:{_NETWORK}(?:\s*,\s*{_NETWORK})*)?"
_EXPECTED = "addresses or networks with commas between them, as 127.0.0.0/8, ::1"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Limits of a worker's HTTP server: how much of it one caller may take."""

    trusted_proxies: str = knob(
        "127.0.0.0/8, ::1",
        "addresses of reverse proxies whose X-Forwarded-For is believed, with commas; empty: none is",
        pattern=_NETWORKS,
        expected=_EXPECTED,
    )
    metrics_networks: str = knob(
        "127.0.0.0/8, ::1",
        "addresses that may read /metrics of a worker, with commas; empty: none may",
        pattern=_NETWORKS,
        expected=_EXPECTED,
    )
    address_requests_per_s: float = knob(
        50.0, "requests a second that one address may make of a worker, in the long run; 0 = any number", low=0
    )
    address_burst: int = knob(1000, "requests one address may make of a worker at once, after a pause", low=1)
    host_requests_per_s: float = knob(
        2.0, "scheduler requests a second that one host may make of a worker, in the long run; 0 = any number", low=0
    )
    host_burst: int = knob(200, "scheduler requests one host may make of a worker at once, after a pause", low=1)
    volunteer_new_hosts: int = knob(
        2000,
        "new computers one volunteer may bring in a day (UTC); more are told to come tomorrow; 0 = any number",
        low=0,
    )
    address_new_hosts: int = knob(
        2000, "new computers one address may bring in a day (UTC), of all volunteers together; 0 = any number", low=0
    )
    connections: int = knob(10_000, "connections a worker holds; more are told to come later", low=10, high=1_000_000)
    idle_timeout_s: Seconds = knob(
        Seconds(75.0), "seconds a connection may wait with no whole request; from a worker's next start on", low=1
    )
    upload_bytes_per_s: float = knob(
        1000.0, "bytes a second an upload must bring on average, after five minutes; 0 = any number", low=0
    )
    body_timeout_s: Seconds = knob(
        Seconds(60.0), "seconds a request's body may take, and one more for every 10 kB it is to have", low=1
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All sections. `Settings()` is the default."""

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

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Settings:
        """Defaults changed by `values` ("section.name" -> value). Raises InvalidInputError.

        >>> Settings.from_mapping({"deadline.p_tight": 0.85}).deadline.p_tight
        0.85
        """
        settings = cls()
        for key, value in sorted(values.items()):
            settings = settings.changed(key, value)
        return settings

    @classmethod
    def from_stored(cls, values: Mapping[str, object]) -> tuple[Settings, tuple[InvalidInputError, ...]]:
        """Defaults changed by what is stored; what no longer fits is left out and returned.

        An upgrade may rename or narrow a setting: a node must come up nevertheless, and say so.

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
        """The same settings with one value changed. Raises InvalidInputError.

        >>> Settings().changed("deadline.p_tight", 2)
        Traceback (most recent call last):
        domain.errors.InvalidInputError: deadline.p_tight: expected a number from 0 to 1, got 2
        """
        section_name, _, name = key.partition(".")
        sections = {f.name for f in fields(self)}
        if section_name not in sections or name not in _knobs(type(getattr(self, section_name))):
            raise InvalidInputError(key, name_of_setting(key, self.as_mapping()), key)
        section = getattr(self, section_name)
        checked = _checked(key, type(section), name, value)
        # Any: the section's type is known only by name here; _checked made the value fit its field.
        changes: dict[str, Any] = {section_name: replace(section, **{name: checked})}
        return replace(self, **changes)

    def as_mapping(self) -> dict[str, object]:
        """Every setting by key."""
        return {
            f"{section.name}.{knob_.name}": getattr(getattr(self, section.name), knob_.name)
            for section in fields(self)
            for knob_ in fields(getattr(self, section.name))
        }


def meaning_of(key: str) -> str:
    """One sentence on what a setting does.

    >>> meaning_of("feeder.slots")
    "slots of each worker's job array"
    """
    section_name, _, name = key.partition(".")
    return str(_knobs(type(getattr(Settings(), section_name)))[name].metadata["meaning"])


@cache
def _kinds(section: type) -> dict[str, Any]:
    """What each knob of a section is: put together from text, which takes a while."""
    return get_type_hints(section)


def _knobs(section: type) -> dict[str, Any]:
    return {f.name: f for f in fields(section)}


def _checked(key: str, section: type, name: str, value: object) -> object:
    metadata = _knobs(section)[name].metadata
    kind = _kinds(section)[name]
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
