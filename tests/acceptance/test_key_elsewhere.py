"""A project whose private signing key never comes near it: signed on one machine, served on another."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

from click.testing import CliRunner

from operations.applications import NewVersion, add_app_version
from operations.cli.signing import sign
from tests.acceptance.host import LINUX
from tests.acceptance.server import PROGRAM, LiveServer


async def test_a_job_is_served_and_validated_where_the_private_key_never_was(
    server: LiveServer, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(server.project.keys_dir / "signing", elsewhere)
    (elsewhere / "main.sh").write_bytes(PROGRAM)
    signatures = elsewhere / "signatures.json"
    asked = [str(elsewhere / "main.sh"), "--key", str(elsewhere / "0001.pem"), "--output", str(signatures), "--json"]
    nowhere = ["--data-dir", str(tmp_path / "no project"), "--database-url", "postgresql://nobody@192.0.2.1/none"]
    done = await asyncio.to_thread(CliRunner().invoke, sign, [*asked, *nowhere])
    assert (done.exit_code, json.loads(done.stdout)["signed"]) == (0, 1)
    assert not (tmp_path / "no project").exists()

    await server.add_app(versions=0)
    new = NewVersion("pi", LINUX, 100, elsewhere / "main.sh")
    await add_app_version(server.store.applications, server.project, new, clock=server.clock, signatures=signatures)
    await server.restart()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    await host.compute(task)
    await host.call()
    await server.validate()

    assert (await server.batch(batch_id))["state"] == "complete"
    assert not (server.project.keys_dir / "signing").exists()
