"""Errors in uploads and downloads are reported; nothing is lost, half-written or disclosed."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import pytest_asyncio
import yarl

from administration.checking.inspection import inspect
from demo.load.jobs import VolunteerTask
from domain.jobs import InstanceState
from tests.acceptance.evidence import evidence, files_below
from tests.acceptance.host import RIGHT, Host
from tests.acceptance.server import LiveServer
from tests.facts import missing
from transfer.keys import load_keys
from transfer.urls import UploadTokens
from wire.messages import STATE_UPLOADED, UploadHeader
from wire.uploads import STATUS_TRY_AGAIN, encode_upload_header

S = InstanceState


async def test_upload_with_wrong_md5_restarts(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()

    wrong = await host.upload(task, b"damaged\n", md5=hashlib.md5(RIGHT).hexdigest())
    kept = (await host.size(task)).file_size
    nothing = files_below(server.project.upload_dir)
    await host.work(task)
    await server.validate()

    assert wrong.status == 1
    assert not missing(wrong.message, "MD5", "whole file again")
    assert (kept, nothing) == (0, {})
    assert list(files_below(server.project.upload_dir).values()) == [hashlib.md5(RIGHT).hexdigest()]
    assert (await server.batch(batch_id))["state"] == "complete"


async def test_result_without_its_output_is_no_success(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    host.end(task, STATE_UPLOADED)

    await host.call()
    await server.validate()

    first, retry = await server.instances(batch_id)
    assert (first.state, retry.state) == (S.FAILED, S.UNSENT)
    assert not missing(first.reason or "", "output out", "not produced", "100000 bytes")


async def test_part_of_a_lost_job_was_not_reported_as_success(server: LiveServer) -> None:
    """Half an output came; then a request comes that does not list the job, and whose client wants no new jobs."""
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    assert (await host.upload(task, cut_at=3)).status == STATUS_TRY_AGAIN
    await host.call(other_results=(), dont_send_work=True)

    [lost, *_] = await server.instances(batch_id)
    assert (lost.state, lost.exit_status) == (S.ABORTED, None)
    async with server.store.checking.session() as session:
        found = await inspect(session, server.project.upload_dir, limit=9, contents=False, progress=lambda *_: None)
    assert (found.counts.unfinished, found.counts.unacknowledged_places) == (1, [])


@pytest.mark.parametrize(
    ("header", "facts"),
    [
        ({"token": "0" * 64}, ("token",)),
        ({"token": ""}, ("token",)),
        ({"max_bytes": 10**12}, ("token",)),
        ({"nbytes": 100_001}, ("has 100,001 B", "limit is 100,000 B")),
        ({"nbytes": 3, "offset": 4}, ("offset 4", "beyond the end", "at 3")),
    ],
)
async def test_upload_without_a_signed_grant_is_refused(
    server: LiveServer, header: dict[str, Any], facts: tuple[str, ...]
) -> None:
    await server.add_app()
    await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    before = await evidence(server.project)

    reply = await host.upload(task, RIGHT, **header)

    assert (reply.status, missing(reply.message, *facts)) == (-1, [])
    assert await evidence(server.project) == before
    assert (await host.upload(task)).status == 0


Given = tuple[Host, VolunteerTask]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def given(shared_pi: LiveServer) -> Given:
    """A host with a task of one output."""
    await shared_pi.submit()
    host = await shared_pi.add_host()
    [task] = await host.ask()
    return host, task


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "name",
    [
        "../../keys/upload_secret",
        "/etc/passwd",
        "..",
        "%2e%2e%2fpi_1_1_1_r0",
        "a/pi_1_1_1_r0",
        ".hidden_1_r0",
        "pi_1_1_1_r0\\..\\x",
        "pi_1_1_1",
        "pi_9_9_9_r0",
    ],
)
async def test_upload_names_stay_in_the_folder(shared_pi: LiveServer, given: Given, name: str) -> None:
    host, task = given
    before = await evidence(shared_pi.project)
    token = UploadTokens(load_keys(shared_pi.project.keys_dir).upload_secret).token(name, 1000)  # even with a valid one
    header = UploadHeader(name, token, 1000, len(RIGHT), hashlib.md5(RIGHT).hexdigest(), 0)

    reply = await host.bring(task.upload_url, encode_upload_header(header) + RIGHT)

    assert reply.status == -1
    assert [] in (missing(reply.message, "output file name"), missing(reply.message, "no instance"))
    assert await evidence(shared_pi.project) == before


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "path",
    [
        "download/00/..%2F..%2F..%2Fkeys%2Fupload_secret",
        "download/%2e%2e/upload_secret",
        "download/..%5C..%5Ckeys/upload_secret",
        "download/00/%2Fetc%2Fpasswd",
        "download/../keys/upload_secret",
        "download/",
        "keys/upload_secret",
    ],
)
async def test_download_addresses_stay_in_the_folder(shared_pi: LiveServer, path: str) -> None:
    async with shared_pi.http.get(yarl.URL(shared_pi.url + path, encoded=True)) as response:
        assert response.status == 404
        assert load_keys(shared_pi.project.keys_dir).upload_secret.hex() not in await response.text()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("body", "status", "facts"),
    [
        (b"hello", 400, ("upload request:", "<data_server_request>", "'hello'")),
        (b"", 400, ("upload request:", "header", "0 bytes")),
        (b"<data_server_request>\n<file_upload>", 400, ("upload request:", "header", "35 bytes")),
        (b"<data_server_request>" + b" " * 20_000, 413, ("upload header:", "at most 16384")),
    ],
)
async def test_malformed_upload_request_is_refused(
    shared_pi: LiveServer, body: bytes, status: int, facts: tuple[str, ...]
) -> None:
    before = await evidence(shared_pi.project)

    async with shared_pi.http.post(f"{shared_pi.url}upload", data=body) as response:
        assert (response.status, missing(await response.text(), *facts)) == (status, [])

    assert await evidence(shared_pi.project) == before
