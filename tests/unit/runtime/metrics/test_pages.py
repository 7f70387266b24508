"""Pages for monitoring systems and load balancers."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request
from structlog.testing import capture_logs

from domain.units import Seconds, later
from feeder.refill import Refill
from runtime.metrics.catalogue import JOBS_SENT, PROCESS_UP, RESTARTS
from runtime.metrics.metrics_store import OwnBoard, reading
from runtime.metrics.node import MetricsPortError, NodeStatus, of_children, run_folder, telling
from runtime.metrics.pages import ARRAY_STALE_S, Readers, Refuses, StatusPages, worker_troubles
from runtime.supervisor import Child
from tests.builders import NOW
from tests.facts import missing
from tests.ports import free_port
from tests.unit.administration.clocks import StillClock

REFILL = Refill(NOW, Seconds(0.1), batches=1, offered=1, placed=1, dropped=0, rotated_out=0, slots=1)


def pages(troubles: Mapping[str, str] | None = None, *, refuses: Refuses | None = None) -> StatusPages:
    board = OwnBoard()
    board.put(reading("worker 0", NOW, [JOBS_SENT.of(value=3)], {}))
    return StatusPages(board, lambda: troubles or {}, StillClock(), refuses=refuses)


async def test_metrics_are_text() -> None:
    reply = await pages().metrics(make_mocked_request("GET", "/metrics"))

    assert (reply.status, reply.content_type) == (200, "text/plain")
    assert "muster_jobs_sent_total 3.0" in str(reply.text).splitlines()


@pytest.mark.parametrize(
    ("listed", "connected", "forwarded", "status"),
    [
        ("127.0.0.0/8, ::1", "127.0.0.1", "", 200),
        ("127.0.0.0/8, ::1", "::1", "", 200),
        ("127.0.0.0/8, ::1", "192.0.2.7", "", 403),
        ("127.0.0.0/8, ::1", "192.0.2.7", "127.0.0.1", 403),  # any other client may forge the header
        ("127.0.0.0/8, ::1", "127.0.0.1", "192.0.2.7", 403),
        ("127.0.0.0/8, ::1", "127.0.0.1", "127.0.0.1, 192.0.2.7", 403),
        ("192.0.2.0/24", "192.0.2.7", "", 200),
        ("", "127.0.0.1", "", 403),
    ],
)
async def test_worker_metrics_are_restricted_to_listed_networks(
    listed: str, connected: str, forwarded: str, status: int
) -> None:
    asked = make_mocked_request("GET", "/metrics", headers={"X-Forwarded-For": forwarded} if forwarded else {})

    reply = await pages(refuses=Readers(lambda: listed).refusal).metrics(asked.clone(remote=connected))

    assert (reply.status, "muster_jobs_sent_total" in str(reply.text)) == (status, status == 200)


async def test_metrics_refusal_names_the_setting() -> None:
    asked = make_mocked_request("GET", "/metrics").clone(remote="192.0.2.7")

    reply = await pages(refuses=Readers(lambda: "10.0.0.0/8").refusal).metrics(asked)

    assert not missing(str(reply.text), "10.0.0.0/8", "(server.metrics_networks)", "from 192.0.2.7")


async def test_answering_process_is_healthy() -> None:
    reply = await pages({"work": "no database"}).health(make_mocked_request("GET", "/healthz"))

    assert (reply.status, json.loads(str(reply.text))) == (200, {"healthy": True})


@pytest.mark.parametrize(("troubles", "status"), [({}, 200), ({"work": "the database is away"}, 503)])
async def test_readiness_says_what_is_in_the_way(troubles: Mapping[str, str], status: int) -> None:
    reply = await pages(troubles).readiness(make_mocked_request("GET", "/readyz"))

    assert (reply.status, json.loads(str(reply.text))) == (status, {"ready": not troubles, "troubles": troubles})


def test_worker_is_ready_with_work_and_fresh_array() -> None:
    stale = later(NOW, ARRAY_STALE_S + 10.0)

    assert worker_troubles(None, REFILL, NOW) == {}
    assert worker_troubles("its clock is wrong", REFILL, NOW) == {"work": "its clock is wrong"}
    assert worker_troubles(None, None, NOW) == {"job array": "never filled"}
    [(part, trouble)] = worker_troubles(None, REFILL, stale).items()
    assert (part, missing(trouble, "last filled 40 s ago")) == ("job array", [])


def test_the_supervisor_tells_which_process_is_down() -> None:
    [up, restarts] = of_children([Child("worker 0", [], restarts=2)])

    assert (up.metric, up.labels, up.value) == (PROCESS_UP, ("worker 0",), (0.0,))
    assert (restarts.metric, restarts.value) == (RESTARTS, (2.0,))


async def test_last_report_comes_before_the_directory_goes() -> None:
    clock = StillClock()
    with capture_logs() as lines, run_folder() as folder:
        async with NodeStatus([], folder, clock).reporting():
            await clock.slept.wait()
            (folder / "supervisor.json").unlink()
        assert (folder / "supervisor.json").exists()

    assert lines == []


async def test_the_supervisor_answers_on_a_port_of_its_own(tmp_path: Path) -> None:
    status, port = NodeStatus([Child("worker 0", [])], tmp_path, StillClock()), free_port()
    status.reporter.report_once()

    async with telling(status.pages, "127.0.0.1", port, must=True), aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/readyz") as reply:
            status_code, ready = reply.status, await reply.json()
        async with session.get(f"http://127.0.0.1:{port}/metrics") as reply:
            lines = (await reply.text()).splitlines()

    assert (status_code, ready["ready"], list(ready["troubles"])) == (503, False, ["worker 0"])
    assert 'muster_process_up{name="worker 0"} 0.0' in lines


async def test_requested_metrics_port_must_be_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(MetricsPortError, match=f"port {port} for metrics: "):
            async with telling(pages(), "127.0.0.1", port, must=True):
                pass
        with capture_logs() as lines:
            async with telling(pages(), "127.0.0.1", port, must=False):
                pass

    assert [line["log_level"] for line in lines] == ["warning"]
    assert not missing(lines[0]["why"], f"port {port}")


def test_processes_meet_in_a_folder_that_goes_with_them() -> None:
    with run_folder() as folder:
        (folder / "worker-0.json").write_text("[]")

    assert not folder.exists()
