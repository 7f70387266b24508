"""A real S3-compatible server for tests: SeaweedFS, with its own folder and ports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

from domain.clock import SystemClock
from tests.ports import free_port

PROGRAM = Path(sys.executable).with_name("weed")
BUCKET = "muster"
KEY, SECRET = "muster-key", "muster-secret"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
WITHIN_S = 60.0
FULL = ("-volume.minFreeSpace=100",)  # per cent: every disk counts as full

IDENTITIES = {
    "identities": [
        {
            "name": "muster",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
    ]
}


class S3Server:
    """The server's process. `restart` keeps ports and data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = {
            name: free_port()
            for part in ("master", "volume", "filer", "s3")
            for name in (f"{part}.port", f"{part}.port.grpc")
        }
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "data").mkdir(parents=True)
        (folder / "s3.json").write_text(json.dumps(IDENTITIES))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    def start(self, more: Sequence[str] = ()) -> None:
        """Start the server; it does not answer at once."""
        ports = [f"-{name}={port}" for name, port in self._ports.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(PROGRAM),
                    "-logtostderr=true",
                    "server",
                    f"-dir={self._folder / 'data'}",
                    "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1",
                    *ports,
                    "-master.telemetry=false",
                    "-master.volumeSizeLimitMB=64",
                    "-volume.max=30",
                    "-volume.preStopSeconds=0",
                    "-s3",
                    f"-s3.config={self._folder / 's3.json'}",
                    "-s3.iam=false",
                    "-s3.port.iceberg=0",
                    "-s3.port.lance=0",
                    f"-s3.localSocket={self._folder / 's3.sock'}",
                    f"-filer.localSocket={self._folder / 'filer.sock'}",
                    *more,
                ],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def address(self, prefix: str, endpoint: str = "") -> str:
        """Return the value of `storage.url` for a prefix of the bucket."""
        return f"s3://{BUCKET}/{prefix}?endpoint={endpoint or self.endpoint}"

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")


async def answers(server: S3Server) -> None:
    """Wait until the server answers, and make sure that the bucket exists."""
    until_s = SystemClock().monotonic() + WITHIN_S
    options: dict[str, Any] = {"client_options": {"allow_http": True}, "retry_config": {"max_retries": 0}}
    bucket = S3Store(BUCKET, endpoint=server.endpoint, access_key_id=KEY, secret_access_key=SECRET, **options)
    while True:
        try:
            await obstore.put_async(bucket, ".bucket", b"")  # its server makes the bucket with the first object
        except BaseError:
            if SystemClock().monotonic() > until_s:
                raise TimeoutError(server.log()[-2000:]) from None
            await SystemClock().sleep(0.2)
        else:
            return


async def reads(server: S3Server) -> None:
    """Wait until the server answers, also if it accepts no files."""
    until_s = SystemClock().monotonic() + WITHIN_S
    async with aiohttp.ClientSession() as http:
        while SystemClock().monotonic() < until_s:
            with suppress(aiohttp.ClientError):
                async with http.get(f"{server.endpoint}/healthz") as response:
                    if response.status == 200:
                        return
            await SystemClock().sleep(0.1)
    raise TimeoutError(server.log()[-2000:])


@contextmanager
def credentials() -> Iterator[None]:
    """Inside the block, the environment has the credentials."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield
