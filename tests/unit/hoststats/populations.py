"""Tables of hosts' rows for tests: one call per row, and a ranking by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from domain.hosts import DecayedSums, HostAppVersion
from domain.ranking import HAV_FIELDS
from domain.settings import RankingSettings
from domain.units import AppVersionId, HostId
from hoststats.ports import Table
from tests.builders import NOW


@dataclass(frozen=True, slots=True)
class Line:
    """A row: `n` relaxed samples, each of ln ratio `score`; the host is active by default.

    `met` and `missed` count tight due dates.
    """

    score: float
    consecutive_valid: int
    n: float = 10.0
    active: bool = True
    failed: bool = False
    met: float = 0.0
    missed: float = 0.0

    def hav(self, host_id: int, app_version_id: int = 1) -> HostAppVersion:
        total = self.n * self.score
        sums = DecayedSums(self.n, total, total * self.score, NOW)
        return HostAppVersion(
            HostId(host_id),
            AppVersionId(app_version_id),
            self.consecutive_valid,
            relaxed=sums,
            tight=DecayedSums(self.met + self.missed, 0.0, 0.0, NOW),
            tight_missed_n=self.missed,
        )


def a_table(lines: Sequence[Line], *, app_version_id: int = 1, at: float = NOW) -> Table:
    """The lines as records, host 1 first."""
    rows = [
        (
            host_id, app_version_id, line.consecutive_valid, line.active, line.failed, at,
            line.n, line.n * line.score, line.met + line.missed, 0.0, 0.0, line.missed, 0, 0.0, 0.0, float("nan"),
        )
        for host_id, line in enumerate(lines, start=1)
    ]  # fmt: skip
    return np.array(rows, np.dtype(list(HAV_FIELDS)))


@dataclass(frozen=True, slots=True)
class Expected:
    p: float | None
    x: float | None = None
    y: float | None = None


def by_brute_force(scores: Sequence[float], lines: Sequence[Line], settings: RankingSettings) -> list[Expected]:
    """The definition of docs/formulas.md#percentiles: every row compared with every row of the population."""
    pairs = list(zip(scores, lines, strict=True))
    population = [(s, line.consecutive_valid) for s, line in pairs if line.active and line.n >= settings.min_samples]
    return [_standing(score, line, population, settings) for score, line in pairs]


def _standing(score: float, line: Line, population: Sequence[tuple[float, int]], settings: RankingSettings) -> Expected:
    n = len(population)
    enough = line.n >= settings.min_samples
    slower = sum(other > score for other, _ in population) + 0.5 * sum(other == score for other, _ in population)
    if n < settings.min_rows:
        if line.failed:
            return Expected(0.0)
        return Expected(0.9 if enough and n and slower / n >= 0.75 else 0.5)
    if not enough:
        return Expected(None)
    mine = line.consecutive_valid
    fewer = sum(other < mine for _, other in population) + 0.5 * sum(other == mine for _, other in population)
    y = float("inf") if mine > settings.consecutive_valid_infinite else fewer / n
    return Expected(min(slower / n, y), slower / n, y)
