"""Jobs and their instances: states, values for the feeder and the scheduler, names, and random draws. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from domain.quick import quick_dataclass
from domain.units import (
    AppVersionId,
    BatchId,
    Flop,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    JobId,
    Seconds,
    VolunteerId,
)


class InstanceState(StrEnum):
    """The state of an instance. lifecycle/states.py has the transitions."""

    UNSENT = "unsent"
    IN_PROGRESS = "in_progress"
    REPORTED = "reported"  # success claimed, not compared yet
    INCONCLUSIVE = "inconclusive"  # compared, no consensus yet
    VALID = "valid"
    INVALID = "invalid"
    FAILED = "failed"  # an error on the host, or its output is missing
    TIMED_OUT = "timed_out"  # no report by the due date and grace; may still report
    ABORTED = "aborted"  # by the user or the server, or the host left: not the job's fault
    CANCELLED = "cancelled"  # never sent, no longer needed
    TOO_LATE = "too_late"  # came back after the job was over without a canonical result


class JobState(StrEnum):
    OPEN = "open"
    VALID = "valid"  # has a canonical instance
    FAILED = "failed"  # given up, `failure` says why
    CANCELLED = "cancelled"  # its batch was aborted


class ValidatorKind(StrEnum):
    BITWISE = "bitwise"
    TOLERANCE = "tolerance"  # numbers in JSON or CSV agree within a relative tolerance
    ACCEPT = "accept"


@dataclass(frozen=True, slots=True)
class Input:
    """An input file of a job. `name` is its identity for every client."""

    name: str
    open_name: str
    nbytes: int
    md5: str
    sticky: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """An output file of a job: its name in the slot directory and its maximum size."""

    name: str
    max_bytes: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class JobClass:
    """The common properties of a batch's jobs: decisions are made once per class and request.

    Sizes are per instance. `delay_bound_s` is the maximum time from sending to return.
    """

    job_class_id: JobClassId
    batch_id: BatchId
    fpops_est_flop: Flop
    fpops_bound_flop: Flop
    memory_bytes: float
    disk_bytes: float
    delay_bound_s: Seconds
    ncpus: float = 1.0
    quorum: int = 1
    max_errors: int = 3
    max_instances: int = 10
    hr_type: int = 0
    validator: ValidatorKind = ValidatorKind.BITWISE
    tolerance: float = 0.0
    inputs: tuple[Input, ...] = ()  # files that every job of the class reads
    outputs: tuple[Output, ...] = ()


@quick_dataclass(frozen=True, slots=True)
class Ready:
    """An unsent instance in the feeder: the fields needed to order and identify it."""

    instance_id: InstanceId
    job_id: JobId
    batch_id: BatchId
    job_class_id: JobClassId
    retries: int = 0
    sibling_returned: bool = False  # another instance was returned: this one completes a quorum
    hr_class: int = 0
    copies: int = 0  # results an earlier dispatch required to agree; 0 = the quorum

    @property
    def urgent(self) -> bool:
        return self.retries > 0 or self.sibling_returned


@quick_dataclass(frozen=True, slots=True)
class InstanceInProgress:
    """The server's record of an instance in progress."""

    instance_id: InstanceId
    name: str
    job_id: JobId
    batch_id: BatchId
    job_class_id: JobClassId
    app_version_id: AppVersionId
    host_id: HostId
    volunteer_id: VolunteerId
    sent_at: Instant
    due_at: Instant
    est_runtime_s: Seconds  # R at dispatch, availability included
    tight: bool
    no_longer_needed: bool = False  # its job is over
    median_turnaround_s: Seconds | None = None  # of its batch's results, or of the app's by size; None: unknown
    gated: bool = False  # its host had to pass a percentile gate
    ncpus: float = 1.0  # that its job occupies


@quick_dataclass(frozen=True, slots=True)
class FreshRange:
    """The next `limit` first instances of a (batch, shard) after `after_instance_id`."""

    batch_id: BatchId
    shard: int
    after_instance_id: InstanceId
    limit: int


@quick_dataclass(frozen=True, slots=True)
class Candidate:
    """An unsent instance with the hosts and volunteers of its siblings."""

    ready: Ready
    sibling_hosts: tuple[HostId, ...] = ()
    sibling_volunteers: tuple[VolunteerId, ...] = ()


def job_name(app_name: str, batch_id: BatchId, job_id: JobId) -> str:
    """Return the client's workunit name of a job.

    >>> job_name("pi", BatchId(3), JobId(41))
    'pi_3_41'
    """
    return f"{app_name}_{batch_id}_{job_id}"


def instance_name(app_name: str, batch_id: BatchId, job_id: JobId, instance_id: InstanceId) -> str:
    """Return the client's result name of an instance.

    >>> instance_name("pi", BatchId(3), JobId(41), InstanceId(77))
    'pi_3_41_77'
    """
    return f"{job_name(app_name, batch_id, job_id)}_{instance_id}"


def instance_id_of(name: str) -> InstanceId | None:
    """Return the instance of a result name; None for names this server never used.

    >>> instance_id_of("pi_3_41_77")
    77
    >>> instance_id_of("fake_0x")
    """
    digits = name.rpartition("_")[2]
    if digits.isascii() and digits.isdigit() and len(digits) <= 18:
        return InstanceId(int(digits))
    return None


def output_file_name(instance: str, position: int) -> str:
    """Return the upload name of an instance's output number `position` (from 0).

    >>> output_file_name("pi_3_41_77", 0)
    'pi_3_41_77_r0'
    """
    return f"{instance}_r{position}"


DRAWS_KEPT = 4096  # maximum of cached draws; a dropped draw is computed again, with the same result


@lru_cache(maxsize=DRAWS_KEPT)
def draw(instance_id: InstanceId) -> float:
    """Return the instance's random number, from 0 to below 1: equal for all requests and workers.

    The id's bits are mixed by two rounds of multiply and xor-shift, so that neighbours in a batch are spread evenly.

    >>> sum(draw(InstanceId(i)) < 0.05 for i in range(100_000)) / 100_000
    0.05065
    """
    mixed = (instance_id * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93) & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 32
    return (mixed >> 11) / float(1 << 53)
