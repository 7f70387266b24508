"""`muster up` with two workers: stopping, restarts and error messages."""

from __future__ import annotations

import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from store import embedded
from tests.e2e.server import MUSTER, Server
from tests.e2e.stock_client import wait_for
from tests.facts import missing


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A project on the embedded database with a node of two workers. Each test leaves it running."""
    node = Server(tmp_path_factory.mktemp("running") / "project", workers=2)
    try:
        node.init()
        node.start()
        yield node
    finally:
        node.kill()
        embedded.stop(node.data_dir / "postgres")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A project whose node does not run."""
    node = Server(tmp_path_factory.mktemp("stopped") / "project", workers=2)
    node.init()
    return node


def processes_of(data_dir: Path) -> list[psutil.Process]:
    """Return every process of the machine that uses the folder, including PostgreSQL's."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(data_dir) in argument for argument in process.info["cmdline"] or []):
            found.append(process)
    return found


def is_alive(process: psutil.Process) -> bool:
    """Return whether the process runs; zombies do not count."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def workers_of(data_dir: Path) -> list[psutil.Process]:
    return [process for process in processes_of(data_dir) if "worker" in process.info["cmdline"]]


def test_sigterm_stops_all_processes_of_a_node(server: Server) -> None:
    wait_for(lambda: len(workers_of(server.data_dir)) == 2, 60, "two workers")
    running = processes_of(server.data_dir)
    assert any("postgres" in process.name() for process in running)

    server.stop()  # asserts exit code 0

    assert processes_of(server.data_dir) == []
    assert [process for process in running if is_alive(process)] == []
    server.start()  # it can start again
    assert server.answers()


def test_killed_worker_is_restarted(server: Server) -> None:
    wait_for(lambda: len(workers_of(server.data_dir)) == 2, 60, "two workers")
    before = workers_of(server.data_dir)

    before[0].send_signal(signal.SIGKILL)
    before[0].wait(60)

    wait_for(lambda: len(workers_of(server.data_dir)) == 2, 60, "the new worker")
    [new] = [process for process in workers_of(server.data_dir) if process not in before]
    wait_for(lambda: listens(new, server.port), 60, "the new worker to listen")
    assert before[1].is_running() and server.answers()


def listens(process: psutil.Process, port: int) -> bool:
    return any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in process.net_connections("tcp"))


def test_both_workers_serve_one_port(server: Server) -> None:
    wait_for(
        lambda: [listens(worker, server.port) for worker in workers_of(server.data_dir)] == [True, True],
        60,
        "both workers to listen",
    )

    for _ in range(20):
        with pytest.raises(urllib.error.HTTPError, match="400"), urllib.request.urlopen(f"{server.url}scheduler", b"x"):
            pass


def test_killed_supervisor_ends_its_processes(server: Server) -> None:
    wait_for(lambda: len(workers_of(server.data_dir)) == 2, 60, "two workers")

    server.kill_supervisor()

    wait_for(lambda: [p for p in processes_of(server.data_dir) if "postgres" not in p.name()] == [], 60, "the end")
    server.start()
    assert server.answers()


def test_port_in_use_is_reported_in_one_line(stopped: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = subprocess.run(
            [*MUSTER, "up", "--data-dir", str(stopped.data_dir), "--host", "127.0.0.1", "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert not missing(done.stderr, "muster:", f"127.0.0.1 port {port}:", "in use")
    assert processes_of(stopped.data_dir) == []


def test_worker_port_in_use_is_reported_in_one_line(stopped: Server) -> None:
    """Other programs, and the node's own shared port, cannot be a worker's port."""
    where = ["--data-dir", str(stopped.data_dir), "--port", str(stopped.port), "--workers", "2"]
    ended = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for first in (port, stopped.port - 1, 65535):
            command = [*MUSTER, "up", *where, "--worker-port", str(first)]
            ended.append(subprocess.run(command, capture_output=True, text=True, timeout=60, check=False))

    assert [done.returncode for done in ended] == [1, 2, 2]
    assert not missing(ended[0].stderr, f"port {port}:", "in use")
    assert not missing(ended[1].stderr, "--worker-port", str(stopped.port - 1), f"({stopped.port})")
    assert not missing(ended[2].stderr, "--worker-port", "65535")
    assert processes_of(stopped.data_dir) == []
