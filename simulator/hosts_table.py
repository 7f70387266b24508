"""Computers as a project lists them by CPU model: a CSV file with their number, cores and speed.

The columns are cpu_model, computers, avg_cores_per_computer, gflops_per_core and gflops_per_computer (Whetstone), as
on a project's public page of CPU models. A model stands for as many computers as it has; its average of cores, which
need not be whole, is the mean of what its computers are drawn with.
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
WITHIN_MODEL_SIGMA = 0.1  # spread of ln speed among computers of one model: clock, memory, what else runs

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class HostTable:
    """Models of CPUs: how many computers have each, their cores on average, and flop/s per core."""

    computers: Floats
    cores: Floats
    flop_per_s: Floats

    @property
    def most_cores(self) -> int:
        return max(1, math.ceil(float(self.cores.max())))

    def draw(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], Floats]:
        """Cores and flop/s per core of `count` computers."""
        model = rng.choice(len(self.computers), count, p=self.computers / self.computers.sum())
        cores = np.floor(self.cores[model] + rng.random(count)).astype(np.int64)
        speed = self.flop_per_s[model] * np.exp(rng.normal(0.0, WITHIN_MODEL_SIGMA, count))
        return np.maximum(1, cores), speed


def read_host_table(path: Path) -> HostTable:
    """The table of a file. Raises InvalidInputError naming the row and the column."""
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
