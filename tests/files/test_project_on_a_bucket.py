"""The whole server with its files in a bucket: real HTTP, a real PostgreSQL, a real S3-compatible server."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

import pytest

from administration.checking.inspection import Inspection, inspect
from administration.copying import copy_all
from administration.project import create_project
from administration.purge import months_before, purge_months
from domain.units import DAY_S, BatchId, Instant
from muster_client import Client
from tests.acceptance.host import RIGHT, Host
from tests.acceptance.server import PROGRAM, LiveServer, a_batch, live_server
from tests.acceptance.test_results import own_token
from tests.faults.proxy import proxied
from tests.ports import free_port
from tests.s3 import S3Server
from transfer.file_store import Area, FileKey
from transfer.project_files import ObjectCleaner, ProjectFiles
from transfer.upload_folder import LOOK_EVERY_S

pytestmark = pytest.mark.database
INPUT = b"the input\n"
VALIDATOR = {"kind": "tolerance", "tolerance": 1e-6}  # reads the contents
JOBS = {"inputs": [{"name": "in_1.txt", "open_name": "in"}], "quorum": 2, "validator": VALIDATOR}


@pytest.fixture
async def server(tmp_path: Path, keys_dir: Path, bucket_url: str) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, keys_dir, settings={"storage.url": bucket_url}) as running:
        yield running


async def files_of(server: LiveServer) -> ProjectFiles:
    settings = (await server.store.applications.load_catalogue()).settings.storage
    return ProjectFiles(server.project.files_dir, lambda: settings)


async def objects_of(server: LiveServer, area: Area) -> list[FileKey | None]:
    [bucket] = (await files_of(server)).buckets
    return [one.key async for page in bucket.listed(area) for one in page]


def in_folder(server: LiveServer) -> list[str]:
    return [path.name for path in server.project.files_dir.rglob("*") if path.is_file() and path.name != ".identity"]


async def checked(server: LiveServer, *, deleted_before: float = 0.0) -> Inspection:
    async with server.store.checking.session() as session:
        return await inspect(
            session,
            server.project.upload_dir,
            limit=20,
            contents=True,
            progress=lambda *_: None,
            deleted_before=Instant(deleted_before),
            buckets=(await files_of(server)).buckets,
        )


async def a_valid_batch(server: LiveServer) -> tuple[BatchId, Host]:
    """Run a job with two instances whose contents are compared."""
    await server.add_app()
    await server.create("PUT", "/files/in_1.txt", data=INPUT)
    batch_id = await server.submit(jobs=JOBS)
    for name in ("ada", "bob"):
        host = await server.add_host(name)
        [task] = await host.ask(1)
        await host.work(task)
    await validated(server, batch_id)
    return batch_id, host


async def validated(server: LiveServer, batch_id: BatchId) -> None:
    """Run rounds of the validator until the batch's only job is valid; a comparison may outlast a round."""
    async with asyncio.timeout(60):
        while (await server.batch(batch_id))["jobs_validated"] != 1:
            await server.validate()


async def test_a_batch_is_computed_with_files_in_a_bucket(server: LiveServer, tmp_path: Path) -> None:
    batch_id, _ = await a_valid_batch(server)
    job = await server.job_of(batch_id)

    assert (len(await objects_of(server, Area.DOWNLOAD)), len(await objects_of(server, Area.UPLOAD))) == (2, 2)
    assert in_folder(server) == []
    async with Client(server.url, own_token(server)) as client:
        [output] = (await client.job_outputs(job.job_id))["outputs"]
        assert output["state"] == "here"
        assert await client.fetch_output(job.job_id, "out", tmp_path / "out") == len(RIGHT)
        await client.fetch_outputs(batch_id, tmp_path / "all.tar")
    assert (tmp_path / "out").read_bytes() == RIGHT
    with tarfile.open(tmp_path / "all.tar") as tar:
        assert tar.getnames() == [f"{job.job_id}/out", "missing.jsonl"]
        assert cast(IO[bytes], tar.extractfile(f"{job.job_id}/out")).read() == RIGHT
    found = await checked(server)
    assert (found.found, found.counts.outputs, found.counts.files) == (0, 2, 2)


async def test_a_batch_is_read_from_a_csv_file_of_the_bucket(server: LiveServer) -> None:
    await server.add_app()
    await server.create("PUT", "/files/jobs.csv", data=b"command_line\n--one\n--two\n")

    batch = a_batch(jobs_csv="jobs.csv")
    cast(dict[str, object], batch["jobs"]).pop("count")
    answer = await server.create("POST", "/batches", json=batch)

    assert len(await server.jobs(BatchId(answer["batch_id"]))) == 2
    assert not list(server.project.data_dir.glob("copy-*"))


@pytest.mark.parametrize("redirect", [False, True])
async def test_clients_download_through_the_node_or_by_redirect(
    tmp_path: Path, keys_dir: Path, bucket_url: str, redirect: bool
) -> None:
    settings = {"storage.url": bucket_url, "storage.redirect": redirect}
    async with live_server(tmp_path, keys_dir, settings=settings) as server:
        await server.add_app()
        await server.submit()
        host = await server.add_host()
        reply = await host.call(cpu_req_s=1.0, cpu_req_instances=1.0)
        [program] = reply.downloads
        assert await host.download(program) == PROGRAM
        address = program.urls[0]
        part = {"Range": "bytes=5-"}
        async with server.http.get(address, headers=part, allow_redirects=True) as response:
            assert (response.status, await response.read()) == (206, PROGRAM[5:])
            assert len(response.history) == int(redirect)
        async with server.http.get(address, headers={"Range": f"bytes={len(PROGRAM)}-"}) as response:
            assert response.status == 416
        async with server.http.get(f"{server.url}download/00/none") as response:
            assert response.status == 404
        if not redirect:
            async with server.http.head(address) as response:
                assert response.headers["Content-Length"] == str(len(PROGRAM))


async def test_a_second_node_needs_no_shared_folder(server: LiveServer, tmp_path: Path) -> None:
    project = create_project(tmp_path / "second", server.project.database_url)
    (tmp_path / "second" / "keys").symlink_to(server.project.keys_dir)
    port = free_port()
    await server.start_worker(port, project)
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask(1)
    elsewhere = replace(task, upload_url=f"http://127.0.0.1:{port}/upload")

    await host.upload(task, cut_at=3)
    assert ((await host.size(task)).file_size, (await host.size(elsewhere)).file_size) == (2, 0)
    await host.work(elsewhere)
    await validated(server, batch_id)

    async with Client(f"http://127.0.0.1:{port}/", own_token(server)) as client:
        await client.fetch_output(1, "out", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == RIGHT


async def test_purge_empties_the_bucket_of_a_month(server: LiveServer) -> None:
    await a_valid_batch(server)
    await server.forward(30 * DAY_S)
    await server.sweep()
    await server.history()

    await purge_months(
        server.store.history,
        await files_of(server),
        await months_before(server.store.history, "9998-12"),
        clock=server.clock,
        progress=lambda month: None,
    )

    assert (await objects_of(server, Area.UPLOAD), len(await objects_of(server, Area.DOWNLOAD))) == ([], 2)


async def test_check_finds_what_the_bucket_lost_and_does_not_need(server: LiveServer) -> None:
    await a_valid_batch(server)
    [bucket] = (await files_of(server)).buckets
    lost, damaged = [key for key in await objects_of(server, Area.UPLOAD) if key is not None]
    await bucket.delete([lost])
    content = await bucket.content(damaged)
    assert content is not None
    await bucket.put(io.BytesIO(b"2.71828\n"), damaged, content)
    stray = FileKey(Area.UPLOAD, damaged.name, "0" * 32)
    await bucket.put(io.BytesIO(b""), stray, content)

    found = await checked(server, deleted_before=server.clock.now() + DAY_S)

    things = [one.thing for some in found.wrong.values() for one in some]
    assert {f"output {lost.name}", f"output {damaged.name}"} < set(things)
    assert [one.endswith(stray.md5) for one in things].count(True) == 1


async def test_objects_without_a_record_are_deleted_when_old(server: LiveServer) -> None:
    await a_valid_batch(server)
    files = await files_of(server)
    [bucket] = files.buckets
    kept = [key for key in await objects_of(server, Area.UPLOAD) if key is not None]
    other = FileKey(Area.UPLOAD, kept[0].name, "0" * 32)
    gone = FileKey(Area.UPLOAD, "pi_1_1_99999_r0", "1" * 32)
    for key in (other, gone):
        await bucket.put(io.BytesIO(b"x"), key, (await bucket.content(kept[0])) or pytest.fail())
    settings = (await server.store.applications.load_catalogue()).settings.storage
    cleaner = ObjectCleaner(files, server.store.restoring, server.clock, lambda: settings)

    assert await all_rounds(server, cleaner) == 0
    server.clock.forward(60 * DAY_S)
    assert await all_rounds(server, cleaner) == 2
    assert await objects_of(server, Area.UPLOAD) == kept


async def all_rounds(server: LiveServer, cleaner: ObjectCleaner) -> int:
    """Clean every sub-folder; return how many objects were deleted."""
    deleted = 0
    for _ in range(256):
        deleted += await cleaner.run_once()
        server.clock.forward(LOOK_EVERY_S)
    return deleted


async def test_other_work_goes_on_while_the_store_is_away(tmp_path: Path, keys_dir: Path, s3: S3Server) -> None:
    async with proxied(s3.endpoint) as proxy:
        url = s3.address(tmp_path.name, f"http://127.0.0.1:{proxy.port}")
        async with live_server(tmp_path, keys_dir, settings={"storage.url": url}) as server:
            await server.add_app()
            batch_id = await server.submit(jobs={"quorum": 2, "validator": VALIDATOR})
            plain_id = await server.submit()
            tasks = []
            for name in ("ada", "bob", "eve"):
                host = await server.add_host(name)
                [task] = await host.ask(1)
                await host.work(task)
                tasks.append((host, task))
            proxy.cut()

            await server.validate()
            await server.sweep()
            assert (await server.batch(plain_id))["jobs_validated"] == 1  # needs no contents
            assert (await server.batch(batch_id))["jobs_validated"] == 0
            assert [one.state.value for one in await server.instances(batch_id)] == ["reported", "reported"]
            status, answer = await server.api("PUT", "/files/late.txt", data=INPUT)
            assert status == 503, answer
            host = await server.add_host("late")
            assert await host.call() is not None
            async with server.http.get(f"{server.url}download/80/none") as response:
                assert response.status in {404, 503}

            await proxy.listen()
            server.clock.forward(3600.0)
            await validated(server, batch_id)
            assert (await checked(server)).found == 0


async def test_files_move_to_a_bucket_and_back(tmp_path: Path, keys_dir: Path, bucket_url: str) -> None:
    async with live_server(tmp_path, keys_dir) as server:
        await a_valid_batch(server)
        before = {path.name for path in server.project.files_dir.rglob("*") if path.is_file()}
        await server.store.settings.set_settings(
            {"storage.url": bucket_url}, now=server.clock.now(), who="test", why="move"
        )

        copied, again, deleted = [await moved(server, delete=delete) for delete in (False, False, True)]
        assert (copied, again, deleted) == ((4, 0, 0), (0, 4, 0), (0, 4, 4))
        assert (in_folder(server), (await checked(server)).found) == ([], 0)

        await server.store.settings.set_settings(
            {"storage.url": "", "storage.read_url": bucket_url}, now=server.clock.now(), who="test", why="back"
        )
        assert [await moved(server, delete=delete) for delete in (False, True)] == [(4, 0, 0), (0, 4, 4)]
        assert {path.name for path in server.project.files_dir.rglob("*") if path.is_file()} == before
        assert (await objects_of(server, Area.UPLOAD), (await checked(server)).found) == ([], 0)


async def moved(server: LiveServer, *, delete: bool) -> tuple[int, int, int]:
    async with server.store.checking.session() as session:
        done = await copy_all(session, await files_of(server), delete=delete, progress=lambda *_: None)
    assert done.wrong == []
    return done.copied, done.present, done.deleted


async def test_a_damaged_file_is_not_copied(tmp_path: Path, keys_dir: Path, bucket_url: str) -> None:
    async with live_server(tmp_path, keys_dir) as server:
        await a_valid_batch(server)
        damaged = next(path for path in server.project.upload_dir.rglob("*_r0"))
        damaged.chmod(0o644)
        damaged.write_bytes(bytes(len(RIGHT)))
        await server.store.settings.set_settings(
            {"storage.url": bucket_url}, now=server.clock.now(), who="test", why="move"
        )

        async with server.store.checking.session() as session:
            done = await copy_all(session, await files_of(server), delete=False, progress=lambda *_: None)

        assert (done.copied, [one.thing for one in done.wrong]) == (3, [f"file {damaged.name}"])
        assert damaged.name not in {key.name for key in await objects_of(server, Area.UPLOAD) if key}
