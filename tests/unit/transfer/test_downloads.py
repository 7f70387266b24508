"""Tests that clients get a file's exact bytes, all of them or the missing part."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from domain.errors import AlreadyExistsError, InvalidInputError
from tests.facts import states
from transfer.downloads import ROUTE, Downloads
from transfer.files import Content, shard, stored_path
from transfer.project_files import ProjectFiles

CONTENT = bytes(range(256)) * 40
ADDRESS = f"/download/{shard('app')}/app"
Client = TestClient[web.Request, web.Application]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    files = ProjectFiles(tmp_path)
    await register(tmp_path, CONTENT, "app")
    (stored_path(tmp_path / "download", "app").parent / "app.gz").write_bytes(b"another file")
    (tmp_path / "secret").write_bytes(b"secret")
    application = web.Application()
    application.router.add_get(ROUTE, Downloads(files).answer)
    async with TestClient(TestServer(application)) as client:
        yield client


async def test_a_file_is_sent_whole_and_may_be_kept_for_ever(client: Client) -> None:
    async with client.get(ADDRESS) as response:
        assert response.status == 200
        assert await response.read() == CONTENT
        assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert response.headers["Content-Type"] == "application/octet-stream"


async def test_an_interrupted_download_goes_on_where_it_stopped(client: Client) -> None:
    async with client.get(ADDRESS, headers={"Range": "bytes=5000-"}) as response:
        assert response.status == 206
        assert response.headers["Content-Range"] == f"bytes 5000-{len(CONTENT) - 1}/{len(CONTENT)}"
        assert await response.read() == CONTENT[5000:]


async def test_a_part_is_sent_under_the_files_own_tag(client: Client) -> None:
    async with client.head(ADDRESS) as response:
        tag = response.headers["ETag"]
    async with client.get(ADDRESS, headers={"Range": "bytes=0-9", "If-Range": tag}) as response:
        assert response.status == 206
        assert await response.read() == CONTENT[:10]


async def test_a_part_is_sent_under_the_files_own_date(client: Client) -> None:
    async with client.head(ADDRESS) as response:
        date = response.headers["Last-Modified"]
    async with client.get(ADDRESS, headers={"Range": "bytes=0-9", "If-Range": date}) as response:
        assert response.status == 206


@pytest.mark.parametrize("condition", ['"another-tag"', "Mon, 01 Jan 2001 00:00:00 GMT"])
async def test_under_another_condition_the_whole_file_is_sent(client: Client, condition: str) -> None:
    async with client.get(ADDRESS, headers={"Range": "bytes=0-9", "If-Range": condition}) as response:
        assert response.status == 200
        assert await response.read() == CONTENT


async def test_a_range_past_the_end_cannot_be_satisfied(client: Client) -> None:
    async with client.get(ADDRESS, headers={"Range": f"bytes={len(CONTENT)}-"}) as response:
        assert response.status == 416


async def test_head_tells_the_size_without_the_file(client: Client) -> None:
    async with client.head(ADDRESS) as response:
        assert response.status == 200
        assert response.headers["Content-Length"] == str(len(CONTENT))
        assert await response.read() == b""


async def test_a_neighbour_named_gz_is_not_taken_for_a_compressed_form(client: Client) -> None:
    headers = {"Accept-Encoding": "deflate, gzip, br, zstd"}
    async with client.get(ADDRESS, headers=headers) as response:
        assert "Content-Encoding" not in response.headers
        assert await response.read() == CONTENT


@pytest.mark.parametrize(
    "address",
    [
        "/download/00/app",
        f"/download/{shard('none')}/none",
        "/download/%2e%2e/secret",
        "/download/00/..%2f..%2f..%2fsecret",
        "/download/00/%2e%2e%2fsecret",
        "/download/00/a%00b",
        "/download/..%2f/secret",
    ],
)
async def test_what_is_not_there_is_not_found(client: Client, address: str) -> None:
    async with client.get(URL(address, encoded=True)) as response:
        assert response.status == 404
        assert b"secret" not in await response.read()


async def test_a_file_that_is_not_there_says_so_in_text(client: Client) -> None:
    async with client.get("/download/00/none") as response:
        assert await response.text() == "no such file\n"


async def register(folder: Path, source: Path | bytes, name: str, *, max_bytes: int = 1_000_000) -> Content:
    if isinstance(source, bytes):
        content, source = source, folder / "source"
        source.write_bytes(content)
    return await ProjectFiles(folder).register(source, name, max_bytes=max_bytes)


def files_in(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "download").rglob("*") if path.is_file()]


async def test_a_registered_file_tells_its_size_and_md5(tmp_path: Path) -> None:
    nbytes, md5 = await register(tmp_path, b"hello world\n", "hello")
    assert (nbytes, md5) == (12, "6f5902ac237024bdd0c176cb93063dc4")
    assert stored_path(tmp_path / "download", "hello").read_bytes() == b"hello world\n"


async def test_a_file_is_copied_from_its_path(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 3_000_000)
    content = await register(tmp_path, source, "big", max_bytes=3_000_000)
    assert content == (3_000_000, hashlib.md5(b"x" * 3_000_000).hexdigest())
    assert stored_path(tmp_path / "download", "big").read_bytes() == source.read_bytes()


async def test_equal_content_may_be_registered_again(tmp_path: Path) -> None:
    first = await register(tmp_path, b"same", "name")
    assert await register(tmp_path, b"same", "name") == first
    assert len(files_in(tmp_path)) == 1


async def test_other_content_under_known_name_is_refused(tmp_path: Path) -> None:
    await register(tmp_path, b"first", "name")
    with pytest.raises(AlreadyExistsError, match="file 'name' already exists"):
        await register(tmp_path, b"other", "name")
    assert stored_path(tmp_path / "download", "name").read_bytes() == b"first"
    assert len(files_in(tmp_path)) == 1


async def test_a_file_over_the_limit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with states(InvalidInputError, "big:", "at most 10 B"):
        await register(tmp_path, b"x" * 11, "big", max_bytes=10)
    assert files_in(tmp_path) == []


async def test_a_source_that_is_no_file_is_named(tmp_path: Path) -> None:
    with states(InvalidInputError, f"{tmp_path / 'missing'}:", "a readable file"):
        await register(tmp_path, tmp_path / "missing", "name")
    assert files_in(tmp_path) == []


async def test_an_unsafe_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="file name"):
        await register(tmp_path, b"", "../name")
