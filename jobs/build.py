"""Puts the services around the life-cycle together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from domain.clock import Clock
from domain.settings import LifecycleSettings, Settings
from jobs.outage import OutageWatch
from jobs.ports import Outages, OutputReader, OverdueWork, UnsettledJobs
from jobs.sweeper import Sweeper
from jobs.validator import Validator


@dataclass(frozen=True, slots=True)
class JobsPorts:
    unsettled: UnsettledJobs
    outputs: OutputReader
    overdue: OverdueWork
    outages: Outages


@dataclass(frozen=True, slots=True)
class JobsServices:
    """Each once per cluster."""

    validator: Validator
    sweeper: Sweeper  # also notes that the project is alive


def build(ports: JobsPorts, settings: Callable[[], Settings], clock: Clock) -> JobsServices:
    """The validator and the sweeper. `settings()` gives the settings of the moment."""

    def lifecycle() -> LifecycleSettings:
        return settings().lifecycle

    watch = OutageWatch(ports.outages, clock, lifecycle)
    return JobsServices(
        Validator(ports.unsettled, ports.outputs, clock),
        Sweeper(ports.overdue, watch, clock),
    )
