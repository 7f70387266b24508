"""How does a database come to this version's schema? A fresh one by schema.sql, an older one step by step.

A migration is a file NNNN_PHASE_name.sql. The phase says which code it gets along with:

- `pre`: the code before it and the code after it. It may be run while the old code serves; the new code needs it.
- `post`: only the code after it, which does without it too. It is run when every node has the new code.
- `stop`: the code before it cannot run with it, nor the code after it without it. It needs every node stopped.

After the last `stop` a `pre` must not build on a `post` of a smaller number: it may be run first.

Most of them change a table that nodes use all the time. Whoever waits to do that keeps everybody else from reading it,
so a migration waits for 2 s at most, gives its place in the queue up and tries again later.

An index of such a table is built by a file NNNN_PHASE_concurrently_name.sql, outside a transaction, while nodes go on
writing. Every statement in it is CREATE INDEX CONCURRENTLY IF NOT EXISTS. It is noted when all of them are done. What
was broken off leaves an invalid index, which is dropped before the next try; a valid one is kept.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import asyncpg

from domain.errors import MusterError
from domain.units import Instant
from store.pool import connect_patiently
from store.queries import load

FILE_NAME = r"(\d{4})_(pre|post|stop)_[a-z0-9_]+\.sql"
CONCURRENT_NAME = r"\d{4}_[a-z]+_concurrently_[a-z0-9_]+\.sql"
CONCURRENT_INDEX = r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS ([a-z0-9_]+) ON "
LOCK_WAIT_MS = 2000  # of a migration, while those behind it in the queue wait as well
BUILD_WAIT_MS = 600_000  # of a concurrent one, for transactions older than it is, while nobody waits behind it

Busy = Callable[[str], Awaitable[None]]  # is told what is in the way; tried again when it returns


class SchemaVersionError(MusterError):
    """The database's schema is of another version."""


class NodesRunningError(MusterError):
    """A migration needs every node stopped."""


class InUseError(MusterError):
    """Somebody keeps a table that a migration changes."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    phase: str  # pre, post or stop
    name: str  # of its file

    @property
    def concurrent(self) -> bool:
        """Whether its statements run one by one, outside a transaction."""
        return re.fullmatch(CONCURRENT_NAME, self.name) is not None

    def sql(self) -> str:
        return files("store").joinpath("migrations", self.name).read_text(encoding="utf-8")


def migrations() -> list[Migration]:
    """Every migration, in order."""
    found = []
    for entry in files("store").joinpath("migrations").iterdir():
        match = re.fullmatch(FILE_NAME, entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.name))
    return sorted(found, key=lambda migration: migration.version)


def statements(sql: str) -> list[str]:
    """The statements of a concurrent migration, without whole lines of comment; semicolons stand behind them alone.

    >>> statements("-- Both; of one table.\\nCREATE INDEX a ON t (x)\\nWHERE x > 0;\\nCREATE INDEX b ON t (y);\\n")
    ['CREATE INDEX a ON t (x)\\nWHERE x > 0', 'CREATE INDEX b ON t (y)']
    """
    bare = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
    return [statement.strip() for statement in bare.split(";") if statement.strip()]


def schema() -> str:
    """The whole schema as a fresh database gets it."""
    return files("store").joinpath("schema.sql").read_text(encoding="utf-8")


def pending(known: Sequence[Migration], done: Collection[int], *, pre_only: bool) -> list[Migration]:
    """What to apply to a database that has had the versions `done`, in order. `pre_only`: what old code bears. Pure.

    Raises NodesRunningError when `pre_only` is not enough for this version's code to run.

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
    """Can this version's code run on a database that has had the migrations `done` (version: name)? Pure.

    It needs every migration but the `post` ones, and bears newer ones that are `pre`. Raises SchemaVersionError,
    which says what to run.

    >>> check_done([Migration(1, "pre", "0001_pre_a.sql")], {1: "0001_pre_a.sql", 2: "0002_pre_b.sql"})
    """
    if not done:
        raise SchemaVersionError("the database lacks everything: run `muster migrate`")
    _refuse_newer(known, done)
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
    """What to do about a table that is in use when nobody can wait. Raises InUseError."""
    raise InUseError(f"{why}; run `muster migrate`")


async def migrate(dsn: str, *, now: Instant, pre_only: bool = False, busy: Busy = give_up) -> list[str]:
    """Bring a database to this version; returns the names of what was applied. Safe to repeat.

    `pre_only` leaves out what needs the old code gone. Raises, before anything is changed, NodesRunningError for
    a migration that needs every node stopped while one runs, and SchemaVersionError where this code is too old.
    `busy` is asked to wait while somebody keeps a table for long; what was applied until then stays.
    """
    connection = await connect_patiently(dsn)
    try:
        while not await connection.fetchval(load("lock_migrations")):
            pass  # asked again and again: one that waited on the server would keep a concurrent build from its end
        if await connection.fetchval(load("is_fresh")):
            return await _install(connection, now)
        return await _upgrade(connection, now, busy, pre_only=pre_only)
    finally:
        await connection.close()


async def check_version(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Raises SchemaVersionError unless this version's code can run on the database."""
    check_done(migrations(), await _done(connection))


async def _install(connection: asyncpg.Connection[asyncpg.Record], now: Instant) -> list[str]:
    async with connection.transaction():
        await connection.execute(schema())
        for migration in migrations():
            await _note(connection, migration, now)
    return ["schema.sql"]


async def _upgrade(
    connection: asyncpg.Connection[asyncpg.Record], now: Instant, busy: Busy, *, pre_only: bool
) -> list[str]:
    known, done = migrations(), await _done(connection)
    _refuse_newer(known, done)
    wanted = pending(known, done.keys(), pre_only=pre_only)
    await _refuse_running(connection, wanted)
    for migration in wanted:
        while not await _apply(connection, migration, now):
            await busy(f"{migration.name} has to wait: {await _in_the_way(connection)}")
    return [migration.name for migration in wanted]


async def _apply(connection: asyncpg.Connection[asyncpg.Record], migration: Migration, now: Instant) -> bool:
    """Whether it could be applied; False: somebody keeps a table that it changes, and it has to be tried again."""
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
    """Build the indexes that are not there; those that a broken-off build has left behind are built anew."""
    await connection.execute(load("limit_build_wait"), str(BUILD_WAIT_MS))
    for drop in await connection.fetch(load("drops_of_broken_indexes"), re.findall(CONCURRENT_INDEX, migration.sql())):
        await connection.execute(drop["statement"])
    for statement in statements(migration.sql()):
        await connection.execute(statement)


async def _in_the_way(connection: asyncpg.Connection[asyncpg.Record]) -> str:
    """Who probably keeps a table: whoever has been at it for longest."""
    oldest = await connection.fetchrow(load("oldest_transaction"))
    if oldest is None:
        return "a table it changes was in use"
    who = f"{oldest['application_name'] or 'a client without a name'} (process {oldest['pid']})"
    return f"a table it changes is in use; the oldest transaction is of {who}, since {oldest['xact_start']:%F %T} UTC"


async def _refuse_running(connection: asyncpg.Connection[asyncpg.Record], wanted: Sequence[Migration]) -> None:
    """Raises NodesRunningError when a node is connected and a wanted migration needs every node stopped."""
    stops = [migration.name for migration in wanted if migration.phase == "stop"]
    sessions = await connection.fetchval(load("count_sessions")) if stops else 0
    if sessions:
        raise NodesRunningError(
            f"{', '.join(stops)} cannot be applied while nodes run, and {sessions} of their connections are open: "
            "stop every node, then run `muster migrate` again; nothing has been changed"
        )


async def _done(connection: asyncpg.Connection[asyncpg.Record]) -> dict[int, str]:
    """The names of the migrations a database has had, by version."""
    if await connection.fetchval(load("is_fresh")):
        return {}
    return {row["version"]: row["name"] for row in await connection.fetch(load("schema_version"))}


async def _note(connection: asyncpg.Connection[asyncpg.Record], migration: Migration, now: Instant) -> None:
    await connection.execute(load("insert_schema_version"), migration.version, migration.name, now)


def _refuse_newer(known: Sequence[Migration], done: Mapping[int, str]) -> None:
    """Raises SchemaVersionError when the database has had a migration that only newer code gets along with."""
    newest = max(migration.version for migration in known)
    for version, name in done.items():
        phase = re.fullmatch(FILE_NAME, name)
        if version > newest and (phase is None or phase[2] != "pre"):
            known_to = f"this code knows versions up to {newest} and cannot run with {name}"
            raise SchemaVersionError(f"the database is of version {max(done)}, {known_to}")
