"""Downloads of results: over the API, by a command here and through a server, and from the console."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import IO, Any, cast

import pytest

from administration.accounts import AccountKeys
from domain.access import Role
from domain.units import BatchId
from muster_client import ApiError, Client
from tests.acceptance.host import RIGHT
from tests.acceptance.server import LiveServer
from tests.acceptance.test_access import a_person, a_token
from tests.acceptance.test_command_line import Done, done_by
from tests.acceptance.test_console import a_browser
from tests.browser.scene import OPERATOR, add_operator
from tests.facts import missing
from transfer.keys import load_keys

PAGE = Path(__file__).parents[2] / "docs/how-to/collect-results.md"


async def a_batch_with_one_result(server: LiveServer) -> tuple[BatchId, int, int]:
    """Submit three jobs, one of them valid; return the ids of that one and of an open one."""
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 3})
    host = await server.add_host()
    [task] = await host.ask(1)
    await host.work(task)
    await server.validate()
    jobs = await server.jobs(batch_id)
    [valid] = [job.job_id for job in jobs if job.state.value == "valid"]
    return batch_id, valid, next(job.job_id for job in jobs if job.state.value == "open")


def own_token(server: LiveServer) -> str:
    return AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()


async def not_there(call: Any, status: int = 404) -> str:
    with pytest.raises(ApiError) as caught:
        await call
    assert caught.value.status == status
    return str(caught.value)


async def collected(server: LiveServer, batch_id: int, folder: Path, *words: str, through: bool) -> Done:
    place = ("--server", server.url, "--token", own_token(server))
    where = place if through else ("--data-dir", str(server.project.data_dir))
    return await asyncio.to_thread(done_by, "batch", "results", str(batch_id), "--to", str(folder), *words, *where)


def run_the_page(server: LiveServer, folder: Path) -> None:
    """Run the manual's commands unchanged: on the project's machine, through the server, and over HTTP."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "MUSTER_DATA_DIR": str(server.project.data_dir),
        "SERVER": server.url,
        "TOKEN": own_token(server),
    }
    for number, block in enumerate(blocks):
        home = folder / f"page {number}"
        home.mkdir()
        subprocess.run(["bash", "-e", "-c", block], cwd=home, env=environment, check=True, timeout=60)
    local, remote, over_http = (folder / f"page {number}" for number in range(3))
    assert [(home / "results/0/out").read_bytes() for home in (local, remote)] == [RIGHT, RIGHT]
    assert (over_http / "out").read_bytes() == RIGHT
    with tarfile.open(over_http / "results.tar") as archive:
        members = {one.name: cast(IO[bytes], archive.extractfile(one)).read() for one in archive}
    assert members["1/out"] == RIGHT
    reasons = [json.loads(line) for line in members["missing.jsonl"].splitlines()]
    assert [(one["job_id"], one["because"]) for one in reasons] == [(2, "it is open"), (3, "it is open")]


async def test_result_files_need_permission(server: LiveServer, tmp_path: Path) -> None:
    _, valid, unfinished = await a_batch_with_one_result(server)
    await server.create("POST", "/submitters", json={"name": "lab", "account": "default", "shares": 1.0})
    await a_person(server, "sue", Role.SUBMITTER, "lab")
    await a_person(server, "vic", Role.VIEWER)
    await add_operator(server)

    async with Client(server.url, await a_token(server, "vic", "read")) as vic:
        shown = await vic.job_outputs(valid)
        assert await vic.fetch_output(valid, "out", tmp_path / "fetched") == len(RIGHT)
        waiting = await vic.job_outputs(unfinished)
        assert not missing(waiting["because"] or "", "open", "1 unsent")
        why = await not_there(vic.fetch_output(unfinished, "out", tmp_path / "none"))
        assert why == f"no result of job {unfinished}: {waiting['because']}"
        why = await not_there(vic.fetch_output(valid, "err", tmp_path / "none"))
        assert not missing(why, f"no output 'err' of job {valid}:", "has out")
        assert "no output " in await not_there(vic.fetch_output(valid, "../../keys/account_secret", tmp_path / "none"))
        assert await not_there(vic.job_outputs(99_999)) == "no job 99999"
        assert await not_there(vic.fetch_outputs(99, tmp_path / "none")) == "no batch 99"
        assert await vic.batch_results(shown["batch_id"], after=valid - 1, limit=1) == [shown]
    async with Client(server.url, await a_token(server, "sue")) as sue:
        assert "another submitter" in await not_there(sue.job_outputs(valid), 403)
        assert "another submitter" in await not_there(sue.batch_results(shown["batch_id"]), 403)
        assert "another submitter" in await not_there(sue.fetch_outputs(shown["batch_id"], tmp_path / "none"), 403)
        assert "another submitter" in await not_there(sue.fetch_output(valid, "out", tmp_path / "none"), 403)

    [output] = shown["outputs"]
    assert (shown["because"], output["name"], output["nbytes"], output["state"]) == (None, "out", len(RIGHT), "here")
    assert output["file_name"] == f"pi_{shown['batch_id']}_{valid}_{shown['canonical_instance_id']}_r0"
    assert (tmp_path / "fetched").read_bytes() == RIGHT
    assert not (tmp_path / "none").exists()

    async with a_browser(server, OPERATOR) as grace:
        for page in (f"/jobs/{valid}", f"/instances/{shown['canonical_instance_id']}"):
            [link] = re.findall(r'href="(/[^"]+/outputs/out)"', (await grace.get(page))[1])
        batch_page = (await grace.get(f"/batches/{shown['batch_id']}"))[1]
        [whole] = re.findall(r'href="(/[^"]+/outputs)" download>Results', batch_page)
        async with grace.http.get(f"{server.url.rstrip('/')}{whole}") as response:
            with tarfile.open(fileobj=io.BytesIO(await response.read())) as tar:
                assert [name for name in tar.getnames() if name.endswith("/out")], tar.getnames()
        assert "it is open" in (await grace.get(f"/jobs/{unfinished}"))[1]
        async with grace.http.get(f"{server.url.rstrip('/')}{link}", headers={"Range": "bytes=0-3"}) as response:
            assert (response.status, await response.read()) == (206, RIGHT[:4])
            assert response.headers["Content-Type"] == "application/octet-stream"
            assert response.headers["Content-Disposition"].startswith('attachment; filename="out"')
            assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_results_command_reports_missing_files(server: LiveServer, tmp_path: Path) -> None:
    batch_id, valid, _ = await a_batch_with_one_result(server)
    here, there = tmp_path / "here", tmp_path / "there"

    first = json.loads((await collected(server, batch_id, here, "--json", through=False)).stdout)
    other = json.loads((await collected(server, batch_id, there, "--json", through=True)).stdout)
    again = await collected(server, batch_id, here, through=False)

    assert {**first, "to": ""} == {**other, "to": ""}
    assert (first["files"], first["nbytes"], first["fetched"], first["missing"]) == (1, len(RIGHT), 1, [])
    assert [one["because"] for one in first["without_result"]] == ["it is open", "it is open"]
    for folder in (here, there):
        assert [str(path.relative_to(folder)) for path in folder.rglob("*/*") if path.is_file()] == ["0/out"]
        assert (folder / "0/out").read_bytes() == RIGHT
        with (folder / "index.csv").open(newline="") as file:
            [row, *others] = csv.DictReader(file)
        assert (row["job_id"], row["state"], row["files"], row["exit_status"]) == (str(valid), "valid", "0/out", "0")
        assert row["host_id"] and float(row["elapsed_s"]) > 0
        assert [one["because"] for one in others] == ["it is open", "it is open"]
    facts = (
        "1 file of 1 job",
        f"in {here}",
        "0 fetched",
        "1 already present",
        "2 jobs without a result:",
        "it is open",
    )
    assert not missing(again.stdout.splitlines()[0], f"batch {batch_id}:", *facts)

    await asyncio.to_thread(run_the_page, server, tmp_path)

    [stored] = server.project.upload_dir.rglob("*_r0")
    stored.unlink()
    for folder, through in ((tmp_path / "late", False), (tmp_path / "later", True)):
        done = await collected(server, batch_id, folder, through=through)
        assert (done.exit_code, done.stderr) == (1, "")
        assert not missing(done.stdout, f"job {valid}, output out:", f"no file {stored.name}", f"{len(RIGHT)} bytes")
        assert "0 files of 1 job " in done.stdout and "1 MISSING" in done.stdout
        assert not any(path.is_file() for path in folder.rglob("*/*"))
