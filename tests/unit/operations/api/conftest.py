"""The API of a project in memory."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from domain.settings import Settings
from operations.accounts import AccountKeys
from operations.api.files import Files
from operations.api.routes import Api
from operations.batches import Batches
from operations.project import Project
from operations.results import Results
from operations.simulations.runs import SimulationRuns
from store.memory import MemoryStore
from store.postgres import PostgresStore
from tests.unit.operations.access.world import a_world
from transfer.download_folder import DownloadFolder
from transfer.upload_folder import UploadFolder


@pytest.fixture
def api(tmp_path: Path) -> Api:
    world = a_world()
    store = cast(PostgresStore, world.store)  # the same ports
    assert isinstance(world.store, MemoryStore)
    downloads = DownloadFolder(tmp_path, max_bytes=1)
    files = Files(store.applications, downloads, Project(tmp_path), world.clock, max_bytes=1)
    batches = Batches(store, downloads, world.clock)
    results = Results(store.views, store.waiting, UploadFolder(tmp_path))
    runs = SimulationRuns(store.simulations, world.clock)
    return Api(store, batches, files, results, runs, AccountKeys(b"secret"), world.door, world.clock, settings=Settings)
