"""A large file passes through a process in pieces: its memory stays bounded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.s3 import S3Server

FILE_BYTES = 240_000_000
MOST_BYTES = 80_000_000  # 64 MB of parts for four files at once, and what requests need
PROGRAM = """
import asyncio, resource, sys
from pathlib import Path
from domain.dispatch import Upload
from domain.settings import StorageSettings
from transfer.project_files import ProjectFiles, copy
from transfer.files import content_of

async def main(folder, url):
    files = ProjectFiles(folder, lambda: StorageSettings(url=url))
    source = folder / "source"
    upload = Upload("pi_3_41_77_r0", *content_of(source))
    await files.buckets[0].stats([])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await files.keep(source, upload)
    [found] = await files.outputs([upload])
    assert await copy(found, folder / "copy") == (upload.nbytes, upload.md5)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.usefixtures("s3")
def test_a_large_file_is_sent_and_read_in_bounded_memory(s3_server: S3Server, bucket_url: str, tmp_path: Path) -> None:
    with (tmp_path / "source").open("wb") as file:
        for number in range(FILE_BYTES // 4_000_000):
            file.write(number.to_bytes(4, "big") * 1_000_000)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), bucket_url], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_BYTES
