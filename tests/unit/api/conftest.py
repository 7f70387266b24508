"""Fixtures: the API of a project in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from administration.accounts import AccountKeys
from administration.batches import Batches
from administration.project import Project
from administration.results import Results
from administration.simulations.runs import SimulationRuns
from api.files import Files
from api.routes import Api
from domain.settings import Settings
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.administration.access.world import a_world
from transfer.project_files import ProjectFiles


@pytest.fixture
def api(tmp_path: Path) -> Api:
    world = a_world()
    store = as_postgres(world.store)
    assert isinstance(world.store, MemoryStore)
    stored = ProjectFiles(tmp_path)
    files = Files(store.applications, stored, Project(tmp_path), world.clock, max_bytes=1)
    batches = Batches(store, stored, world.clock)
    results = Results(store.views, store.waiting, stored)
    runs = SimulationRuns(store.simulations, world.clock)
    return Api(
        store,
        batches,
        files,
        results,
        runs,
        AccountKeys(b"secret"),
        world.authenticator,
        world.clock,
        settings=Settings,
    )
