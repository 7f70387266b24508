"""Tests that the routes serve the addresses of the URLs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from domain.dispatch import ExpectedOutput
from domain.settings import Settings
from domain.units import InstanceId, Instant
from tests.unit.transfer.clocks import FixedClock
from transfer.build import build
from transfer.files import stored_path
from transfer.keys import create_keys, load_keys
from transfer.project_files import ProjectFiles
from wire.messages import UploadHeader, UploadReply
from wire.uploads import decode_upload_reply, encode_upload_header

NAME = "pi_3_41_77_r0"


class AnyRecords:
    """Accepts every upload."""

    async def expected(self, instance_id: InstanceId, name: str) -> ExpectedOutput | None:
        return ExpectedOutput(accepted=True, recorded=None)

    async def record_upload(
        self,
        instance_id: InstanceId,
        *,
        name: str,
        nbytes: int,
        md5: str,
        completed_at: Instant,
        replace: bool = False,
    ) -> bool:
        return True


async def test_addresses_serve_downloads_and_uploads(tmp_path: Path) -> None:
    create_keys(tmp_path / "keys")
    files = ProjectFiles(tmp_path)
    transfer = build(
        AnyRecords(),
        load_keys(tmp_path / "keys"),
        files,
        upload_dir=tmp_path / "upload",
        settings=Settings,
        clock=FixedClock(),
    )
    (tmp_path / "input").write_bytes(b"input")
    await files.register(tmp_path / "input", "größe 1+1", max_bytes=10)
    application = web.Application()
    application.router.add_routes(transfer.routes)
    md5 = hashlib.md5(b"output").hexdigest()
    header = UploadHeader(NAME, transfer.urls.token(NAME, 10), max_bytes=10, nbytes=6, md5=md5, offset=0)
    async with TestClient(TestServer(application)) as client:
        async with client.get(urlsplit(transfer.urls.download_url("größe 1+1")).path) as response:
            assert await response.read() == b"input"
        path = urlsplit(transfer.urls.upload_url()).path
        async with client.post(path, data=encode_upload_header(header) + b"output") as response:
            assert decode_upload_reply(await response.read()) == UploadReply(0)
    assert stored_path(tmp_path / "upload", NAME).read_bytes() == b"output"
