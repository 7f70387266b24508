"""A worker behind deploy/haproxy/haproxy.cfg: a stock client's request, files both ways, addresses and limits."""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from administration.accounts import AccountKeys
from benchmarks.dispatch.front import HAPROXY, Front, front
from demo.load.volunteer import tasks_of
from domain.clock import SystemClock
from domain.settings import Settings
from domain.units import Seconds
from tests.acceptance.host import Host
from tests.acceptance.server import PROGRAM, LiveServer, live_server
from tests.faults.waiting import until
from tests.ports import free_port
from tests.unit.wire import captured
from transfer.keys import load_keys
from wire.attach import ERROR_BAD_PASSWORD, ERROR_PROJECT_DOWN
from wire.client import encode_request
from wire.messages import UploadHeader
from wire.uploads import encode_upload_header

FIRST_CONTACT = 7  # the number of a captured request
RESULT = b"3.14159 " * 400_000  # a hundred times HAProxy's buffer
BUFFERED = 65_536  # bytes that HAProxy may still hold when a client dies

ERROR = re.compile(r"<error_num>(-\d+)<")

pytestmark = pytest.mark.skipif(HAPROXY is None, reason="needs haproxy: tests/install_system.sh")


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A project behind HAProxy: `server` is the worker itself, `http` a session that trusts the certificate."""

    server: LiveServer
    http: aiohttp.ClientSession
    haproxy: Front

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.haproxy.tls_port}/"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.haproxy.certificate)

    @asynccontextmanager
    async def client_at(self, address: str) -> AsyncIterator[aiohttp.ClientSession]:
        """A session that connects from an address of this machine."""
        connector = aiohttp.TCPConnector(ssl=self.trust, local_addr=(address, 0), force_close=True)
        async with aiohttp.ClientSession(connector=connector) as http:
            yield http


@asynccontextmanager
async def fronted(
    folder: Path, keys_dir: Path, *changes: tuple[str, str], **settings: object
) -> AsyncIterator[FrontEnd]:
    """Behind HAProxy with `changes`; only 127.0.0.1 is a trusted proxy, so that clients can be at 127.0.0.2."""
    haproxy = Front(folder / "front", free_port(), free_port(), free_port(), free_port())
    chosen: dict[str, object] = {"project.url": f"https://127.0.0.1:{haproxy.tls_port}/"}
    chosen |= {"server.trusted_proxies": "127.0.0.1", **{f"server.{name}": value for name, value in settings.items()}}
    async with live_server(folder, keys_dir, settings=chosen) as server:
        [worker] = server.workers
        port = int(worker.url.rstrip("/").rpartition(":")[2])
        with front(haproxy, workers=[port], nodes=[port], changes=changes):
            trusted = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=haproxy.certificate))
            async with aiohttp.ClientSession(connector=trusted) as http:
                yield FrontEnd(server, http, haproxy)


@pytest.fixture
async def made(tmp_path: Path, keys_dir: Path) -> AsyncIterator[FrontEnd]:
    async with fronted(tmp_path, keys_dir) as made:
        yield made


async def a_host(made: FrontEnd, name: str = "ada", http: aiohttp.ClientSession | None = None) -> Host:
    """A host that reaches the project only through the front end."""
    host = await made.server.add_host(name)
    host.http, host.scheduler_url = http or made.http, f"{made.url}scheduler"
    return host


async def test_stock_client_works_through_the_front_end(made: FrontEnd) -> None:
    await made.server.add_app()
    batch_id = await made.server.submit(jobs={"count": 2, "outputs": [{"name": "out", "max_bytes": len(RESULT)}]})
    host = await a_host(made)
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
    await made.server.validate()

    assert (status, b"<hostid>" in reply) == (200, True)
    assert task.upload_url.startswith(made.url)
    assert program == PROGRAM
    assert (cut.status, offset, rest.status) == (1, 1_499_999, 0)  # size queries report a partial upload one byte short
    assert (await made.server.batch(batch_id))["jobs_validated"] == 1  # the captured client has the other task


async def test_requests_of_new_connections_share_one_to_the_worker(made: FrontEnd) -> None:
    async with made.client_at("127.0.0.2") as http:
        host = await a_host(made, http=http)
        for _ in range(20):
            await host.call()

    counters = made.haproxy.servers()["worker0"]
    assert int(counters["connect"]) + int(counters["reuse"]) >= 20
    assert int(counters["connect"]) <= 3  # one for each thread of HAProxy, and one more at most


async def test_upload_arrives_while_it_is_sent_and_resumes(made: FrontEnd) -> None:
    """The front end stores nothing of an upload: what it has received is at the worker, also if the client dies."""
    await made.server.add_app()
    await made.server.submit(jobs={"outputs": [{"name": "out", "max_bytes": len(RESULT)}]})
    host = await a_host(made)
    [task] = await host.ask()
    [name] = task.tokens
    md5 = hashlib.md5(RESULT).hexdigest()
    header = encode_upload_header(UploadHeader(name, task.tokens[name], task.max_bytes[name], len(RESULT), md5, 0))
    sent = 1_000_000

    _, writer = await asyncio.open_connection("127.0.0.1", made.haproxy.tls_port, ssl=made.trust)
    total = len(header) + len(RESULT)
    writer.write(b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % total + header + RESULT[:sent])

    def arrived() -> bool:
        parts = [path for path in made.server.project.upload_dir.rglob("*") if path.is_file()]
        return sum(path.stat().st_size for path in parts) >= sent // 2

    await until(arrived, 10, "some of the bytes sent so far")
    writer.transport.abort()
    offset = 0

    async def kept() -> bool:
        nonlocal offset
        offset = (await host.size(task)).file_size or 0
        return offset >= sent - BUFFERED

    await until(kept, 10, "the worker keeps what it received")
    rest = await host.upload(task, RESULT, offset=offset)

    assert offset <= sent
    assert (rest.status, (await host.size(task)).file_size) == (0, len(RESULT))


async def test_addresses_reach_every_limiter_and_lies_do_not(tmp_path: Path, keys_dir: Path) -> None:
    """Clients at 127.0.0.2 and 127.0.0.3; the first sends another X-Forwarded-For with every request."""
    limits = {"address_burst": 30, "address_requests_per_s": 0.001, "address_new_hosts": 1}
    async with (
        fronted(tmp_path, keys_dir, **limits) as made,
        made.client_at("127.0.0.2") as liar,
        made.client_at("127.0.0.3") as other,
    ):
        hosts = [await a_host(made, name, http) for name, http in (("ada", liar), ("bob", liar), ("eve", other))]

        newcomers = []
        for host in hosts:
            lie(host.http)
            newcomers.append(b"<hostid>" in (await host.post(encode_request(host.request())))[1])
        guesses = [await guess(made, http) for http in (*[liar] * 10, *[other] * 5)]
        statuses = [await status_of(made, http) for http in (*[liar] * 30, other)]

    assert newcomers == [True, False, True]
    assert guesses[:5] == guesses[10:] == [ERROR_BAD_PASSWORD] * 5
    assert ERROR_PROJECT_DOWN in guesses[5:10]
    assert (statuses[0], statuses[-2], statuses[-1]) == (200, 503, 200)


def lie(http: aiohttp.ClientSession) -> None:
    """Let the next request claim addresses of its own."""
    number = int(http.headers.get("X-Forwarded-For", "0").rpartition(".")[2])
    http.headers["X-Forwarded-For"] = f"127.0.0.1, 192.0.2.{number + 1}"


async def guess(made: FrontEnd, http: aiohttp.ClientSession) -> int:
    """Guess a password; return the error number."""
    lie(http)
    query = {"email_addr": "ada@example.org", "passwd_hash": "0" * 32}
    async with http.get(f"{made.url}lookup_account.php", params=query) as reply:
        return int(ERROR.findall(await reply.text())[0])


async def status_of(made: FrontEnd, http: aiohttp.ClientSession) -> int:
    lie(http)
    async with http.get(made.url) as reply:
        return reply.status


async def test_one_address_cannot_hold_all_connections(tmp_path: Path, keys_dir: Path) -> None:
    async with fronted(tmp_path, keys_dir, (r"conn_cur gt 1000", "conn_cur gt 5")) as made:
        held = [await open_at(made, "127.0.0.2") for _ in range(5)]
        with pytest.raises(OSError):  # reset or closed during the TLS handshake
            await open_at(made, "127.0.0.2")
        (await open_at(made, "127.0.0.3")).close()
        for writer in held:
            writer.close()


async def open_at(made: FrontEnd, address: str) -> asyncio.StreamWriter:
    """Open a TLS connection from an address of this machine."""
    port, where = made.haproxy.tls_port, (address, 0)
    return (await asyncio.open_connection("127.0.0.1", port, ssl=made.trust, local_addr=where))[1]


async def test_worker_decides_the_size_of_a_request(made: FrontEnd) -> None:
    most = Settings().scheduler.max_request_bytes
    host = await a_host(made)
    large = encode_request(host.request()).replace(b"</scheduler_request>", b" " * 1_000_000 + b"</scheduler_request>")

    assert (await host.post(BytesIO(large)))[0] == 200
    assert (await host.post(BytesIO(bytes(most + 1))))[0] == 413


async def test_front_end_answers_politely_without_a_worker(made: FrontEnd) -> None:
    [worker] = made.server.workers
    await made.server.stop_worker(worker)

    async with made.http.post(f"{made.url}scheduler", data=b"x") as reply:
        assert (reply.status, reply.headers["Retry-After"]) == (503, "60")


async def test_front_end_hides_operator_addresses(made: FrontEnd) -> None:
    seen = {}
    for path in ("", "console/sign-in", "api/v1/openapi.json", "metrics", "healthz", "readyz", "duties"):
        async with made.http.get(made.url + path) as reply:
            seen[path] = reply.status

    assert [path for path, status in seen.items() if status == 404] == ["metrics", "healthz", "readyz", "duties"]
    assert {status for path, status in seen.items() if path not in ("metrics", "healthz", "readyz", "duties")} == {200}


async def test_plain_http_is_redirected_with_its_body(made: FrontEnd) -> None:
    """A client that posts over plain HTTP repeats the same request over TLS."""
    place = f"127.0.0.1:{made.haproxy.plain_port}/scheduler"

    async with made.http.post(f"http://{place}", data=captured.request(FIRST_CONTACT), allow_redirects=False) as reply:
        assert (reply.status, reply.headers["Location"]) == (308, f"https://{place}")


async def test_events_are_unbuffered_and_request_ids_kept(made: FrontEnd) -> None:
    await made.server.add_app()
    batch_id = await made.server.submit()
    token = AccountKeys(load_keys(made.server.project.keys_dir).account_secret).api_token()
    headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "asked-by-a-test"}

    async with made.http.get(f"{made.url}api/v1/batches/{batch_id}/events", headers=headers) as stream:
        first = await stream.content.readline()  # the retry interval, then the first event
        assert (stream.headers["X-Request-ID"], first.split(b":")[0]) == ("asked-by-a-test", b"retry")
