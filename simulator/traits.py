"""What one computer and its owner are like. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from domain.units import Instant
from simulator.work_buffer import Buffer


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPUs of one type. `efficiency` of its peak is what an application gets."""

    type: str
    count: int
    peak_flop_per_s: float
    ram_bytes: float
    driver_version: int
    efficiency: float = 0.1


@dataclass(frozen=True, slots=True)
class Traits:
    """One computer.

    `flop_per_s` is its benchmark, per CPU; `stretch` how many times longer than that says its jobs really take.
    `share` of its processors is this project's. The fractions are of instances. It calls first at `first_call_at`.
    """

    number: int
    authenticator: str
    ncpus: int
    flop_per_s: float
    stretch: float
    ram_bytes: float
    disk_bytes: float
    platform: str
    os_name: str
    share: float
    buffer: Buffer
    joins_at: Instant
    first_call_at: Instant
    leaves_at: float = math.inf
    gpu: Gpu | None = None
    loss_fraction: float = 0.0
    error_fraction: float = 0.0
    garbage_fraction: float = 0.0
    timezone_s: float = 0.0

    def flop_per_s_of(self, ncpus: float, gpu_count: float) -> float:
        """True speed of a job on so many CPUs, or on so many GPUs and CPUs, while it runs."""
        speed = min(ncpus, float(self.ncpus)) * self.flop_per_s
        if gpu_count > 0.0 and self.gpu is not None:
            speed += gpu_count * self.gpu.peak_flop_per_s * self.gpu.efficiency
        return speed / self.stretch
