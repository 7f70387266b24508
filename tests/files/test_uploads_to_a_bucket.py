"""An upload is stored in the bucket, then recorded, then acknowledged, and a failure in between loses nothing."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from domain.clock import SystemClock
from domain.dispatch import Upload
from domain.settings import StorageSettings
from tests.faults.proxy import Proxy, proxied
from tests.s3 import FULL, S3Server, answers, reads
from tests.unit.transfer.test_uploads import CONTENT, NAME, Server, a_header
from transfer.file_store import Area
from transfer.project_files import ProjectFiles
from transfer.upload_folder import UploadFolder
from wire.uploads import STATUS_DONE, STATUS_NEVER, STATUS_TRY_AGAIN

MD5 = hashlib.md5(CONTENT).hexdigest()
RECORDED = Upload(NAME, len(CONTENT), MD5)
OTHER = b"other content of the same name"
OTHER_UPLOAD = Upload(NAME, len(OTHER), hashlib.md5(OTHER).hexdigest())


def files_of(folder: Path, url: str) -> ProjectFiles:
    return ProjectFiles(folder, lambda: StorageSettings(url=url))


class Nodes:
    """Nodes with one database and one bucket, and a folder each."""

    def __init__(self, *nodes: Server, files: ProjectFiles) -> None:
        self.first, self.second = nodes[0], nodes[-1]
        self.files = files

    async def stored(self) -> list[Upload]:
        """Return the outputs in the bucket."""
        pages = self.files.buckets[0].listed(Area.UPLOAD)
        keys = [(one.key, one.stat.nbytes) async for page in pages for one in page]
        return sorted((Upload(key.name, nbytes, key.md5) for key, nbytes in keys if key), key=lambda one: one.nbytes)

    def recorded(self) -> list[Upload]:
        return [Upload(name, nbytes, md5) for name, (_, nbytes, md5, _) in self.first.records.known.items()]

    def here(self) -> list[str]:
        """Return the files in the first node's folder."""
        folder = self.first.folder.path(NAME).parent
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@asynccontextmanager
async def nodes_of(folder: Path, url: str) -> AsyncIterator[Nodes]:
    async with AsyncExitStack() as stack:
        servers = []
        for name in ("a", "b"):
            files = files_of(folder / name, url)
            server = Server(UploadFolder(folder / name / "upload"), files=files)
            (folder / name).mkdir(parents=True)
            await stack.enter_async_context(server.client)
            servers.append(server)
        servers[1].records.known = servers[0].records.known
        yield Nodes(*servers, files=files_of(folder / "a", url))


@pytest.fixture
async def nodes(tmp_path: Path, bucket_url: str) -> AsyncIterator[Nodes]:
    async with nodes_of(tmp_path, bucket_url) as made:
        yield made


async def test_a_complete_upload_is_in_the_bucket_alone(nodes: Nodes) -> None:
    reply = await nodes.first.upload(a_header(), CONTENT)

    assert reply.status == STATUS_DONE
    assert (await nodes.stored(), nodes.recorded(), nodes.here()) == ([RECORDED], [RECORDED], [])
    assert [await server.size() for server in (nodes.first, nodes.second)] == [len(CONTENT)] * 2


async def test_an_upload_resumes_on_its_node_and_restarts_on_another(nodes: Nodes) -> None:
    await nodes.first.upload(a_header(), CONTENT[:100])

    assert (await nodes.first.size(), await nodes.second.size()) == (99, 0)
    assert (await nodes.second.upload(a_header(), CONTENT)).status == STATUS_DONE
    assert (await nodes.first.upload(a_header(offset=99), CONTENT[99:])).status == STATUS_DONE
    assert (await nodes.stored(), nodes.recorded()) == ([RECORDED], [RECORDED])


async def test_an_acknowledged_upload_may_come_again(nodes: Nodes) -> None:
    for server in (nodes.first, nodes.first, nodes.second):
        assert (await server.upload(a_header(), CONTENT)).status == STATUS_DONE

    assert (await nodes.stored(), nodes.recorded(), nodes.here()) == ([RECORDED], [RECORDED], [])


async def test_other_content_is_kept_beside_and_recorded(nodes: Nodes) -> None:
    header = a_header(OTHER)
    await nodes.first.upload(a_header(), CONTENT)

    assert (await nodes.second.upload(header, OTHER)).status == STATUS_DONE
    assert nodes.recorded() == [OTHER_UPLOAD]
    assert {one.md5 for one in await nodes.stored()} == {MD5, OTHER_UPLOAD.md5}


async def test_other_content_after_the_report_replaces_nothing(nodes: Nodes) -> None:
    header = a_header(OTHER)
    await nodes.first.upload(a_header(), CONTENT)
    nodes.second.records.accepted = False

    assert (await nodes.second.upload(header, OTHER)).status == STATUS_NEVER
    assert (await nodes.stored(), nodes.recorded()) == ([RECORDED], [RECORDED])


async def test_a_file_without_a_record_is_not_acknowledged(nodes: Nodes) -> None:
    """The server stopped, or lost its database, after the file was stored."""
    nodes.first.records.available = False
    assert (await nodes.first.upload(a_header(), CONTENT)).status == STATUS_TRY_AGAIN
    assert await nodes.stored() == [RECORDED]
    nodes.first.records.available = True

    assert await nodes.second.size() == 0
    assert await nodes.first.size() == len(CONTENT)
    assert (await nodes.stored(), nodes.recorded(), nodes.here()) == ([RECORDED], [RECORDED], [])


async def test_an_older_complete_file_of_the_folder_is_stored_first(nodes: Nodes, tmp_path: Path) -> None:
    """It was recorded before the files moved, and an upload of other content must not replace it unseen."""
    header = a_header(OTHER)
    before = Server(UploadFolder(tmp_path / "a" / "upload"))
    before.records.known = nodes.first.records.known
    async with before.client:
        await before.upload(a_header(), CONTENT)
    assert (await nodes.stored(), nodes.here()) == ([], [NAME])

    assert await nodes.first.size() == len(CONTENT)
    assert (await nodes.first.upload(header, OTHER)).status == STATUS_DONE
    assert ({one.md5 for one in await nodes.stored()}, nodes.here()) == ({MD5, OTHER_UPLOAD.md5}, [])


# ---------------------------------------------------------------- the store fails


async def refused_until_thawed(nodes: Nodes, proxy: Proxy) -> None:
    """Check that a refused upload is taken later without its bytes, and that other requests do not wait."""
    assert nodes.recorded() == []
    began_s = SystemClock().monotonic()
    assert await nodes.first.size("pi_3_41_78_r0") == 0
    assert SystemClock().monotonic() - began_s < 5.0
    proxy.delay_s = 0.0
    proxy.thaw()
    await proxy.listen()
    assert await nodes.first.size() == len(CONTENT)
    assert (await nodes.stored(), nodes.recorded(), nodes.here()) == ([RECORDED], [RECORDED], [])


async def test_a_store_that_is_away_refuses_for_now(tmp_path: Path, s3: S3Server) -> None:
    async with (
        proxied(s3.endpoint) as proxy,
        nodes_of(tmp_path, s3.address(tmp_path.name, f"http://127.0.0.1:{proxy.port}")) as nodes,
    ):
        proxy.cut()

        assert (await nodes.first.upload(a_header(), CONTENT)).status == STATUS_TRY_AGAIN
        await refused_until_thawed(nodes, proxy)


@pytest.mark.faults
async def test_a_silent_store_refuses_after_its_time_limit(tmp_path: Path, s3: S3Server) -> None:
    async with (
        proxied(s3.endpoint) as proxy,
        nodes_of(tmp_path, s3.address(tmp_path.name, f"http://127.0.0.1:{proxy.port}")) as nodes,
    ):
        assert await nodes.stored() == []  # opened
        proxy.freeze()

        assert (await nodes.first.upload(a_header(), CONTENT)).status == STATUS_TRY_AGAIN
        await refused_until_thawed(nodes, proxy)


async def test_a_slow_store_is_waited_for(tmp_path: Path, s3: S3Server) -> None:
    async with (
        proxied(s3.endpoint) as proxy,
        nodes_of(tmp_path, s3.address(tmp_path.name, f"http://127.0.0.1:{proxy.port}")) as nodes,
    ):
        proxy.delay_s = 1.0

        assert (await nodes.first.upload(a_header(), CONTENT)).status == STATUS_DONE
        assert (await nodes.stored(), nodes.recorded()) == ([RECORDED], [RECORDED])


@pytest.mark.faults
async def test_a_full_store_refuses_until_it_has_room(tmp_path: Path, s3: S3Server) -> None:
    own = S3Server(tmp_path / "s3")
    own.start()
    try:
        await answers(own)
        async with nodes_of(tmp_path, own.address("p")) as nodes:
            assert (await nodes.first.upload(a_header(), CONTENT)).status == STATUS_DONE
            own.stop()
            own.start(FULL)
            await reads(own)
            name = "pi_3_42_78_r0"
            token = nodes.first.records.known.copy()

            header = a_header(name=name)
            assert (await nodes.first.upload(header, CONTENT)).status == STATUS_TRY_AGAIN
            assert nodes.first.records.known == token
            own.stop()
            own.start()
            await answers(own)
            assert await nodes.first.size(name) == len(CONTENT)
            assert len(await nodes.stored()) == 2
    finally:
        own.stop()
