"""A worker behind deploy/nginx/muster.conf: a stock client's request, files both ways, and hidden addresses."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from administration.accounts import AccountKeys
from demo.load.volunteer import tasks_of
from domain.clock import SystemClock
from domain.units import Seconds
from tests.acceptance.host import Host
from tests.acceptance.server import PROGRAM, LiveServer, live_server
from tests.ports import free_port
from tests.unit.wire import captured
from transfer.keys import load_keys

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CONF = Path(__file__).parents[2] / "deploy/nginx/muster.conf"
FIRST_CONTACT = 7  # the number of a captured request
RESULT = b"3.14159 " * 400_000

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx: apt-get install nginx-light")

MAIN = """user root;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  include {folder}/muster.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A project behind nginx: `server` is the worker itself, `http` a session that trusts the certificate."""

    server: LiveServer
    http: aiohttp.ClientSession
    url: str
    plain_url: str


def written(folder: Path, *, worker: str, plain: int, tls: int) -> Path:
    """The shipped configuration with other ports and a test certificate."""
    made = f"-keyout {folder}/privkey.pem -out {folder}/fullchain.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=muster -addext subjectAltName=IP:127.0.0.1 {made}"
    subprocess.run(command.split(), check=True, capture_output=True, timeout=60)
    text = re.sub(r"^ *listen \[::\].*\n", "", CONF.read_text(), flags=re.MULTILINE)
    for shipped, here in (
        ("server 127.0.0.1:8080", f"server {worker}"),
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("listen 443 ", f"listen 127.0.0.1:{tls} "),
        ("/etc/ssl/muster", str(folder)),
    ):
        assert shipped in text
        text = text.replace(shipped, here)
    (folder / "muster.conf").write_text(text)
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
    return folder / "nginx.conf"


@pytest.fixture
async def front(tmp_path: Path, keys_dir: Path) -> AsyncIterator[FrontEnd]:
    folder = tmp_path / "nginx"
    folder.mkdir()
    plain, tls = free_port(), free_port()
    url = f"https://127.0.0.1:{tls}/"
    async with live_server(tmp_path, keys_dir, settings={"project.url": url}) as server:
        [worker] = server.workers
        conf = written(folder, worker=worker.url.removeprefix("http://").rstrip("/"), plain=plain, tls=tls)
        nginx = [str(NGINX), "-p", str(folder), "-c", str(conf)]
        started = subprocess.run(
            nginx, capture_output=True, text=True, timeout=30, check=False
        )  # returns when it listens
        assert started.returncode == 0, started.stderr
        trusted = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=folder / "fullchain.pem"))
        try:
            async with aiohttp.ClientSession(connector=trusted) as http:
                yield FrontEnd(server, http, url, f"http://127.0.0.1:{plain}/")
        finally:
            subprocess.run([*nginx, "-s", "stop"], check=True, timeout=30)


async def a_host(front: FrontEnd) -> Host:
    """A host that reaches the project only through the front end."""
    host = await front.server.add_host()
    host.http, host.scheduler_url = front.http, f"{front.url}scheduler"
    return host


async def test_stock_client_works_through_the_front_end(front: FrontEnd) -> None:
    await front.server.add_app()
    batch_id = await front.server.submit(jobs={"count": 2, "outputs": [{"name": "out", "max_bytes": len(RESULT)}]})
    host = await a_host(front)
    body = re.sub(
        rb"(<authenticator>)\w+",
        rb"\g<1>" + host.authenticator.encode(),
        captured.request_at(FIRST_CONTACT, SystemClock().now()),
    )

    status, reply = await host.post(body)
    reply_with_work = await host.call(cpu_req_s=Seconds(1.0), cpu_req_instances=1.0)
    [task] = tasks_of(reply_with_work)
    [program] = [await host.download(one) for one in reply_with_work.downloads if one.name == task.main_program]
    cut = await host.upload(task, RESULT, cut_at=1_500_000)
    offset = (await host.size(task)).file_size
    assert offset is not None
    rest = await host.upload(task, RESULT, offset=offset)
    await host.work(task, RESULT)
    await front.server.validate()

    assert (status, b"<hostid>" in reply) == (200, True)
    assert task.upload_url.startswith(front.url)
    assert program == PROGRAM
    assert (cut.status, offset, rest.status) == (1, 1_499_999, 0)  # size queries report a partial upload one byte short
    assert (await front.server.batch(batch_id))["jobs_validated"] == 1  # the captured client has the other task


async def test_front_end_hides_operator_addresses(front: FrontEnd) -> None:
    seen = {}
    for path in ("", "console/sign-in", "api/v1/openapi.json", "metrics", "healthz", "readyz", "duties"):
        async with front.http.get(front.url + path) as reply:
            seen[path] = reply.status

    assert [path for path, status in seen.items() if status == 404] == ["metrics", "healthz", "readyz", "duties"]
    assert {status for path, status in seen.items() if path not in ("metrics", "healthz", "readyz", "duties")} == {200}


async def test_plain_http_is_redirected_with_its_body(front: FrontEnd) -> None:
    """A client that posts over plain HTTP repeats the same request over TLS."""
    body = captured.request(FIRST_CONTACT)

    async with front.http.post(f"{front.plain_url}scheduler", data=body, allow_redirects=False) as reply:
        assert (reply.status, reply.headers["Location"]) == (308, "https://127.0.0.1/scheduler")


async def test_events_are_unbuffered_and_request_ids_kept(front: FrontEnd) -> None:
    await front.server.add_app()
    batch_id = await front.server.submit()
    token = AccountKeys(load_keys(front.server.project.keys_dir).account_secret).api_token()
    headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "asked-by-a-test"}

    async with front.http.get(f"{front.url}api/v1/batches/{batch_id}/events", headers=headers) as stream:
        first = await stream.content.readline()  # the retry interval, then the first event
        assert (stream.headers["X-Request-ID"], first.split(b":")[0]) == ("asked-by-a-test", b"retry")
