"""Captured requests of the stock client, answered over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from domain.jobs import InstanceState
from domain.units import DAY_S, HostId, Seconds, later
from scheduler.handler import SchedulerHandler, build_handler
from tests.builders import NOW
from tests.facts import missing
from tests.unit.scheduler.project import Counts, Project, a_project, a_request
from tests.unit.wire import captured
from wire.decode import decode_request
from wire.messages import SchedulerReply, SchedulerRequest

Client = TestClient[web.Request, web.Application]


@asynccontextmanager
async def served(handler: SchedulerHandler) -> AsyncIterator[Client]:
    application = web.Application()
    application.router.add_post("/scheduler", handler.handle)
    async with TestClient(TestServer(application)) as client:
        yield client


async def posted(project: Project, body: bytes, **headers: str) -> tuple[int, str]:
    async with served(build_handler(project.ports, project.clock)) as client:
        response = await client.post("/scheduler", data=body, headers=headers)
        return response.status, await response.text()


async def a_busy_project(jobs: int) -> Project:
    """A project whose host 1 has the jobs pi_1_1_1, pi_1_2_2, ..."""
    project = await a_project()
    await project.submit(jobs)
    reply = await project.answer(a_request(cpu_req_s=Seconds(3600.0 * jobs), cpu_req_instances=0.0))
    assert (reply.host_id, len(reply.results)) == (1, jobs)
    return project


def ours(number: int, **names: str) -> bytes:
    """Return a captured request as if sent by host 1; `names` maps the capture's results to ours."""
    body = captured.request(number)
    for host_id in (41, 77):
        body = body.replace(b"<hostid>%d</hostid>" % host_id, b"<hostid>1</hostid>")
    for theirs, name in names.items():
        body = body.replace(f"{theirs}_r0_out".encode(), f"{name}_r0".encode())
        body = body.replace(f"<name>{theirs}</name>".encode(), f"<name>{name}</name>".encode())
    return body


async def uploaded(project: Project, body: bytes) -> None:
    """Upload the complete files that the request claims."""
    for result in decode_request(body).results:
        for file in result.files:
            await project.upload(result.name, md5=file.md5, nbytes=int(file.nbytes))


async def state_of(project: Project, name: str) -> InstanceState:
    return (await project.instance(name)).state


# ---------------------------------------------------------------- what the stock client sends


async def test_first_contact_is_answered_with_host_id_key_and_job() -> None:
    project = await a_project()
    await project.submit(3)
    status, reply = await posted(project, captured.request_at(7, NOW))
    assert status == 200
    assert "<hostid>1</hostid>" in reply and "<code_sign_key>" in reply
    assert reply.count("<result>") == 1 and "<name>pi_1_1_1</name>" in reply
    assert reply.startswith("<scheduler_reply>") and reply.rstrip().endswith("</scheduler_reply>")


async def test_a_client_whose_clock_is_off_gets_no_job() -> None:
    project = await a_project()
    await project.submit(3)

    _, reply = await posted(project, captured.request_at(7, later(NOW, 3 * DAY_S)))

    assert "<result>" not in reply
    [notice] = re.findall('priority="notice">([^<]*)', reply)
    assert not missing(notice, "No work sent.", "clock", "3 d ahead")


async def test_a_reported_success_is_acknowledged() -> None:
    project = await a_busy_project(1)
    body = ours(12, wu_001_0="pi_1_1_1")
    await uploaded(project, body)
    status, reply = await posted(project, body)
    assert status == 200
    assert "<result_ack><name>pi_1_1_1</name></result_ack>" in reply
    assert "<hostid>" not in reply
    assert await state_of(project, "pi_1_1_1") is InstanceState.REPORTED


async def test_report_repeated_after_a_lost_ack_is_acknowledged() -> None:
    project = await a_busy_project(1)
    body = ours(57, noack_0="pi_1_1_1")
    await uploaded(project, body)
    for _ in range(2):
        _, reply = await posted(project, body)
        assert "<result_ack><name>pi_1_1_1</name></result_ack>" in reply
        assert await state_of(project, "pi_1_1_1") is InstanceState.REPORTED


async def test_user_abort_ends_jobs_and_a_success_beside_it_counts() -> None:
    project = await a_busy_project(3)
    body = ours(21, wu_004_0="pi_1_1_1", wu_005_0="pi_1_2_2", wu_006_0="pi_1_3_3")
    await uploaded(project, body)
    _, reply = await posted(project, body)
    assert reply.count("<result_ack>") == 3
    states = [await state_of(project, name) for name in ("pi_1_1_1", "pi_1_2_2", "pi_1_3_3")]
    assert states == [InstanceState.REPORTED, InstanceState.ABORTED, InstanceState.ABORTED]


async def test_permanently_refused_upload_is_a_failure() -> None:
    project = await a_busy_project(1)
    [name] = [result.name for result in decode_request(captured.request(49)).results]
    await posted(project, ours(49, **{name: "pi_1_1_1"}))
    row = await project.instance("pi_1_1_1")
    assert row.state is InstanceState.FAILED
    assert "upload" in row.reason


async def test_markup_in_an_apps_stderr_changes_nothing_but_the_stderr() -> None:
    project = await a_busy_project(2)
    body = ours(65, nasty1_0="pi_1_1_1").replace(b"<name>fake_0</name>", b"<name>pi_1_2_2</name>")
    await uploaded(project, body)
    _, reply = await posted(project, body)
    assert await state_of(project, "pi_1_1_1") is InstanceState.REPORTED
    assert await state_of(project, "pi_1_2_2") is InstanceState.IN_PROGRESS
    assert "<result_ack><name>pi_1_2_2</name>" not in reply
    assert "line1 <b>" in project.ledger.writes[-1].reports[0].stderr


async def test_no_new_tasks_gets_no_jobs_and_no_words() -> None:
    project = await a_project()
    await project.answer(a_request(cpu_req_s=Seconds(0.0)))
    await project.submit(3)
    _, reply = await posted(project, ours(54))
    assert "<result>" not in reply and "<message" not in reply


async def test_an_unknown_account_key_gets_a_notice_and_no_host_id() -> None:
    project = await a_project(account_key="another key")
    status, reply = await posted(project, captured.request(60))
    assert status == 200
    assert '<message priority="notice">' in reply
    assert "<hostid>" not in reply and "<request_delay>86400" in reply


async def test_the_anonymous_platform_gets_no_app_version() -> None:
    project = await a_project()
    await project.submit(3)
    _, reply = await posted(project, captured.request(61))
    assert "<app_version>" not in reply and '<message priority="high">' in reply


@pytest.mark.parametrize("number", captured.numbers_of_requests_with(b"<scheduler_request>"))
async def test_captured_requests_are_answered_and_acknowledged(number: int) -> None:
    project = await a_project()
    await project.submit(5)
    body = captured.request(number)
    status, reply = await posted(project, body)
    assert status == 200
    if b"0123456789abcdef0123456789abcdef</authenticator>" in body:
        for result in decode_request(body).results:
            assert f"<result_ack><name>{result.name}</name></result_ack>" in reply


# ---------------------------------------------------------------- what no client should send


def first_contact_with(element: str, value: str) -> bytes:
    body = captured.request(7).decode()
    start, end = body.index(f"<{element}>") + len(element) + 2, body.index(f"</{element}>")
    return (body[:start] + value + body[end:]).encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(captured.request(12)[:3000], id="truncated"),
        pytest.param(b"", id="empty"),
        pytest.param(b"<html>hello</html>", id="no request"),
        pytest.param(first_contact_with("p_ncpus", "many"), id="no number"),
        pytest.param(first_contact_with("p_fpops", "nan"), id="not finite"),
    ],
)
async def test_what_cannot_be_understood_is_answered_400_in_one_line(body: bytes) -> None:
    project = await a_project()
    status, text = await posted(project, body)
    assert status == 400
    assert text.count("\n") == 1 and "expected" in text
    assert project.counts.failed == [400]


@pytest.mark.parametrize(
    ("element", "value"),
    [("p_ncpus", "-3"), ("p_fpops", "1e300"), ("m_nbytes", "-1"), ("on_frac", "0"), ("cpu_req_secs", "1e300")],
)
async def test_absurd_numbers_are_answered_like_any_others(element: str, value: str) -> None:
    project = await a_project()
    await project.submit(3)
    status, _ = await posted(project, first_contact_with(element, value))
    assert status == 200
    host, _ = await project.store.views.host(HostId(1))
    assert 1 <= host.ncpus <= 4096 and 1e6 <= host.flop_per_s <= 1e12 and host.on_fraction > 0.0


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_request_too_large_is_refused_before_it_is_read(chunked: bool) -> None:
    project = await a_project(scheduler__max_request_bytes=10_000)
    body = captured.request(7).replace(b"</scheduler_request>", b" " * 20_000 + b"</scheduler_request>")

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 5000):
            yield body[start : start + 5000]

    async with served(build_handler(project.ports, project.clock)) as client:
        response = await client.post("/scheduler", data=pieces() if chunked else body)
        assert response.status == 413
        assert "at most 10000 bytes" in await response.text()


async def test_a_compressed_request_is_refused() -> None:
    project = await a_project()
    async with served(build_handler(project.ports, project.clock)) as client:
        response = await client.post(
            "/scheduler", data=captured.request(7), headers={"Content-Encoding": "gzip"}, skip_auto_headers=()
        )
        assert response.status == 415


# ---------------------------------------------------------------- when we are in trouble


async def test_unavailable_database_is_answered_with_503() -> None:
    project = await a_busy_project(1)
    body = ours(12, wu_001_0="pi_1_1_1")
    await uploaded(project, body)
    project.ledger.down_from_write = 0
    status, text = await posted(project, body)
    assert status == 503 and "result_ack" not in text
    project.ledger.down_from_write = None
    _, reply = await posted(project, body)
    assert "<result_ack><name>pi_1_1_1</name></result_ack>" in reply
    assert await state_of(project, "pi_1_1_1") is InstanceState.REPORTED


async def test_internal_error_is_answered_500_without_details() -> None:
    class Broken:
        async def answer(self, request: SchedulerRequest) -> SchedulerReply:
            raise ZeroDivisionError("secret detail")

    counts = Counts()
    async with served(SchedulerHandler(Broken(), counts, lambda: 10**6)) as client:
        response = await client.post("/scheduler", data=captured.request(7))
        text = await response.text()
    assert response.status == 500
    assert "secret" not in text and "Traceback" not in text and "ZeroDivision" not in text
    assert counts.failed == [500]


async def test_many_clients_at_once_get_different_jobs() -> None:
    project = await a_project(account_key="0123456789abcdef0123456789abcdef")
    await project.submit(40)
    handler = build_handler(project.ports, project.clock)
    bodies = [captured.request_at(7, NOW).replace(b"1" * 32, b"%032x" % number) for number in range(100, 120)]
    async with served(handler) as client:

        async def ask(body: bytes) -> str:
            return await (await client.post("/scheduler", data=body)).text()

        replies = await asyncio.gather(*(ask(body) for body in bodies))
    names = [re.findall(r"<result>\s*<name>([^<]+)</name>", reply) for reply in replies]
    assert all(len(found) == 1 for found in names)
    assert len({found[0] for found in names}) == 20


class Impatient:
    """Allows one request per host."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def wait_s(self, authenticator: str, host_id: int) -> Seconds:
        self.asked.append((authenticator, host_id))
        return Seconds(0.0 if self.asked.count((authenticator, host_id)) == 1 else 59.2)


async def test_rate_limit_is_checked_before_the_database_is_read() -> None:
    project = await a_busy_project(1)
    async with served(build_handler(project.ports, project.clock, Impatient())) as client:
        first = await client.post("/scheduler", data=ours(13))
        reads = len(project.ledger.reads)
        second = await client.post("/scheduler", data=ours(13))

        assert (first.status, second.status) == (200, 503)
        assert second.headers["Retry-After"] == "60"
        assert not missing(await second.text(), "host 1", "60 s")
    assert len(project.ledger.reads) == reads
    assert project.counts.failed == [503]
