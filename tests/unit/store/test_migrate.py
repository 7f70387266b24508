"""Which migrations are applied, and on which databases does this code run?"""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from store.migrate import (
    CONCURRENT_INDEX,
    FILE_NAME,
    Migration,
    NodesRunningError,
    SchemaVersionError,
    check_done,
    migrations,
    pending,
    statements,
)

STOP = Migration(2, "stop", "0002_stop_rename.sql")
POST = Migration(3, "post", "0003_post_tidy.sql")
PRE = Migration(4, "pre", "0004_pre_more.sql")
KNOWN = [Migration(1, "pre", "0001_pre_initial.sql"), STOP, POST, PRE]


def done(*versions: int) -> dict[int, str]:
    return {migration.version: migration.name for migration in KNOWN if migration.version in versions}


def test_every_file_of_sql_among_the_migrations_says_its_phase() -> None:
    names = [entry.name for entry in files("store").joinpath("migrations").iterdir() if entry.name.endswith(".sql")]

    assert [name for name in names if not re.fullmatch(FILE_NAME, name)] == []
    assert len(migrations()) == len(names)


def test_no_two_migrations_have_one_number() -> None:
    versions = [migration.version for migration in migrations()]

    assert versions == sorted(set(versions))


def test_whoever_has_had_the_last_stop_upgrades_without_an_interruption() -> None:
    last_stop = max(migration.version for migration in migrations() if migration.phase == "stop")
    had = {migration.version: migration.name for migration in migrations() if migration.version <= last_stop}
    wanted = pending(migrations(), had, pre_only=True)

    check_done(migrations(), had | {migration.version: migration.name for migration in wanted})


def test_concurrent_migrations_do_nothing_but_build_indexes_that_are_not_there() -> None:
    concurrent = [migration for migration in migrations() if migration.concurrent]

    assert [migration.version for migration in concurrent] == [42, 45, 50, 96]
    for migration in concurrent:
        for statement in statements(migration.sql()):
            assert re.match(CONCURRENT_INDEX, statement), migration.name
        assert migration.sql().count("CONCURRENTLY") == len(statements(migration.sql()))


def test_no_other_migration_before_the_nodes_have_the_new_code_keeps_them_from_sending_jobs() -> None:
    """Not since the last one that needed them stopped."""
    keeping = [
        migration.name
        for migration in migrations()
        if migration.version > 7 and migration.phase == "pre" and not migration.concurrent
        if re.search(r"INDEX (CONCURRENTLY )?\w+ ON (instance|job|host|host_app_version)\b", migration.sql())
    ]

    assert keeping == []


@pytest.mark.parametrize(
    ("name", "concurrent"),
    [
        ("0002_pre_concurrently_late_jobs.sql", True),
        ("0002_post_concurrently_late_jobs.sql", True),
        ("0002_pre_late_jobs.sql", False),
        ("0002_pre_late_jobs_concurrently_.sql", False),
    ],
)
def test_the_name_says_whether_a_migration_runs_outside_a_transaction(name: str, concurrent: bool) -> None:
    assert Migration(2, "pre", name).concurrent == concurrent


def test_everything_missing_is_applied_in_order() -> None:
    assert pending(KNOWN, {1}, pre_only=False) == [STOP, POST, PRE]


def test_pre_only_leaves_out_post_ones_and_goes_on_behind_them() -> None:
    assert pending(KNOWN, {1, 2}, pre_only=True) == [PRE]


def test_pre_only_is_refused_where_nodes_have_to_be_stopped() -> None:
    with pytest.raises(NodesRunningError, match=r"0002_stop_rename.sql .* stop every node, then run `muster migrate`"):
        pending(KNOWN, {1}, pre_only=True)


def test_code_runs_without_the_post_ones() -> None:
    check_done(KNOWN, done(1, 2, 4))


def test_code_does_not_run_without_a_pre_one_and_names_both_commands() -> None:
    with pytest.raises(SchemaVersionError, match=r"lacks 0004_pre_more.sql: run `muster migrate`, or .*--pre-only"):
        check_done(KNOWN, done(1, 2, 3))


def test_code_does_not_run_without_a_stop_and_says_to_stop_every_node() -> None:
    with pytest.raises(SchemaVersionError, match=r"lacks 0002_stop_rename.sql, .*: stop every node, then run"):
        check_done(KNOWN, done(1))


def test_a_database_without_any_is_refused_with_what_to_run() -> None:
    with pytest.raises(SchemaVersionError, match="lacks everything: run `muster migrate`"):
        check_done(KNOWN, {})


def test_old_code_bears_a_newer_pre_one() -> None:
    check_done(KNOWN, done(1, 2, 3, 4) | {5: "0005_pre_new.sql"})


@pytest.mark.parametrize("name", ["0005_post_new.sql", "0005_stop_new.sql", "from the future"])
def test_old_code_bears_no_other_newer_one(name: str) -> None:
    with pytest.raises(
        SchemaVersionError, match=f"version 5, this code knows versions up to 4 and cannot run with {name}"
    ):
        check_done(KNOWN, done(1, 2, 3, 4) | {5: name})
