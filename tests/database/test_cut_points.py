"""Tests that cut points are read as the host statistics wrote them."""

from __future__ import annotations

import asyncpg
import pytest

from domain.apps import CPU
from domain.ranking import CutPoints
from domain.units import AppId, Instant, Seconds
from store.postgres import open_store
from tests import pg

pytestmark = pytest.mark.database

GENERATION = "INSERT INTO percentile_generation (generation, computed_at, complete) VALUES (1, 1000, true)"
POINTER = "INSERT INTO percentile_pointer (generation) VALUES (1)"
CUTS = """
    INSERT INTO cut_points
    VALUES (1, 7, 'cpu', 40, '{0.5,1.5}', '{3,2,1,0,0,0,0,0,0,0,4}', 0.9, 12, 0.1, 0.2, 3600, 900)
"""


async def test_every_field_of_the_present_generation_is_loaded() -> None:
    async with pg.database() as dsn:
        connection = await asyncpg.connect(dsn)
        for statement in (GENERATION, POINTER, CUTS):
            await connection.execute(statement)
        await connection.close()
        store = await open_store(dsn)
        catalogue = await store.applications.load_catalogue()
        await store.close()

    assert catalogue.cut_points == {
        (AppId(7), CPU): CutPoints(
            AppId(7),
            CPU,
            Instant(1000.0),
            40,
            (0.5, 1.5),
            (3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 4),
            score_mean=0.9,
            tight_n=12.0,
            tight_mean=0.1,
            tight_sd=0.2,
            retry_turnaround_s=Seconds(3600.0),
            median_safe_runtime_s=Seconds(900.0),
        )
    }
