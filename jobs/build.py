"""Builds the services around the life cycle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.settings import LifecycleSettings
from domain.settlement import ALL_JOBS, JobShare
from jobs.comparisons import Comparisons
from jobs.ports import AccelerationNotes, EndedWork, Outages, OverdueWork, TailWork, UnsettledJobs
from jobs.sweeper import HistoryMover, OutageWatch, Sweeper
from jobs.tails import Accelerator, TailCopier
from jobs.validator import Validator


@dataclass(frozen=True, slots=True)
class JobsPorts:
    unsettled: UnsettledJobs
    comparisons: Comparisons
    overdue: OverdueWork
    outages: Outages
    ended: EndedWork
    tails: TailWork
    notes: AccelerationNotes


@dataclass(frozen=True, slots=True)
class JobsServices:
    """The services for jobs. Each runs once per cluster, except the validator: every process settles its share."""

    validator: Validator
    sweeper: Sweeper  # also records that the project is alive
    mover: HistoryMover
    copier: TailCopier
    accelerator: Accelerator


def build(
    ports: JobsPorts,
    catalogue: Callable[[], Catalogue],
    clock: Clock,
    *,
    share: Callable[[], JobShare] = lambda: ALL_JOBS,
) -> JobsServices:
    """Build the services. `catalogue()` returns the current catalogue, `share()` the jobs this process validates."""

    def lifecycle() -> LifecycleSettings:
        return catalogue().settings.lifecycle

    watch = OutageWatch(ports.outages, clock, lifecycle)
    return JobsServices(
        Validator(
            ports.unsettled, ports.comparisons, clock, max_lost=lambda: lifecycle().max_lost_instances, share=share
        ),
        Sweeper(ports.overdue, watch, clock),
        HistoryMover(ports.ended, clock, lambda: catalogue().settings.storage),
        TailCopier(ports.tails, catalogue, clock),
        Accelerator(ports.tails, ports.notes, catalogue, clock),
    )
