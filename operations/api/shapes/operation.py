"""The ranking of hosts and the work that nobody can run as the API tells of them."""

from __future__ import annotations

from typing import TypedDict

from operations.api.shapes.work import Json


class RankingShown(TypedDict):
    """The last ranking of hosts with what it found of each (app, processor type)."""

    run: Json | None


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
