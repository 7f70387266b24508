"""The blocking client in a notebook: cells of an ipykernel, whose event loop is running, against a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import AsyncKernelManager

from administration.accounts import AccountKeys
from tests.acceptance.server import LiveServer
from transfer.keys import load_keys

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "client"
START_S = 60.0

CONNECT = """
import asyncio
from muster_client import ApiError, SyncClient
loop = asyncio.get_event_loop()
client = SyncClient({url!r}, {token!r})
"""
BATCH = {
    "app": "pi",
    "qos": "throughput",
    "jobs": {
        "count": 2,
        "fpops_est": 1e12,
        "delay_bound_s": 86400,
        "inputs": [{"name": "in-1.txt"}],
        "outputs": [{"name": "out", "max_bytes": 1000}],
    },
}


class Notebook:
    """A kernel, and what its cells printed."""

    def __init__(self, kernel: Any) -> None:  # Any: jupyter_client's types differ between its versions
        self._kernel = kernel

    async def cell(self, code: str) -> str:
        """Run a cell and return what it printed. An exception in it fails the test."""
        printed: list[str] = []

        def note(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        reply = await self._kernel.execute_interactive(code, output_hook=note, timeout=START_S)
        content = reply["content"]
        assert content["status"] == "ok", "\n".join(content.get("traceback", ()))
        return "".join(printed)


@pytest.fixture
async def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Notebook]:
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    manager = AsyncKernelManager(kernel_name="python3")
    await manager.start_kernel(cwd=str(CLIENT))  # the package is found there, and nothing of the server
    kernel = manager.client()
    kernel.start_channels()
    try:
        await kernel.wait_for_ready(timeout=START_S)
        yield Notebook(kernel)
    finally:
        kernel.stop_channels()
        await manager.shutdown_kernel(now=True)


async def test_blocking_client_works_in_a_notebook(server: LiveServer, notebook: Notebook, tmp_path: Path) -> None:
    token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
    await server.add_app()
    (tmp_path / "in.txt").write_text("an input")

    await notebook.cell(CONNECT.format(url=server.url, token=token))
    assert await notebook.cell("print(loop.is_running(), asyncio.get_running_loop() is loop)") == "True True\n"

    put = await notebook.cell(f"print(client.put_file({str(tmp_path / 'in.txt')!r}, name='in-1.txt')['nbytes'])")
    assert put == "8\n"
    submitted = await notebook.cell(f"batch_id = client.submit({BATCH!r}); print(client.batch(batch_id)['jobs_total'])")
    assert submitted == "2\n"
    watched = "for one in client.watch(batch_id):\n    print(one['state'])\n    client.abort(batch_id)"
    assert (await notebook.cell(watched)).split()[-1] == "aborted"
    tar = tmp_path / "results.tar"
    assert int(await notebook.cell(f"print(client.fetch_outputs(batch_id, {str(tar)!r}))")) == tar.stat().st_size > 0
    refused = "try:\n    client.batch(999)\nexcept ApiError as error:\n    print(error.status, error)"
    assert await notebook.cell(refused) == "404 no batch 999\n"
    # `await` in a later cell needs the kernel's own loop: blocking calls left it alone.
    assert await notebook.cell("await asyncio.sleep(0)\nprint(asyncio.get_running_loop() is loop)") == "True\n"


async def test_interrupting_a_cell_cancels_its_request(server: LiveServer, notebook: Notebook) -> None:
    token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
    await server.add_app()
    batch_id = await server.submit()

    await notebook.cell(CONNECT.format(url=server.url, token=token))
    interrupting = """
import os, signal, threading, time
def interrupt():
    time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    client.wait({batch_id})
except KeyboardInterrupt:
    print("interrupted")
print(client.batch({batch_id})["state"])
"""
    assert await notebook.cell(interrupting.format(batch_id=batch_id)) == "interrupted\nactive\n"
