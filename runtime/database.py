"""Where is the project's database, and how does one command use it? The embedded one is started and stopped here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from administration.project import Project
from domain.clock import Clock
from store import embedded
from store.postgres import PostgresStore, open_store


async def database_dsn(project: Project) -> str:
    """The project's database; the embedded one is started when it is not running."""
    if project.database_url is not None:
        return project.database_url
    return await asyncio.to_thread(embedded.ensure_running, project.postgres_dir)


def release_database(project: Project) -> None:
    """Stop the embedded database when this process was its last user."""
    if project.database_url is None:
        embedded.release(project.postgres_dir)


@asynccontextmanager
async def open_database(project: Project, clock: Clock) -> AsyncIterator[PostgresStore]:
    """The project's store, for one command."""
    store = await open_store(await database_dsn(project), clock=clock)
    try:
        yield store
    finally:
        await store.close()
        release_database(project)
