"""Describes one host and its owner, and draws the fates of its jobs. Pure.

A job's true size is a property of the job: it is the same on every host and unknown in advance. Whether an instance
fails is drawn when it arrives at a host, from the host's own generator, so that it does not depend on other hosts.
"""

from __future__ import annotations

import hashlib
import math
import random
from dataclasses import dataclass
from statistics import NormalDist

from domain.insight import RecentHost
from domain.quick import quick_dataclass
from domain.units import Instant
from simulator.work_buffer import Buffer


@dataclass(frozen=True, slots=True)
class Gpu:
    """A host's GPUs of one type. Applications reach `efficiency` of their peak speed."""

    type: str
    count: int
    peak_flop_per_s: float
    ram_bytes: float
    driver_version: int
    efficiency: float = 0.1


@dataclass(frozen=True, slots=True)
class Traits:
    """One host.

    `flop_per_s` is its benchmark per CPU; its jobs take `stretch` times as long as that predicts. This project gets
    `share` of its processors. The fractions are of instances. The host makes its first request at `first_call_at`, and
    asks for no work before `asks_from_at` unless a job ends. `labels` are those that operators gave to the host.
    `known` is the record that a project has of the host at the start; other hosts are new to it.
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
    labels: tuple[str, ...] = ()
    asks_from_at: float = -math.inf
    known: RecentHost | None = None

    def flop_per_s_of(self, ncpus: float, gpu_count: float) -> float:
        """Return the true speed of a running job that uses this many CPUs, or GPUs and CPUs."""
        speed = min(ncpus, float(self.ncpus)) * self.flop_per_s
        if gpu_count > 0.0 and self.gpu is not None:
            speed += gpu_count * self.gpu.peak_flop_per_s * self.gpu.efficiency
        return speed / self.stretch


MOST_SIGMAS = 3.0  # job sizes are truncated here, which bounds the size of a batch's smallest job

_NORMAL = NormalDist()


@quick_dataclass(frozen=True, slots=True)
class Fate:
    """An instance's fate. `size` is the ratio of true to estimated work; `fails_after` is a fraction of its length.

    A `lost` job stays on its host and never runs; a `forgotten` job disappears from its host.
    """

    size: float
    lost: bool
    fails: bool
    fails_after: float
    garbage: bool
    forgotten: bool = False


@dataclass(slots=True)
class Fates:
    """Draws the fates of one host's instances in order of arrival. `lost` counts the lost instances.

    `forgets`: instances are forgotten instead of lost.

    >>> Fates(0.0, 0.0, 0.0, 0.0, seed=1, draw=random.Random(1)).of_next("a 1")
    Fate(size=1.0, lost=False, fails=False, fails_after=0.13436424411240122, garbage=False, forgotten=False)
    """

    loss_fraction: float
    error_fraction: float
    garbage_fraction: float
    size_sigma: float
    seed: int
    draw: random.Random
    lost: int = 0
    forgets: bool = False

    def of_next(self, job: str, later_fraction: float = 1.0) -> Fate:
        """Draw a fate. If only `later_fraction` of the host's results take as long as this instance already has, it is
        more likely to be lost (Bayes' theorem).
        """
        after, u, garbage = self.draw.random(), self.draw.random(), self.draw.random()
        in_time = (1.0 - self.loss_fraction) * later_fraction
        loss_fraction = self.loss_fraction / (self.loss_fraction + in_time) if in_time > 0.0 else 1.0
        lost = u < loss_fraction
        forgotten = lost and self.forgets
        stays = lost and not forgotten
        self.lost += stays
        return Fate(
            true_size(job, self.size_sigma, self.seed),
            lost=stays,
            fails=not lost and u < loss_fraction + (1.0 - loss_fraction) * self.error_fraction,
            fails_after=after,
            garbage=garbage < self.garbage_fraction,
            forgotten=forgotten,
        )


def true_size(job: str, sigma: float, seed: int) -> float:
    """Return the ratio of true to estimated work: log-normal, median 1, cut at three sigmas, drawn from the job's name.

    >>> true_size("batch 7", 0.0, 1), 0.5 < true_size("batch 7", 0.2, 1) < 2.0
    (1.0, True)
    """
    if sigma <= 0.0:
        return 1.0
    digest = hashlib.blake2b(f"{seed} {job}".encode(), digest_size=4).digest()
    u = (int.from_bytes(digest) + 0.5) / 2.0**32
    return math.exp(sigma * min(MOST_SIGMAS, max(-MOST_SIGMAS, _NORMAL.inv_cdf(u))))


def digest_of(text: str) -> str:
    """Return a stand-in for the MD5 of an output. All correct outputs of a job have the same one.

    >>> digest_of("pi_1_1") == digest_of("pi_1_1"), len(digest_of("pi_1_1"))
    (True, 32)
    """
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
