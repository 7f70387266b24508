"""What a job that was sent means on one computer: how long it takes there, and what will become of it. Pure."""

from __future__ import annotations

from simulator.fate import Fate
from simulator.processors import Task
from simulator.traits import Traits
from wire.messages import AppVersionElement, ResultElement, WorkunitElement


def task_of(
    result: ResultElement, workunit: WorkunitElement, version: AppVersionElement, *, traits: Traits, fate: Fate
) -> Task:
    """The job as the client has it: its true length is of its fate, its estimate of the speed the server told.
    A job of 1e9 flop takes a second on 1 Gflop/s; told 2 Gflop/s, its client takes it for half a second.
    """
    gpu_count = version.coproc_count if version.coproc_type else 0.0
    true_s = workunit.fpops_est * fate.size / traits.flop_per_s_of(version.avg_ncpus, gpu_count)
    return Task(
        result.name,
        result.report_deadline,
        left_s=true_s * fate.fails_after if fate.fails else true_s,
        true_s=true_s,
        estimate_s=workunit.fpops_est / version.flop_per_s,
        ncpus=min(version.avg_ncpus, float(traits.ncpus)),
        gpu_count=gpu_count,
        version_num=result.version_num,
        plan_class=result.plan_class,
        files=tuple([ref.file_name for ref in result.file_refs]),
        job=result.wu_name,
        lost=fate.lost,
        fails=fate.fails,
        garbage=fate.garbage,
    )
