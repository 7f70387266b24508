"""A project without its private signing key: files are signed on one machine and served on another."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

from administration.accounts import AccountKeys
from tests.acceptance.host import LINUX
from tests.acceptance.server import PROGRAM, LiveServer
from tests.acceptance.test_command_line import Done, done_by
from tests.facts import missing
from transfer.keys import create_keys, load_keys

NO_KEY = b"this is not a key"


async def added(server: LiveServer, *how: str | Path) -> Done:
    """Run `muster app version add` through the server, on a machine without the project."""
    token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
    version = ("app", "version", "add", "pi", "--platform", LINUX, "--version", "100", "--json")
    return await asyncio.to_thread(done_by, *version, *map(str, how), "--server", server.url, "--token", token)


async def test_project_works_without_its_private_key(server: LiveServer, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(server.project.keys_dir / "signing", elsewhere)
    main, signatures = elsewhere / "main.sh", elsewhere / "signatures.json"
    main.write_bytes(PROGRAM)
    asked = [str(main), "--key", str(elsewhere / "0001.pem"), "--output", str(signatures), "--json"]
    nowhere = ["--data-dir", str(tmp_path / "no project"), "--database-url", "postgresql://none@192.0.2.1/none"]
    done = await asyncio.to_thread(done_by, "sign", *asked, *nowhere)
    assert (done.exit_code, json.loads(done.stdout)["signed"]) == (0, 1)
    assert not (tmp_path / "no project").exists()

    await server.add_app(versions=0)
    done = await added(server, "--main", main, "--signatures", signatures)
    assert done.exit_code == 0, done
    await server.restart()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    await host.compute(task)
    await host.call()
    await server.validate()

    assert (await server.batch(batch_id))["state"] == "complete"
    assert not (server.project.keys_dir / "signing").exists()


async def test_unsigned_version_is_refused_with_advice(server: LiveServer, tmp_path: Path) -> None:
    signing = server.project.keys_dir / "signing"
    key = tmp_path / "key.pem"
    shutil.move(signing / "0001.pem", key)
    (signing / "0001.pem").write_bytes(NO_KEY)
    main = tmp_path / "main.sh"
    main.write_bytes(PROGRAM)
    create_keys(tmp_path / "other")
    await server.restart()
    await server.add_app(versions=0)

    query = {"platform": LINUX, "version": "100", "file": "main.sh"}
    status, refused = await server.api("POST", "/apps/pi/versions", params=query, data=PROGRAM)
    keyless = await added(server, "--main", main)
    wrong = await added(server, "--main", main, "--key", tmp_path / "other" / "signing" / "0001.pem")
    right = await added(server, "--main", main, "--key", key)

    assert (status, missing(refused["detail"], "`muster sign FILE")) == (422, [])
    assert keyless.exit_code == 1
    assert not missing(keyless.stderr, "--key:", "private key", "--signatures")
    assert not missing(json.loads(wrong.stderr)["detail"], "signature:", "main.sh", "project's current key")
    assert right.exit_code == 0, right
    assert len((await server.create("GET", "/apps/pi"))["versions"]) == 1
    [act, *_] = (await server.create("GET", "/audit"))["acts"]
    told = {"version": 100, "platform": LINUX}
    assert (act["what"], act["target"], act["detail"]) == ("add_version", "app pi", told)
