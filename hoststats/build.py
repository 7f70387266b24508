"""Puts the host statistics together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from domain.clock import Clock
from domain.settings import RankingSettings
from hoststats.ports import Ports
from hoststats.service import HostStatistics
from hoststats.timer import Timer


@dataclass(frozen=True, slots=True)
class HostStatisticsServices:
    statistics: HostStatistics
    timer: Timer  # in the background process


def build(ports: Ports, settings: Callable[[], RankingSettings], clock: Clock) -> HostStatisticsServices:
    """The run and its timer. `settings()` gives the settings of the moment."""
    statistics = HostStatistics(ports, clock)
    return HostStatisticsServices(statistics, Timer(statistics, ports.generations, clock, settings))
