"""Tests that uploads are authorised, bounded, resumed, verified and recorded before the client gets "done"."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import StreamReader, web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.clock import Clock
from domain.dispatch import ExpectedOutput, Upload
from domain.errors import UnavailableError
from domain.units import InstanceId, Instant, later
from tests.facts import missing
from tests.faults.waiting import until
from tests.unit.scheduler.project import HandClock
from tests.unit.transfer.clocks import FixedClock
from transfer.project_files import ProjectFiles
from transfer.upload_folder import Finish, UploadFolder
from transfer.uploads import NOT_ACCEPTED, RequestBody, UploadHandler
from transfer.urls import UploadTokens
from wire.messages import SizeQuery, UploadHeader, UploadReply
from wire.uploads import decode_upload_reply, encode_size_query, encode_upload_header

CAPTURES = Path(__file__).parents[2] / "captures"
NAME = "pi_3_41_77_r0"
CONTENT = bytes(range(256)) * 100
TOKENS = UploadTokens(b"s" * 32)
Client = TestClient[web.Request, web.Application]


class Records:
    """Upload records of instances 77 and 78; `accepted` says whether they are in progress."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[InstanceId, int, str, Instant]] = {}
        self.available = True
        self.accepted = True

    async def expected(self, instance_id: InstanceId, name: str) -> ExpectedOutput | None:
        if instance_id not in (77, 78):
            return None
        if name not in self.known:
            return ExpectedOutput(self.accepted, None)
        _, nbytes, md5, _ = self.known[name]
        return ExpectedOutput(self.accepted, Upload(name, nbytes, md5))

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
        if not self.available:
            raise UnavailableError
        expected = await self.expected(instance_id, name)
        if expected is None:
            return False
        if expected.recorded is not None and expected.recorded != Upload(name, nbytes, md5) and not replace:
            return False
        if not expected.accepted and expected.recorded != Upload(name, nbytes, md5):
            return False
        self.known[name] = (instance_id, nbytes, md5, completed_at)
        return True


class FullDisk(UploadFolder):
    """A full folder."""

    def append(self, name: str, chunk: bytes, *, at: int) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")


class ServerAsInProduction(TestServer):
    """A handler outlives its connection, as under `muster up`; the base class would cancel it."""

    async def _make_runner(self, **kwargs: Any) -> web.AppRunner:
        return web.AppRunner(self.app, **{**kwargs, "handler_cancellation": False})


class Server:
    """An UploadHandler over a folder, with a client's requests."""

    def __init__(
        self,
        folder: UploadFolder,
        *,
        max_bytes: int = 10_000_000,
        idle_timeout_s: float = 60.0,
        clock: Clock | None = None,
        least_bytes_per_s: float = 0.0,
        files: ProjectFiles | None = None,
    ) -> None:
        self.folder = folder
        self.records = Records()
        uploads = UploadHandler(
            folder,
            files or ProjectFiles(folder.path(NAME).parents[2]),
            TOKENS,
            self.records,
            clock or FixedClock(),
            max_bytes=lambda: max_bytes,
            idle_timeout_s=idle_timeout_s,
            least_bytes_per_s=lambda: least_bytes_per_s,
        )
        self.application = web.Application()
        self.application.router.add_post("/upload", uploads.answer)
        self.client: Client = TestClient(ServerAsInProduction(self.application))

    async def post(self, body: bytes) -> UploadReply:
        async with self.client.post("/upload", data=body) as response:
            assert response.status == 200
            return decode_upload_reply(await response.read())

    async def upload(self, header: UploadHeader, payload: bytes) -> UploadReply:
        return await self.post(encode_upload_header(header) + payload)

    async def size(self, name: str = NAME) -> int | None:
        return (await self.post(encode_size_query(SizeQuery(name)))).file_size

    async def begin(self, header: UploadHeader, payload: bytes) -> asyncio.StreamWriter:
        """Announce a whole file, send only `payload`, and keep the connection open in silence."""
        head = encode_upload_header(header)
        port = self.client.port
        assert port is not None
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        length = len(head) + header.nbytes - header.offset
        writer.write(f"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + head + payload)
        await writer.drain()
        await until(lambda: bool(files_in(self.folder.path(header.name).parent)), 60, "some of the file is here")
        return writer


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(UploadFolder(tmp_path / "upload"))
    async with server.client:
        yield server


def a_header(
    content: bytes = CONTENT, *, name: str = NAME, max_bytes: int = 1_000_000, offset: int = 0
) -> UploadHeader:
    md5 = hashlib.md5(content).hexdigest()
    return UploadHeader(name, TOKENS.token(name, max_bytes), max_bytes, len(content), md5, offset)


def files_in(tmp_path: Path) -> list[Path]:
    return [path for path in tmp_path.rglob("*") if path.is_file()]


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


async def until_size(server: Server, nbytes: int) -> None:
    """Wait until the server has stored the bytes of a broken connection."""
    async with asyncio.timeout(10):
        while await server.size() != nbytes:
            pass


# ------------------------------------------------------------------ the whole way


async def test_a_whole_upload_is_stored_recorded_and_done(server: Server) -> None:
    assert await server.upload(a_header(), CONTENT) == UploadReply(0)
    assert server.folder.read(NAME) == CONTENT
    assert server.records.known == {NAME: (77, len(CONTENT), hashlib.md5(CONTENT).hexdigest(), 1000.0)}
    assert await server.size() == len(CONTENT)


async def test_an_empty_output_is_stored(server: Server) -> None:
    assert await server.upload(a_header(b""), b"") == UploadReply(0)
    assert server.folder.read(NAME) == b""


async def test_an_output_that_is_not_here_reads_as_none(server: Server) -> None:
    assert server.folder.read(NAME) is None


async def test_the_same_upload_once_more_is_done_at_once(server: Server, tmp_path: Path) -> None:
    await server.upload(a_header(), CONTENT)
    assert await server.upload(a_header(), CONTENT) == UploadReply(0)
    assert await server.upload(a_header(offset=len(CONTENT)), b"") == UploadReply(0)
    assert len(files_in(tmp_path)) == 1


async def test_other_content_after_complete_upload_is_refused(server: Server) -> None:
    await server.upload(a_header(), CONTENT)
    server.records.accepted = False  # it was reported
    reply = await server.upload(a_header(b"forged"), b"forged")
    assert (reply.status, missing(reply.message, "different content", "already been uploaded")) == (-1, [])
    assert server.folder.read(NAME) == CONTENT
    assert server.records.known[NAME][1] == len(CONTENT)


async def test_a_result_computed_again_replaces_the_first_upload(server: Server, tmp_path: Path) -> None:
    await server.upload(a_header(), CONTENT)
    assert await server.upload(a_header(b"second run"), b"second run") == UploadReply(0)
    assert server.folder.read(NAME) == b"second run"
    assert server.records.known[NAME][2] == hashlib.md5(b"second run").hexdigest()
    assert len(files_in(tmp_path)) == 1
    assert await server.upload(a_header(), CONTENT) == UploadReply(0)


async def test_a_crash_before_the_replacing_rename_is_made_up_for(server: Server) -> None:
    """The record has the newer file, the folder has the older one and the complete part."""
    other = CONTENT[::-1]  # of the same size
    await server.upload(a_header(), CONTENT)
    server.folder.begin(NAME, 0)
    server.folder.append(NAME, other, at=0)
    md5 = hashlib.md5(other).hexdigest()
    assert await server.records.record_upload(
        InstanceId(77), name=NAME, nbytes=len(other), md5=md5, completed_at=Instant(1.0), replace=True
    )

    assert await server.size() == len(other) - 1
    server.records.accepted = False
    assert await server.upload(a_header(other, offset=len(other) - 1), other[-1:]) == UploadReply(0)
    assert server.folder.read(NAME) == other
    assert await server.size() == len(other)


async def test_a_file_of_an_instance_not_in_progress_is_refused(server: Server, tmp_path: Path) -> None:
    server.records.accepted = False
    assert await server.upload(a_header(), CONTENT) == UploadReply(-1, NOT_ACCEPTED)
    assert files_in(tmp_path) == []


# ------------------------------------------------------------------ the size before the record


async def test_a_part_with_all_bytes_counts_one_byte_less(server: Server) -> None:
    """A process that dies while it syncs the part leaves this, with any mode bits."""
    server.folder.begin(NAME, 0)
    server.folder.append(NAME, CONTENT, at=0)
    for mode in (0o644, 0o600, 0o444):
        server.folder.path(NAME).with_name(f"{NAME}.part").chmod(mode)
        assert await server.size() == len(CONTENT) - 1
    server.folder.path(NAME).with_name(f"{NAME}.part").chmod(0o644)
    assert await server.upload(a_header(offset=len(CONTENT) - 1), CONTENT[-1:]) == UploadReply(0)
    assert NAME in server.records.known
    assert await server.size() == len(CONTENT)


@pytest.mark.parametrize("mode", [0o644, 0o444])
async def test_complete_file_is_recorded_before_size_reply(server: Server, mode: int) -> None:
    """A process that dies between rename and commit leaves this; a mode of 0444 proves nothing."""
    server.records.available = False
    await server.upload(a_header(), CONTENT)
    server.folder.path(NAME).chmod(mode)
    assert (await server.post(encode_size_query(SizeQuery(NAME)))).status == 1
    server.records.available = True
    assert await server.size() == len(CONTENT)
    assert NAME in server.records.known


async def test_a_whole_file_of_an_instance_not_in_progress_has_size_0(server: Server) -> None:
    server.records.available = False
    await server.upload(a_header(), CONTENT)
    server.records.available, server.records.accepted = True, False
    assert await server.size() == 0
    assert server.records.known == {}


async def test_a_file_left_from_an_earlier_instance_makes_room(server: Server) -> None:
    """After a restore without its row: the file of another job that had this name."""
    server.folder.begin(NAME, 0)
    server.folder.append(NAME, b"old", at=0)
    assert server.folder.finish(NAME, nbytes=3, md5=hashlib.md5(b"old").hexdigest()) is Finish.WHOLE
    server.folder.mark_recorded(NAME)

    assert await server.upload(a_header(), CONTENT) == UploadReply(0)
    assert server.folder.read(NAME) == CONTENT


async def test_bytes_behind_the_end_are_not_kept(server: Server) -> None:
    assert await server.upload(a_header(), CONTENT + b"more") == UploadReply(0)
    assert server.folder.read(NAME) == CONTENT


# ------------------------------------------------------------------ refusals before a byte is written


@pytest.mark.parametrize(
    ("header", "facts"),
    [
        (replace(a_header(), token="0" * 64), ("token",)),
        (replace(a_header(), token=""), ("token",)),
        (replace(a_header(), max_bytes=2_000_000), ("token",)),
        (replace(a_header(), name="pi_3_41_78_r0"), ("token",)),
        (a_header(max_bytes=25_599), ("has 25,600 B", "limit is 25,599 B")),
        (replace(a_header(), offset=25_601), ("offset 25601", "beyond the end", "at 25600")),
        (a_header(name="../../etc/passwd"), ("output file name",)),
        (a_header(name="../../x_1_1_77_r0"), ("output file name",)),
        (a_header(name="/etc/x_1_1_77_r0"), ("output file name",)),
        (a_header(name="%2e%2e%2fx_1_1_77_r0"), ("output file name",)),
        (a_header(name="notes.txt"), ("output file name",)),
    ],
)
async def test_what_no_leave_was_given_for_is_refused(
    server: Server, tmp_path: Path, header: UploadHeader, facts: tuple[str, ...]
) -> None:
    reply = await server.upload(header, CONTENT)
    assert (reply.status, missing(reply.message, *facts)) == (-1, [])
    assert files_in(tmp_path) == []
    assert server.records.known == {}


async def test_the_projects_limit_goes_before_the_tokens(tmp_path: Path) -> None:
    server = Server(UploadFolder(tmp_path / "upload"), max_bytes=100)
    async with server.client:
        reply = await server.upload(a_header(), CONTENT)
    assert (reply.status, missing(reply.message, "has 25.6 kB", "limit is 100 B")) == (-1, [])
    assert files_in(tmp_path) == []


async def test_a_nul_in_a_name_does_not_shorten_it(server: Server, tmp_path: Path) -> None:
    body = encode_upload_header(a_header()).replace(NAME.encode(), b"../x\0" + NAME.encode())
    assert (await server.post(body + CONTENT)).status == -1
    assert files_in(tmp_path) == []


async def test_an_output_of_an_unknown_instance_is_refused_and_removed(server: Server, tmp_path: Path) -> None:
    reply = await server.upload(a_header(name="pi_3_41_99_r0"), CONTENT)
    assert (reply.status, missing(reply.message, "no instance")) == (-1, [])
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"<data_server_request>\n<file_upload>", b"<data_server_request>" * 2000]
)
async def test_what_is_no_upload_request_is_a_bad_request(server: Server, body: bytes) -> None:
    async with server.client.post("/upload", data=body) as response:
        assert response.status in (400, 413)
        assert "expected" in await response.text()


# ------------------------------------------------------------------ wrong content, no room, no database


async def test_a_wrong_md5_deletes_what_came_and_asks_for_all_of_it(server: Server) -> None:
    reply = await server.upload(a_header(), b"x" * len(CONTENT))
    assert (reply.status, missing(reply.message, "MD5", "whole file again")) == (1, [])
    assert await server.size() == 0
    assert server.records.known == {}
    assert await server.upload(a_header(), CONTENT) == UploadReply(0)


async def test_full_disk_is_reported_and_nothing_is_complete(tmp_path: Path) -> None:
    server = Server(FullDisk(tmp_path / "upload"))
    async with server.client:
        assert await server.upload(a_header(), CONTENT) == UploadReply(1, "no space left on the server")
        assert await server.size() == 0
    assert server.records.known == {}


async def test_unrecorded_upload_is_not_done(server: Server) -> None:
    server.records.available = False
    assert (await server.upload(a_header(), CONTENT)).status == 1
    assert (await server.post(encode_size_query(SizeQuery(NAME)))).status == 1
    server.records.available = True
    assert await server.size() == len(CONTENT)
    assert NAME in server.records.known


class SlowDisk:
    """A disk whose sync takes until it is released."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, _: object) -> None:
        self.begun.set()
        assert self.go_on.wait(20)


async def test_a_size_query_during_sync_does_not_say_complete(tmp_path: Path) -> None:
    """A client that reconnects while its last bytes are synced sends the last byte again, and gets "done" once."""
    disk = SlowDisk()
    server = Server(UploadFolder(tmp_path / "upload", sync=disk))
    async with server.client:
        first = asyncio.create_task(server.upload(a_header(), CONTENT))
        assert await asyncio.to_thread(disk.begun.wait, 20)
        assert await server.size() == len(CONTENT) - 1
        assert server.records.known == {}

        again = asyncio.create_task(server.upload(a_header(offset=len(CONTENT) - 1), CONTENT[-1:]))
        disk.go_on.set()
        assert await first == UploadReply(0)
        assert (await again).status in (0, 1)
        assert await server.size() == len(CONTENT)
        assert NAME in server.records.known
        assert [path.name for path in files_in(tmp_path)] == [NAME]


async def test_a_size_query_does_not_trust_the_mode(server: Server) -> None:
    """A restored upload folder has read-only files that the restored database does not have."""
    await server.upload(a_header(), CONTENT)
    del server.records.known[NAME]

    assert await server.size() == len(CONTENT)
    assert NAME in server.records.known


async def test_a_damaged_file_is_not_called_complete(server: Server) -> None:
    await server.upload(a_header(), CONTENT)
    path = server.folder.path(NAME)
    path.chmod(0o644)
    path.write_bytes(CONTENT[:100])

    assert await server.size() == 0
    assert server.records.known[NAME][1] == len(CONTENT)
    assert await server.upload(a_header(), CONTENT) == UploadReply(0)
    assert server.folder.read(NAME) == CONTENT


async def test_a_repeated_upload_makes_up_for_a_missing_record(server: Server) -> None:
    server.records.available = False
    await server.upload(a_header(), CONTENT)
    server.records.available = True
    assert await server.upload(a_header(), CONTENT) == UploadReply(0)
    assert NAME in server.records.known


# ------------------------------------------------------------------ resuming


async def test_upload_resumes_after_broken_connection(server: Server) -> None:
    await hang_up(await server.begin(a_header(), CONTENT[:5000]))
    await until_size(server, 4999)
    assert await server.upload(a_header(offset=5000), CONTENT[5000:]) == UploadReply(0)
    assert server.folder.read(NAME) == CONTENT


async def test_an_offset_may_be_repeated(server: Server) -> None:
    for nbytes in (5000, 3000, 7000):
        assert (await server.upload(a_header(), CONTENT[:nbytes])).status == 1
        assert await server.size() == nbytes - 1
    assert await server.upload(a_header(offset=2000), CONTENT[2000:]) == UploadReply(0)
    assert server.folder.read(NAME) == CONTENT


async def test_offset_beyond_part_gets_try_again(server: Server) -> None:
    await server.upload(a_header(), CONTENT[:5000])
    reply = await server.upload(a_header(offset=5001), CONTENT[5001:])
    assert (reply.status, missing(reply.message, "bytes 5000 to 5001", "query the size")) == (1, [])
    assert await server.size() == 4999


async def test_a_resumed_upload_takes_over_from_a_silent_connection(server: Server) -> None:
    silent = await server.begin(a_header(), CONTENT[:5000])
    assert await server.upload(a_header(), CONTENT) == UploadReply(0)
    await hang_up(silent)
    assert server.folder.read(NAME) == CONTENT


async def test_a_silent_connection_is_given_up_and_its_bytes_are_kept(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path / "upload")
    server, patient = Server(folder, idle_timeout_s=0.01), Server(folder)
    async with server.client, patient.client:
        silent = await server.begin(a_header(), CONTENT[:5000])
        await until_size(patient, 4999)
        await hang_up(silent)


async def test_slow_connection_is_dropped_and_its_bytes_kept(tmp_path: Path) -> None:
    """One byte per second by the server's clock, so that the connection is never silent for long."""
    folder = UploadFolder(tmp_path / "upload")
    clock = HandClock()
    server = Server(folder, clock=clock, idle_timeout_s=60.0, least_bytes_per_s=10_000.0)
    async with server.client:
        head, sent = encode_upload_header(a_header()), 0
        reader, writer = await asyncio.open_connection("127.0.0.1", server.client.port)
        length = len(head) + len(CONTENT)
        writer.write(f"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + head)
        answer = asyncio.create_task(reader.readuntil(b"</data_server_reply>"))
        while not answer.done() and sent < len(CONTENT):
            clock.at = later(clock.at, 1.0)
            writer.write(CONTENT[sent : sent + 1])
            sent += 1
            await asyncio.wait([answer], timeout=0.001)

        said = (await answer).decode()
        assert "fewer than 10000 bytes/s received" in said
        assert "<status>1</status>" in said
        assert 0 < (await server.size() or 0) <= sent < 1000
        await hang_up(writer)


async def test_two_uploads_of_one_name_at_once_end_with_the_right_file(server: Server) -> None:
    big = CONTENT * 40
    replies = await asyncio.gather(*(server.upload(a_header(big, max_bytes=2_000_000), big) for _ in range(4)))
    assert {reply.status for reply in replies} <= {0, 1}
    assert (await server.upload(a_header(big, max_bytes=2_000_000), big)).status == 0
    assert server.folder.read(NAME) == big


@settings(max_examples=25, deadline=None)
@given(
    content=st.binary(max_size=3000),
    attempts=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=6),
)
async def test_any_split_into_resumed_pieces_ends_with_identical_bytes(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, attempts: list[tuple[float, float]]
) -> None:
    """Each attempt starts at or before the end of the part and breaks off; the last one completes."""
    server = Server(UploadFolder(tmp_path_factory.mktemp("upload")))
    async with server.client:
        for begin, end in attempts:
            here = await server.size() or 0
            offset = int(begin * here)
            until = offset + int(end * (len(content) - offset))
            await server.upload(a_header(content, offset=offset), content[offset:until])
        here = await server.size() or 0
        assert (await server.upload(a_header(content, offset=here), content[here:])).status == 0
        assert server.folder.read(NAME) == content


# ------------------------------------------------------------------ what the stock client sent


@pytest.mark.parametrize("number", [30, 32, 34])
async def test_a_captured_size_query_of_an_unknown_file_gets_0(server: Server, number: int) -> None:
    [path] = CAPTURES.glob(f"{number}-*.request.xml")
    assert await server.post(path.read_bytes()) == UploadReply(0, file_size=0)


@pytest.mark.parametrize("number", [11, 31, 33, 56])
async def test_upload_with_another_projects_token_is_refused(server: Server, number: int) -> None:
    [path] = CAPTURES.glob(f"{number}-*.request.xml")
    reply = await server.post(path.read_bytes())
    assert (reply.status, missing(reply.message, "token")) == (-1, [])


async def test_a_size_query_for_an_unsafe_name_is_refused(server: Server) -> None:
    assert (await server.post(encode_size_query(SizeQuery("../../etc/passwd")))).status == -1


IDLE_S, LEAST_BYTES_PER_S = 300.0, 1000.0


class Link:
    """Delivers chunks of a fixed size, with a delay before each."""

    def __init__(self, clock: HandClock, *, nbytes: int, every_s: float) -> None:
        self._clock = clock
        self._nbytes = nbytes
        self._every_s = every_s

    async def readany(self) -> bytes:
        self._clock.at = Instant(self._clock.at + self._every_s)
        return b"x" * self._nbytes


async def brought(nbytes: int, every_s: float, wanted: int) -> tuple[int, str, float]:
    """Return the bytes received, why they ended, and the seconds it took."""
    clock = HandClock()
    stream = cast(StreamReader, Link(clock, nbytes=nbytes, every_s=every_s))
    body = RequestBody(stream, clock, idle_timeout_s=IDLE_S, least_bytes_per_s=LEAST_BYTES_PER_S)
    began_s = clock.monotonic()
    got = await body.read(wanted)
    return len(got), body.ended, clock.monotonic() - began_s


@pytest.mark.parametrize(
    ("nbytes", "every_s"),
    [(1000, 1.0), (60_000, 60.0), (250_000, 240.0)],
    ids=["steady", "in bursts", "in long pauses"],
)
async def test_a_link_of_a_kilobyte_a_second_brings_a_file_of_any_size(nbytes: int, every_s: float) -> None:
    assert (await brought(nbytes, every_s, 10_000_000))[:2] == (10_000_000, "")


async def test_sparse_bytes_time_out_after_five_minutes() -> None:
    nbytes, ended, took_s = await brought(1, 10.0, 10_000_000)

    assert ended == "fewer than 1000 bytes/s received"
    assert nbytes == 31
    assert took_s == pytest.approx(310.0)
