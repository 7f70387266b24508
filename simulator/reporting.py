"""What a client says of itself and of the tasks that are over. Pure. PROTOCOL 3 and 4."""

from __future__ import annotations

from domain.units import Seconds
from simulator.fate import digest_of
from simulator.processors import Task
from simulator.traits import Traits
from wire.messages import (
    STATE_ABORTED,
    STATE_COMPUTE_ERROR,
    STATE_UPLOADED,
    HostInfo,
    ReportedFile,
    ReportedResult,
)

EXIT_FAILED = 1
EXIT_LATE = 200  # the deadline passed before it started
EXIT_ABORTED = 202  # by the server
OUTPUT_BYTES = 100.0


def host_info(traits: Traits) -> HostInfo:
    return HostInfo(
        domain_name=f"host-{traits.number}",
        host_cpid=f"{traits.number:032x}",
        timezone_s=int(traits.timezone_s),
        ncpus=traits.ncpus,
        cpu_vendor="simulated",
        cpu_model="simulated",
        flop_per_s=traits.flop_per_s,
        iop_per_s=traits.flop_per_s,
        ram_bytes=traits.ram_bytes,
        disk_total_bytes=2.0 * traits.disk_bytes,
        disk_free_bytes=traits.disk_bytes,
        os_name=traits.os_name,
        os_version="simulated",
    )


def success(task: Task) -> ReportedResult:
    digest = digest_of(task.name if task.garbage else task.job)
    return ReportedResult(
        task.name,
        STATE_UPLOADED,
        0,
        elapsed_s=Seconds(task.done_s),
        cpu_s=Seconds(task.done_s * max(1.0, task.ncpus)),
        version_num=task.version_num,
        plan_class=task.plan_class,
        files=tuple([ReportedFile(name, OUTPUT_BYTES, digest) for name in task.files]),
    )


def failed(task: Task) -> ReportedResult:
    return ReportedResult(
        task.name,
        STATE_COMPUTE_ERROR,
        EXIT_FAILED,
        elapsed_s=Seconds(task.done_s),
        cpu_s=Seconds(task.done_s),
        version_num=task.version_num,
        plan_class=task.plan_class,
        stderr="the application failed",
    )


def aborted(task: Task, exit_status: int) -> ReportedResult:
    return ReportedResult(
        task.name,
        STATE_ABORTED,
        exit_status,
        elapsed_s=Seconds(task.done_s),
        version_num=task.version_num,
        plan_class=task.plan_class,
    )
