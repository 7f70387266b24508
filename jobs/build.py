"""Puts the services around the life-cycle together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from domain.clock import Clock
from domain.settings import LifecycleSettings, Settings
from jobs.history import HistoryMover
from jobs.outage import OutageWatch
from jobs.ports import EndedWork, Outages, OutputReader, OverdueWork, UnsettledJobs
from jobs.sweeper import Sweeper
from jobs.validator import Validator


@dataclass(frozen=True, slots=True)
class JobsPorts:
    unsettled: UnsettledJobs
    outputs: OutputReader
    overdue: OverdueWork
    outages: Outages
    ended: EndedWork


@dataclass(frozen=True, slots=True)
class JobsServices:
    """Each once per cluster."""

    validator: Validator
    sweeper: Sweeper  # also notes that the project is alive
    mover: HistoryMover


def build(ports: JobsPorts, settings: Callable[[], Settings], clock: Clock) -> JobsServices:
    """The validator, the sweeper and the mover of ended work. `settings()` gives the settings of the moment."""

    def lifecycle() -> LifecycleSettings:
        return settings().lifecycle

    watch = OutageWatch(ports.outages, clock, lifecycle)
    return JobsServices(
        Validator(ports.unsettled, ports.outputs, clock),
        Sweeper(ports.overdue, watch, clock),
        HistoryMover(ports.ended, clock, lambda: settings().storage),
    )
