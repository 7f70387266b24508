"""The upload address: header, token, offset and bytes, on a real folder."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from yarl import URL

from domain.dispatch import ExpectedOutput
from domain.units import InstanceId, Instant
from tests.fuzz.loops import lasting_loop
from tests.fuzz.requests import Requests
from tests.fuzz.watch import Run
from tests.unit.transfer.clocks import FixedClock
from transfer.project_files import ProjectFiles
from transfer.upload_folder import UploadFolder
from transfer.uploads import UploadHandler
from transfer.urls import UploadTokens
from wire.messages import SizeQuery, UploadHeader
from wire.uploads import encode_size_query, encode_upload_header

TOKENS = UploadTokens(b"s" * 32)
NAMES = ("pi_3_41_77_r0", "pi_3_41_78_r1")
MOST_BYTES = 100_000
ADDRESS = URL("/upload")


class OneInstance:
    """Upload records of instance 77."""

    async def expected(self, instance_id: InstanceId, name: str) -> ExpectedOutput | None:
        return ExpectedOutput(accepted=True, recorded=None) if instance_id == 77 else None

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
        return instance_id == 77


def upload_target() -> Run:
    """Check that any bytes get an HTTP answer, and that nothing is written outside the folder."""
    loop = lasting_loop()
    root = Path(tempfile.mkdtemp(prefix="muster-fuzz-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    uploads = UploadHandler(
        UploadFolder(root / "upload"),
        ProjectFiles(root),
        TOKENS,
        OneInstance(),
        FixedClock(),
        max_bytes=lambda: MOST_BYTES,
    )

    requests = Requests(loop)

    async def answer(raw: bytes) -> None:
        response = await uploads.answer(requests.of("POST", ADDRESS, raw))
        assert response.status in (200, 400, 413), response.status

    def run(raw: bytes) -> None:
        loop.run_until_complete(answer(raw))
        assert [path.name for path in root.iterdir()] in ([], ["upload"])

    return run


def upload_seeds() -> Sequence[bytes]:
    """Return uploads for UploadHandler: whole, resumed, with wrong and missing token; and size queries."""
    content = bytes(range(256)) * 8
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    seeds = [encode_size_query(SizeQuery(name)) for name in NAMES]
    for name in NAMES:
        for offset, wrong in ((0, False), (1000, False), (0, True)):
            header = UploadHeader(
                name=name,
                token=TOKENS.token(name, 50_000),
                max_bytes=50_000,
                nbytes=len(content),
                md5="0" * 32 if wrong else md5,
                offset=offset,
            )
            seeds.append(encode_upload_header(header) + content[offset:])
    return seeds
