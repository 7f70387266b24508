"""The ranking of hosts and the work that nobody can run as the API tells of them."""

from __future__ import annotations

from typing import TypedDict

from api.shapes.work import Json


class RankedPartShown(TypedDict):
    """What a ranking found of an app on a kind of processor. `small_population`: the bootstrap rule holds."""

    app_id: int
    app_name: str
    processor_type: str
    rows: int
    population: int
    ranked: int
    newcomers: int
    small_population: bool
    median_score: float | None
    median_safe_runtime_s: float | None
    retry_turnaround_s: float | None


class RankingRunShown(TypedDict):
    """A ranking of hosts. `full`: with the percentiles of every row, not the cut points alone."""

    generation: int
    full: bool
    started_at: float
    seconds: float
    apps: int
    rows: int
    ranked: int
    parts: list[RankedPartShown]


class RankingShown(TypedDict):
    """The last ranking of hosts; None before the first."""

    run: RankingRunShown | None


class PercentileShown(TypedDict):
    """Where a host stands with an app version: `p` = min(x, y); `x` and `y` None by the bootstrap rule."""

    app_version_id: int
    p: float
    x: float | None
    y: float | None


class PercentilesShown(TypedDict):
    percentiles: list[PercentileShown]


class SimulationShown(TypedDict):
    """What was asked for in the background: `running`, `done`, `failed`, `cancelled`, or `lost` with its process.

    `result` is there once it is done, `failure` says why it is not.
    """

    simulation_id: int
    asked_at: float
    asked_by: str
    asked: Json
    state: str
    done_fraction: float
    result: Json | None
    failure: str | None


class RefusedShown(TypedDict):
    """A kind of slot of a batch that every host refused that called lately, by all workers together. Each slot and each
    host is counted once; `codes` count hosts by the latest reason of a worker."""

    batch_id: int
    job_class_id: int
    urgent: bool
    waiting: int
    hosts: int
    codes: dict[str, int]
    since_at: float
    rotated_out: bool
    advice: str


class NobodyShown(TypedDict):
    refused: list[RefusedShown]
