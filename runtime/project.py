"""Creates a project (directories, keys, database schema, initial settings) and opens its database for commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from administration.project import Project, create_project
from domain.clock import Clock
from domain.settings import Settings
from store import embedded
from store.migrate import migrate
from store.postgres import PostgresStore, open_store
from transfer.keys import create_keys


async def database_dsn(project: Project) -> str:
    """Return the DSN of the project's database, starting the embedded database if necessary."""
    if project.database_url is not None:
        return project.database_url
    return await asyncio.to_thread(embedded.ensure_running, project.postgres_dir)


def release_database(project: Project) -> None:
    """Stop the embedded database if this process was its last user."""
    if project.database_url is None:
        embedded.release(project.postgres_dir)


@asynccontextmanager
async def open_database(project: Project, clock: Clock) -> AsyncIterator[PostgresStore]:
    """Open the project's store for one command."""
    store = await open_store(await database_dsn(project), clock=clock)
    try:
        yield store
    finally:
        await store.close()
        release_database(project)


async def install(
    data_dir: Path, database_url: str | None, settings: Mapping[str, object], *, who: str, clock: Clock
) -> Project:
    """Create what does not exist; safe to repeat. Raises InvalidInputError before anything is created."""
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
