"""Jobs and instances: states, values for the feeder and the scheduler, names, and random draws. Pure."""

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
    """The state of an instance. lifecycle/states.py defines the transitions."""

    UNSENT = "unsent"
    IN_PROGRESS = "in_progress"
    REPORTED = "reported"  # the client reported success; not compared yet
    INCONCLUSIVE = "inconclusive"  # compared without consensus
    VALID = "valid"
    INVALID = "invalid"
    FAILED = "failed"  # an error on the host, or missing output
    TIMED_OUT = "timed_out"  # not reported within due date and grace period; may still be reported
    ABORTED = "aborted"  # by the user or the server, or because the host left: not the job's fault
    CANCELLED = "cancelled"  # no longer needed and never sent
    TOO_LATE = "too_late"  # returned after the job had ended without a canonical result


class JobState(StrEnum):
    OPEN = "open"
    VALID = "valid"  # has a canonical instance
    FAILED = "failed"  # given up; `failure` has the reason
    CANCELLED = "cancelled"  # its batch was aborted


class ValidatorKind(StrEnum):
    BITWISE = "bitwise"
    TOLERANCE = "tolerance"  # numbers in JSON or CSV must agree within a relative tolerance
    ACCEPT = "accept"


@dataclass(frozen=True, slots=True)
class Input:
    """An input file of a job. Clients identify the file by `name`."""

    name: str
    open_name: str
    nbytes: int
    md5: str
    sticky: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """An output file of a job, with its name in the slot directory and its maximum size."""

    name: str
    max_bytes: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class JobClass:
    """The properties that jobs of a batch have in common. A request makes its decisions once per class.

    Sizes are per instance. `delay_bound_s` is the maximum time from sending an instance to its report.
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
    inputs: tuple[Input, ...] = ()  # files read by every job of the class
    outputs: tuple[Output, ...] = ()


@quick_dataclass(frozen=True, slots=True)
class Ready:
    """An unsent instance in the feeder, with the fields needed to order and identify it."""

    instance_id: InstanceId
    job_id: JobId
    batch_id: BatchId
    job_class_id: JobClassId
    retries: int = 0
    sibling_returned: bool = False  # another instance was returned, so this one completes a quorum
    hr_class: int = 0
    copies: int = 0  # number of agreeing results required by an earlier dispatch; 0 = the quorum

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
    est_runtime_s: Seconds  # R at dispatch, including availability
    tight: bool
    no_longer_needed: bool = False  # its job has ended
    median_turnaround_s: Seconds | None = None  # from results of its batch, or of its app scaled by size
    gated: bool = False  # its host had to pass a percentile gate
    ncpus: float = 1.0  # occupied by its job


@quick_dataclass(frozen=True, slots=True)
class FreshRange:
    """Selects the next `limit` first instances of a (batch, shard) after `after_instance_id`."""

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
    """Return a job's workunit name, as clients see it.

    >>> job_name("pi", BatchId(3), JobId(41))
    'pi_3_41'
    """
    return f"{app_name}_{batch_id}_{job_id}"


def instance_name(app_name: str, batch_id: BatchId, job_id: JobId, instance_id: InstanceId) -> str:
    """Return an instance's result name, as clients see it.

    >>> instance_name("pi", BatchId(3), JobId(41), InstanceId(77))
    'pi_3_41_77'
    """
    return f"{job_name(app_name, batch_id, job_id)}_{instance_id}"


def instance_id_of(name: str) -> InstanceId | None:
    """Return the instance id in a result name; None if this server cannot have issued the name.

    >>> instance_id_of("pi_3_41_77")
    77
    >>> instance_id_of("fake_0x")
    """
    digits = name.rpartition("_")[2]
    if digits.isascii() and digits.isdigit() and len(digits) <= 18:
        return InstanceId(int(digits))
    return None


def output_file_name(instance: str, position: int) -> str:
    """Return the upload name of an instance's output number `position`, counted from 0.

    >>> output_file_name("pi_3_41_77", 0)
    'pi_3_41_77_r0'
    """
    return f"{instance}_r{position}"


DRAWS_KEPT = 4096  # size of the cache; a discarded draw is computed again, with the same result


@lru_cache(maxsize=DRAWS_KEPT)
def draw(instance_id: InstanceId) -> float:
    """Return the instance's random number in [0, 1), which is the same for all requests and workers.

    Two rounds of multiply and xor-shift mix the id's bits, so that numbers within a batch are evenly spread.

    >>> sum(draw(InstanceId(i)) < 0.05 for i in range(100_000)) / 100_000
    0.05065
    """
    mixed = (instance_id * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93) & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 32
    return (mixed >> 11) / float(1 << 53)
