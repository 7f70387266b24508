"""Draws hosts by CPU model, from a project's CSV file or from distributions fitted to three projects' lists.

The columns are cpu_model, computers, avg_cores_per_computer, gflops_per_core and gflops_per_computer (Whetstone), as on
a project's public page of CPU models. A model is drawn in proportion to its number of computers; the numbers of cores
drawn for it have its average, which may be fractional, as their mean. `python -m benchmarks.hosts` fitted the
distributions to lists of 29 March 2016: shares of computers by number of cores, and for each of these groups a Weibull
distribution of the speed per core in Gflop/s. docs/formulas.md reports the quality of the fits.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from domain.errors import InvalidInputError

COLUMNS = ("computers", "avg_cores_per_computer", "gflops_per_core")
WITHIN_MODEL_SIGMA = 0.1  # sigma of ln speed among computers of one model: clock, memory, other load

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class HostTable:
    """CPU models with their number of computers, average number of cores, and flop/s per core."""

    computers: Floats
    cores: Floats
    flop_per_s: Floats

    @property
    def most_cores(self) -> int:
        return max(1, math.ceil(float(self.cores.max())))

    def draw(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], Floats]:
        """Return cores and flop/s per core of `count` computers."""
        model = rng.choice(len(self.computers), count, p=self.computers / self.computers.sum())
        cores = np.floor(self.cores[model] + rng.random(count)).astype(np.int64)
        speed = self.flop_per_s[model] * np.exp(rng.normal(0.0, WITHIN_MODEL_SIGMA, count))
        return np.maximum(1, cores), speed


def read_host_table(path: Path) -> HostTable:
    """Return the table in a file. Raises InvalidInputError, which names the row and the column."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise InvalidInputError(str(path), f"the columns {', '.join(COLUMNS)}", rows.fieldnames)
            values = [
                [_cell(row, name, f"{path} row {number}") for name in COLUMNS] for number, row in enumerate(rows, 1)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(str(path), "a readable CSV file of computers", str(error)) from error
    if not values:
        raise InvalidInputError(str(path), "at least one row", 0)
    table = np.array(values)
    return HostTable(table[:, 0], table[:, 1], table[:, 2] * 1e9)


def _cell(row: dict[str, str], name: str, where: str) -> float:
    text = row[name]
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise InvalidInputError(f"{where}, {name}", "a number above 0", text)
    return value


CORES = (1, 2, 3, 4, 6, 8, 12, 16, 24)


@dataclass(frozen=True, slots=True)
class FittedHosts:
    """For each group of CORES: its share of computers, and the shape and scale of its speeds."""

    shares: tuple[float, ...]
    shapes: tuple[float, ...]
    gflops: tuple[float, ...]

    @property
    def most_cores(self) -> int:
        return max(cores for cores, share in zip(CORES, self.shares, strict=True) if share > 0.0)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], Floats]:
        """Return cores and flop/s per core of `count` computers."""
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
    "lhc": FittedHosts(  # too few models with 1, 3 and 24 cores to fit; merged with their neighbours
        (0.0, 0.1130, 0.0, 0.4736, 0.0319, 0.3199, 0.0419, 0.0198, 0.0),
        (4.375, 4.375, 5.206, 5.206, 10.274, 5.208, 6.779, 6.417, 6.417),
        (2.786, 2.786, 3.597, 3.597, 3.101, 3.945, 3.474, 3.232, 3.232),
    ),
}
