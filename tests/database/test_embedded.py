"""Tests that processes share the embedded server, which outlives them until the last one stops it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from domain.errors import InvalidInputError
from store import embedded
from tests.facts import states


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Return a folder that the server's own user can access, unlike pytest's temporary folders."""
    folder = Path(tempfile.mkdtemp(prefix="muster-embedded-"))
    yield folder / "postgres"
    embedded.stop(folder / "postgres")
    shutil.rmtree(folder)


async def ask(dsn: str, sql: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


def postmaster_pid(data_dir: Path) -> int:
    return int((data_dir / "postmaster.pid").read_text().split()[0])


async def start(data_dir: Path) -> str:
    return await asyncio.to_thread(embedded.ensure_running, data_dir)


async def test_a_server_is_made_once_with_a_durable_database(data_dir: Path) -> None:
    dsn = await start(data_dir)
    pid = postmaster_pid(data_dir)

    assert await start(data_dir) == dsn
    assert postmaster_pid(data_dir) == pid
    assert await ask(dsn, "SELECT current_database()") == "muster"
    assert await ask(dsn, "SHOW fsync") == "on"


async def test_a_server_is_found_again_after_its_starter_was_killed(data_dir: Path) -> None:
    code = (
        "import os, pathlib, signal; from store import embedded; "
        f"embedded.ensure_running(pathlib.Path({str(data_dir)!r})); os.kill(os.getpid(), signal.SIGKILL)"
    )
    starter = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], check=False, timeout=60)
    assert starter.returncode == -signal.SIGKILL
    pid = postmaster_pid(data_dir)

    dsn = await start(data_dir)

    assert postmaster_pid(data_dir) == pid
    assert await ask(dsn, "SELECT 1") == 1
    assert embedded.release(data_dir)  # the dead process no longer uses it


async def test_killed_server_recovers_committed_data(data_dir: Path) -> None:
    dsn = await start(data_dir)
    await ask(dsn, "CREATE TABLE kept AS SELECT 41 AS n")
    os.kill(postmaster_pid(data_dir), signal.SIGKILL)

    dsn = await start(data_dir)

    assert await ask(dsn, "SELECT n FROM kept") == 41


async def test_only_last_user_stops_server(data_dir: Path) -> None:
    dsn = await start(data_dir)
    connection = await asyncpg.connect(dsn)
    assert not await asyncio.to_thread(embedded.release, data_dir)
    await connection.close()

    assert await asyncio.to_thread(embedded.release, data_dir)
    with pytest.raises(OSError):
        await asyncpg.connect(dsn)
    assert not await asyncio.to_thread(embedded.release, data_dir)


def test_a_folder_the_start_script_would_take_apart_is_refused(data_dir: Path) -> None:
    with states(InvalidInputError, "data_dir:", "without spaces"):
        embedded.ensure_running(data_dir / "my project")


async def test_folder_name_too_long_for_socket_works(data_dir: Path) -> None:
    long = data_dir / ("a-project-with-a-long-name-" * 5)
    dsn = await start(long)
    assert await ask(dsn, "SELECT 1") == 1
    assert embedded.stop(long)


def test_there_is_nothing_to_stop_where_no_server_was_made(tmp_path: Path) -> None:
    assert not embedded.stop(tmp_path / "none")
    assert not embedded.release(tmp_path / "none")


# ------------------------------------------------------------------ other users of the machine

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")


def as_user(name: str, data_dir: Path, dsn: str) -> subprocess.CompletedProcess[str]:
    """Query the database as another user of the system."""
    psql = embedded._server(data_dir).bin_path / "psql"
    command = [str(psql), "-XAtq", "-d", dsn, "-c", "SELECT 'in'"]
    return subprocess.run(command, user=name, capture_output=True, text=True, check=False, timeout=30, cwd="/")


@needs_root
async def test_another_user_of_the_machine_does_not_reach_the_database(data_dir: Path) -> None:
    dsn = await start(data_dir)

    stranger = await asyncio.to_thread(as_user, "daemon", data_dir, dsn)
    servers_own = await asyncio.to_thread(as_user, "pgserver", data_dir, dsn)

    assert "Permission denied" in stranger.stderr
    assert stranger.stdout == ""
    assert "Peer authentication failed" in servers_own.stderr  # through the socket, but with an unknown name
    assert await ask(dsn, "SHOW listen_addresses") == ""
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((data_dir / ".s.PGSQL.5432").stat().st_mode) == 0o700


@needs_root
async def test_server_with_trust_authentication_is_restricted(data_dir: Path) -> None:
    """Its socket is beside the data, because the folder's name is too long."""
    long = data_dir / ("a-project-with-a-long-name-" * 5)
    dsn = await start(long)
    folder, hba = Path(str(await ask(dsn, "SHOW unix_socket_directories"))), long / "pg_hba.conf"
    hba.write_text('# CAUTION: Configuring the system for local "trust" authentication\nlocal all all trust\n')
    folder.chmod(0o777)
    await ask(dsn, "SELECT pg_reload_conf()")
    before = await asyncio.to_thread(as_user, "pgserver", long, dsn)

    await start(long)

    after = await asyncio.to_thread(as_user, "pgserver", long, dsn)
    mode = stat.S_IMODE(folder.stat().st_mode)
    own = "# ours\n" + hba.read_text().partition("\n")[2]
    hba.write_text(own)
    await start(long)
    assert embedded.stop(long)
    assert (before.stdout, after.stdout) == ("in\n", "")
    assert mode == 0o700
    assert hba.read_text() == own  # operators' files are kept
