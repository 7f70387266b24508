"""Selects the migrations to apply, and the databases that this code runs on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from store.migrate import (
    CONCURRENT_INDEX,
    FILE_NAME,
    FOLDER,
    Migration,
    NodesRunningError,
    SchemaVersionError,
    check_done,
    migrations,
    pending,
    statements,
)
from tests.facts import states

STOP = Migration(2, "stop", "0002_stop_rename.sql")
POST = Migration(3, "post", "0003_post_tidy.sql")
PRE = Migration(4, "pre", "0004_pre_more.sql")
KNOWN = [Migration(1, "pre", "0001_pre_initial.sql"), STOP, POST, PRE]


def only_builds(sql: str) -> bool:
    return all(re.match(CONCURRENT_INDEX, statement) for statement in statements(sql))


def done(*versions: int) -> dict[int, str]:
    return {migration.version: migration.name for migration in KNOWN if migration.version in versions}


def test_every_sql_file_is_a_migration() -> None:
    names = [entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".sql")]

    assert [name for name in names if not re.fullmatch(FILE_NAME, name)] == []
    assert len(migrations()) == len(names)


def test_version_numbers_are_unique() -> None:
    versions = [migration.version for migration in migrations()]

    assert versions == sorted(set(versions))


def test_a_folder_is_read_in_order_of_versions(tmp_path: Path) -> None:
    for name in (POST.name, "0010_pre_ten.sql", STOP.name, "notes.txt", "0011_now_x.sql"):
        (tmp_path / name).write_text(f"-- {name}", encoding="utf-8")

    found = migrations(tmp_path)

    assert [(one.version, one.phase, one.name) for one in found] == [
        (2, "stop", STOP.name),
        (3, "post", POST.name),
        (10, "pre", "0010_pre_ten.sql"),
    ]
    assert [one.sql() for one in found] == [f"-- {one.name}" for one in found]


def test_after_the_last_stop_upgrades_need_no_interruption() -> None:
    last_stop = max((migration.version for migration in migrations() if migration.phase == "stop"), default=1)
    had = {migration.version: migration.name for migration in migrations() if migration.version <= last_stop}
    wanted = pending(migrations(), had, pre_only=True)

    check_done(migrations(), had | {migration.version: migration.name for migration in wanted})


def test_concurrent_migrations_only_build_missing_indexes() -> None:
    for migration in migrations():
        if migration.concurrent:
            assert only_builds(migration.sql()), migration.name


@pytest.mark.parametrize(
    ("sql", "allowed"),
    [
        ("-- Of t.\nCREATE INDEX CONCURRENTLY IF NOT EXISTS a ON t (x);", True),
        ("CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS a ON t (x)\nWHERE y;\n", True),
        ("CREATE INDEX CONCURRENTLY a ON t (x);", False),
        ("CREATE INDEX CONCURRENTLY IF NOT EXISTS a ON t (x); DROP INDEX b;", False),
    ],
)
def test_statements_other_than_missing_indexes_are_found(sql: str, allowed: bool) -> None:
    assert only_builds(sql) == allowed


def test_busy_tables_get_indexes_concurrently() -> None:
    """Every `pre` migration after the first runs while nodes send jobs."""
    blocking = [
        migration.name
        for migration in migrations()
        if migration.version > 1 and migration.phase == "pre" and not migration.concurrent
        if re.search(r"INDEX (CONCURRENTLY )?\w+ ON (instance|job|host|host_app_version)\b", migration.sql())
    ]

    assert blocking == []


@pytest.mark.parametrize(
    ("name", "concurrent"),
    [
        ("0002_pre_concurrently_late_jobs.sql", True),
        ("0002_post_concurrently_late_jobs.sql", True),
        ("0002_pre_late_jobs.sql", False),
        ("0002_pre_late_jobs_concurrently_.sql", False),
    ],
)
def test_names_mark_concurrent_migrations(name: str, concurrent: bool) -> None:
    assert Migration(2, "pre", name).concurrent == concurrent


def test_everything_missing_is_applied_in_order() -> None:
    assert pending(KNOWN, {1}, pre_only=False) == [STOP, POST, PRE]


def test_pre_only_skips_post_migrations() -> None:
    assert pending(KNOWN, {1, 2}, pre_only=True) == [PRE]


def test_pre_only_is_refused_before_a_stop() -> None:
    with states(NodesRunningError, "0002_stop_rename.sql", "stop every node", "`muster migrate`"):
        pending(KNOWN, {1}, pre_only=True)


def test_code_runs_without_post_migrations() -> None:
    check_done(KNOWN, done(1, 2, 4))


def test_a_missing_pre_migration_names_both_commands() -> None:
    with states(SchemaVersionError, "lacks 0004_pre_more.sql:", "`muster migrate`", "`muster migrate --pre-only`"):
        check_done(KNOWN, done(1, 2, 3))


def test_a_missing_stop_says_to_stop_every_node() -> None:
    with states(SchemaVersionError, "lacks 0002_stop_rename.sql,", "stop every node", "`muster migrate`"):
        check_done(KNOWN, done(1))


def test_an_empty_database_names_the_command() -> None:
    with states(SchemaVersionError, "no schema", "`muster migrate`"):
        check_done(KNOWN, {})


def test_old_code_runs_with_a_newer_pre_migration() -> None:
    check_done(KNOWN, done(1, 2, 3, 4) | {5: "0005_pre_new.sql"})


@pytest.mark.parametrize("name", ["0005_post_new.sql", "0005_stop_new.sql", "from the future"])
def test_old_code_refuses_other_newer_migrations(name: str) -> None:
    with states(SchemaVersionError, "version 5", "versions up to 4", f"run with {name}"):
        check_done(KNOWN, done(1, 2, 3, 4) | {5: name})


def test_another_migration_of_a_known_number_is_refused() -> None:
    """As in a database that an unreleased version made."""
    with pytest.raises(SchemaVersionError, match=r"0001_pre_other.sql instead of 0001_pre_initial.sql"):
        check_done(KNOWN, done(2, 3, 4) | {1: "0001_pre_other.sql"})
