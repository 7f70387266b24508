"""Makes a project: folders, keys, a database with the schema, and its first settings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from administration.project import Project, create_project
from domain.clock import Clock
from domain.settings import Settings
from runtime.database import database_dsn, release_database
from store.migrate import migrate
from store.postgres import open_store
from transfer.keys import create_keys


async def install(
    data_dir: Path, database_url: str | None, settings: Mapping[str, object], *, who: str, clock: Clock
) -> Project:
    """Create what is missing; safe to repeat. Raises InvalidInputError before anything is made."""
    checked = Settings.from_mapping(settings).as_mapping()
    project = await asyncio.to_thread(create_project, data_dir, database_url)
    await asyncio.to_thread(create_keys, project.keys_dir)
    try:
        dsn = await database_dsn(project)
        await migrate(dsn, now=clock.now())
        store = await open_store(dsn, clock=clock)
        try:
            chosen = {key: checked[key] for key in settings}
            await store.settings.set_settings(chosen, now=clock.now(), who=who, why="installation")
        finally:
            await store.close()
    finally:
        release_database(project)
    return project
