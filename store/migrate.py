"""Migrates a database to the schema of the installed version.

A migration is a file `store/migrations/NNNN_PHASE_name.sql`. Its phase states which code is compatible with it:

- `pre`: both old and new code. Apply it while old nodes run; the new code requires it.
- `post`: only the new code, which also runs without it. Apply it once every node runs the new code.
- `stop`: the old code cannot run with it, the new code cannot run without it. Apply it while every node is stopped.

To add a migration:

1. Take the next number and the right phase. Never change a migration that may already have been applied to a database.
2. A `pre` migration must not depend on a `post` migration with a smaller number, unless a `stop` is between them,
because `--pre-only` applies the `pre` migration first.
3. Lock only one busy table per migration. Nodes lock tables in any order, so a migration that locks two of them can
deadlock with a node.
4. Build an index on a busy table in a file `NNNN_PHASE_concurrently_name.sql`. It contains only CREATE INDEX
   CONCURRENTLY IF NOT EXISTS and runs outside a transaction, while nodes write. It is recorded when all its indexes are
   valid. The next attempt drops an invalid index left by an interrupted build, and keeps valid indexes.
5. Add a CHECK in two migrations: first NOT VALID, then change the rows that break it and VALIDATE CONSTRAINT, which
   does not block writes. A `pre` migration must accept every row that old nodes write.
6. Run `make reference`.

Nodes use most tables all the time, and all readers queue behind a migration that waits for a table. So a migration
waits for at most 2 s, then leaves the queue and is tried again later.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

import asyncpg

from domain.errors import MusterError
from domain.units import Instant
from store.pool import connect_patiently
from store.queries import load

FOLDER: Traversable = files("store").joinpath("migrations")
FILE_NAME = r"(\d{4})_(pre|post|stop)_[a-z0-9_]+\.sql"
CONCURRENT_NAME = r"\d{4}_[a-z]+_concurrently_[a-z0-9_]+\.sql"
CONCURRENT_INDEX = r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS ([a-z0-9_]+) ON "
LOCK_WAIT_MS = 2000  # lock wait of a migration, because other statements queue behind it
BUILD_WAIT_MS = 600_000  # a concurrent build's wait for older transactions; no statement queues behind it

Busy = Callable[[str], Awaitable[None]]  # receives the reason for waiting; the migration is tried again when it returns


class SchemaVersionError(MusterError):
    """The database's schema does not match this code."""


class NodesRunningError(MusterError):
    """A migration requires every node to be stopped."""


class InUseError(MusterError):
    """A transaction holds a lock on a table that a migration changes."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    phase: str  # pre, post or stop
    name: str  # file name
    folder: Traversable = FOLDER

    @property
    def concurrent(self) -> bool:
        """Return whether its statements run one by one, outside a transaction."""
        return re.fullmatch(CONCURRENT_NAME, self.name) is not None

    def sql(self) -> str:
        return self.folder.joinpath(self.name).read_text(encoding="utf-8")


def migrations(folder: Traversable = FOLDER) -> list[Migration]:
    """Return all migrations in a directory, by version."""
    matches = [re.fullmatch(FILE_NAME, entry.name) for entry in folder.iterdir()]
    found = [Migration(int(match[1]), match[2], match[0], folder) for match in matches if match]
    return sorted(found, key=lambda migration: migration.version)


def statements(sql: str) -> list[str]:
    """Return the statements of a concurrent migration without comment lines. A statement must end with a semicolon.

    >>> statements("-- Both; of one table.\\nCREATE INDEX a ON t (x)\\nWHERE x > 0;\\nCREATE INDEX b ON t (y);\\n")
    ['CREATE INDEX a ON t (x)\\nWHERE x > 0', 'CREATE INDEX b ON t (y)']
    """
    bare = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
    return [statement.strip() for statement in bare.split(";") if statement.strip()]


def pending(known: Sequence[Migration], done: Collection[int], *, pre_only: bool) -> list[Migration]:
    """Return the migrations to apply, in order, to a database with the versions `done`. Pure.

    `pre_only` selects migrations compatible with old nodes. Raises NodesRunningError if a `stop` migration is missing.

    >>> known = [Migration(1, "pre", "0001_pre_a.sql"), Migration(2, "post", "0002_post_b.sql")]
    >>> [migration.version for migration in pending(known, {1}, pre_only=False)]
    [2]
    >>> pending(known, {1}, pre_only=True)
    []
    """
    missing = [migration for migration in known if migration.version not in done]
    if not pre_only:
        return missing
    stops = [migration.name for migration in missing if migration.phase == "stop"]
    if stops:
        raise NodesRunningError(
            f"{', '.join(stops)} cannot be applied while nodes run: stop every node, then run `muster migrate` "
            "without --pre-only; nothing has been changed"
        )
    return [migration for migration in missing if migration.phase == "pre"]


def check_done(known: Sequence[Migration], done: Mapping[int, str]) -> None:
    """Raise SchemaVersionError, with the command to run, unless this code can run with the migrations `done`. Pure.

    The code requires every migration except `post` migrations. It can run with newer migrations if they are `pre`.
    `done` maps versions to names.

    >>> check_done([Migration(1, "pre", "0001_pre_a.sql")], {1: "0001_pre_a.sql", 2: "0002_pre_b.sql"})
    """
    if not done:
        raise SchemaVersionError("the database has no schema: run `muster migrate`")
    _refuse_foreign(known, done)
    missing = [migration for migration in known if migration.version not in done and migration.phase != "post"]
    if not missing:
        return
    lacks = ", ".join(migration.name for migration in missing)
    if any(migration.phase == "stop" for migration in missing):
        raise SchemaVersionError(f"the database lacks {lacks}: stop every node, then run `muster migrate`")
    raise SchemaVersionError(
        f"the database lacks {lacks}: run `muster migrate`, or `muster migrate --pre-only` while older nodes serve"
    )


async def give_up(why: str) -> None:
    """Raise InUseError instead of waiting for tables in use."""
    raise InUseError(f"{why}; run `muster migrate`")


async def migrate(
    dsn: str, *, now: Instant, pre_only: bool = False, busy: Busy = give_up, folder: Traversable = FOLDER
) -> list[str]:
    """Apply the missing migrations in a directory to a database and return their names. Safe to repeat.

    `pre_only` skips the migrations that are incompatible with old nodes; an empty database gets all migrations. Before
    any change, raises NodesRunningError if a node runs and a migration requires every node to be stopped, and
    SchemaVersionError if this code is too old. `busy` waits while a transaction holds a lock on a table; migrations
    that were already applied stay applied.
    """
    connection = await connect_patiently(dsn)
    try:
        while not await connection.fetchval(load("lock_migrations")):
            pass  # poll, because a session that waits in the server would prevent a concurrent build from finishing
        known, done = migrations(folder), await _done(connection)
        if done:
            _refuse_foreign(known, done)
        wanted = pending(known, done.keys(), pre_only=pre_only and bool(done))
        await _refuse_running(connection, wanted if done else [])
        for migration in wanted:
            while not await _apply(connection, migration, now):
                await busy(f"{migration.name} has to wait: {await _in_the_way(connection)}")
        return [migration.name for migration in wanted]
    finally:
        await connection.close()


async def check_version(connection: asyncpg.Connection[asyncpg.Record], folder: Traversable = FOLDER) -> None:
    """Raise SchemaVersionError unless this code can run on the database."""
    check_done(migrations(folder), await _done(connection))


async def _apply(connection: asyncpg.Connection[asyncpg.Record], migration: Migration, now: Instant) -> bool:
    """Apply a migration. Return False, for a later attempt, if a transaction locks a table that it changes."""
    try:
        if migration.concurrent:
            await _build(connection, migration)
            await _note(connection, migration, now)
            return True
        async with connection.transaction():
            await connection.execute(load("limit_lock_wait"), str(LOCK_WAIT_MS))
            await connection.execute(migration.sql())
            await _note(connection, migration, now)
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        return False
    return True


async def _build(connection: asyncpg.Connection[asyncpg.Record], migration: Migration) -> None:
    """Build the missing indexes after dropping invalid indexes left by an interrupted build."""
    await connection.execute(load("limit_build_wait"), str(BUILD_WAIT_MS))
    for drop in await connection.fetch(load("drops_of_broken_indexes"), re.findall(CONCURRENT_INDEX, migration.sql())):
        await connection.execute(drop["statement"])
    for statement in statements(migration.sql()):
        await connection.execute(statement)


async def _in_the_way(connection: asyncpg.Connection[asyncpg.Record]) -> str:
    """Describe the session with the oldest transaction, which probably holds the lock."""
    oldest = await connection.fetchrow(load("oldest_transaction"))
    if oldest is None:
        return "a table it changes was in use"
    who = f"{oldest['application_name'] or 'a client without a name'} (process {oldest['pid']})"
    return (
        f"a table it changes is in use; the oldest transaction belongs to {who}, since {oldest['xact_start']:%F %T} UTC"
    )


async def _refuse_running(connection: asyncpg.Connection[asyncpg.Record], wanted: Sequence[Migration]) -> None:
    """Raise NodesRunningError if a node is connected and a wanted migration requires every node to be stopped."""
    stops = [migration.name for migration in wanted if migration.phase == "stop"]
    sessions = await connection.fetchval(load("count_sessions")) if stops else 0
    if sessions:
        raise NodesRunningError(
            f"{', '.join(stops)} cannot be applied while nodes run, and {sessions} of their connections are open: "
            "stop every node, then run `muster migrate` again; nothing has been changed"
        )


async def _done(connection: asyncpg.Connection[asyncpg.Record]) -> dict[int, str]:
    """Return the names of the migrations applied to a database, by version. Empty for an empty database."""
    if await connection.fetchval(load("is_fresh")):
        return {}
    return {row["version"]: row["name"] for row in await connection.fetch(load("schema_version"))}


async def _note(connection: asyncpg.Connection[asyncpg.Record], migration: Migration, now: Instant) -> None:
    await connection.execute(load("insert_schema_version"), migration.version, migration.name, now)


def _refuse_foreign(known: Sequence[Migration], done: Mapping[int, str]) -> None:
    """Raise SchemaVersionError if the database has another series of migrations, or requires newer code."""
    for migration in known:
        name = done.get(migration.version, migration.name)
        if name != migration.name:
            raise SchemaVersionError(
                f"the database was created by an unreleased version ({name} instead of {migration.name}), and it "
                "cannot be upgraded. Run `muster init` in a new directory or on an empty database; nothing was changed"
            )
    newest = max(migration.version for migration in known)
    for version, name in done.items():
        phase = re.fullmatch(FILE_NAME, name)
        if version > newest and (phase is None or phase[2] != "pre"):
            known_to = f"this code knows versions up to {newest} and cannot run with {name}"
            raise SchemaVersionError(f"the database has schema version {max(done)}, {known_to}")
