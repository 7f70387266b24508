"""Computers of volunteers as laws instead of tables, so that a simulation needs no files.

Fitted to three projects' public lists of CPU models of 29 March 2016 by `python -m benchmarks.hosts`: shares of
computers by number of cores, and for each of these groups a Weibull law of the speed per core in Gflop/s (Whetstone).
How good the fits are stands in docs/formulas.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.hosts_table import Floats

CORES = (1, 2, 3, 4, 6, 8, 12, 16, 24)


@dataclass(frozen=True, slots=True)
class FittedHosts:
    """Of each group of CORES: its share of computers, and shape and scale of its speeds."""

    shares: tuple[float, ...]
    shapes: tuple[float, ...]
    gflops: tuple[float, ...]

    @property
    def most_cores(self) -> int:
        return max(cores for cores, share in zip(CORES, self.shares, strict=True) if share > 0.0)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], Floats]:
        """Cores and flop/s per core of `count` computers."""
        p = np.array(self.shares)
        group = rng.choice(len(CORES), count, p=p / p.sum())
        speed = rng.weibull(np.array(self.shapes)[group]) * np.array(self.gflops)[group]
        return np.array(CORES, dtype=np.int64)[group], np.maximum(0.05, speed) * 1e9


FITTED = {
    "seti": FittedHosts(
        (0.3013, 0.4247, 0.0189, 0.1656, 0.0182, 0.0625, 0.0053, 0.0022, 0.0014),
        (3.074, 3.343, 2.688, 3.662, 5.111, 4.661, 5.857, 4.805, 4.058),
        (1.447, 2.098, 1.701, 2.848, 2.592, 3.386, 3.510, 2.972, 2.748),
    ),
    "einstein": FittedHosts(
        (0.0830, 0.2042, 0.0459, 0.4180, 0.0349, 0.1582, 0.0268, 0.0101, 0.0189),
        (2.427, 4.978, 8.357, 3.461, 7.404, 4.836, 7.629, 6.447, 17.769),
        (2.428, 3.424, 3.784, 3.458, 3.445, 3.835, 3.850, 3.639, 3.710),
    ),
    "lhc": FittedHosts(  # too few models of 1, 3 and 24 cores to fit: counted with their neighbours
        (0.0, 0.1130, 0.0, 0.4736, 0.0319, 0.3199, 0.0419, 0.0198, 0.0),
        (4.375, 4.375, 5.206, 5.206, 10.274, 5.208, 6.779, 6.417, 6.417),
        (2.786, 2.786, 3.597, 3.597, 3.101, 3.945, 3.474, 3.232, 3.232),
    ),
}
