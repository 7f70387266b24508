"""A client made by a common generator from the OpenAPI document submits a batch: `make generated-client`.

The generator is no dependency of the project: MUSTER_GENERATOR names the environment that has it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from administration.accounts import AccountKeys
from domain.units import BatchId
from tests.acceptance.server import LiveServer
from transfer.keys import load_keys

PROGRAM = """
import sys
from made import AuthenticatedClient
from made.api.batches import batch, submit_batch
from made.models import BatchJobTable, BatchOutput, NewBatchBody, Problem, QoS

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
outputs = [BatchOutput(name="out", max_bytes=1000)]
jobs = BatchJobTable(count=3, command_line="--part {i}", fpops_est=1e9, outputs=outputs)
wrong = submit_batch.sync(client=client, body=NewBatchBody(app="none", qos=QoS.AFAP, jobs=jobs))
assert isinstance(wrong, Problem) and wrong.field == "app", wrong
done = submit_batch.sync(client=client, body=NewBatchBody(app="pi", qos=QoS.AFAP, name="generated", jobs=jobs))
shown = batch.sync(done.batch_id, client=client)
print(shown.batch_id, shown.name, shown.jobs_total)
"""


async def run(*command: str, folder: Path) -> str:
    """Run a program to its end and return what it printed. It must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    return told.decode()


async def test_generated_client_submits_a_batch(server: LiveServer, tmp_path: Path) -> None:
    programs = Path(os.environ.get("MUSTER_GENERATOR", Path(sys.executable).parent.parent)) / "bin"
    await server.add_app()
    async with server.http.get(f"{server.url}api/v1/openapi.json") as response:
        (tmp_path / "openapi.json").write_bytes(await response.read())
    made = ("generate", "--path", "openapi.json", "--meta", "none", "--output-path", "made")
    await run(str(programs / "openapi-python-client"), *made, folder=tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()

    told = await run(str(programs / "python"), "program.py", f"{server.url}api/v1", token, folder=tmp_path)

    assert told.split() == ["1", "generated", "3"]
    assert len(await server.jobs(BatchId(1))) == 3
