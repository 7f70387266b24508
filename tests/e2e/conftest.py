"""One server and one stock client per test, each in its own folder."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store import embedded
from tests.e2e.server import Server
from tests.e2e.stock_client import StockClient, installed

APPS = Path(__file__).parent.parent / "apps"


@pytest.fixture(scope="session")
def app_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile tests/apps/app.c: `app SECONDS EXITCODE FINISHFILE OUTKB`; reads in, writes out."""
    binary = tmp_path_factory.mktemp("apps") / "app"
    subprocess.run(["gcc", "-O1", "-static", "-o", str(binary), str(APPS / "app.c")], check=True)
    return binary


@pytest.fixture(scope="session")
def trickle_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile tests/apps/trickle.c: `trickle COUNT` sends COUNT trickle messages, then writes out."""
    binary = tmp_path_factory.mktemp("apps") / "trickle"
    subprocess.run(["gcc", "-O1", "-static", "-o", str(binary), str(APPS / "trickle.c")], check=True)
    return binary


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path / "project")
    try:
        yield running
    finally:
        running.stop()
        embedded.stop(running.data_dir / "postgres")  # the test itself may be registered as its user


@pytest.fixture
def client(server: Server, tmp_path: Path) -> Iterator[Callable[..., StockClient]]:
    """Create clients attached to the server; they are stopped when the test ends."""
    if not installed():
        pytest.fail("the stock client is not installed: run tests/install_system.sh")
    clients: list[StockClient] = []

    def make(**options: Any) -> StockClient:
        key = server.add_volunteer(f"volunteer{len(clients)}@example.org")
        made = StockClient(tmp_path / f"client{len(clients)}", server.url, key, **options)
        clients.append(made)
        made.start()
        return made

    yield make
    for made in clients:
        made.stop()
        shutil.rmtree(made.folder, ignore_errors=True)
