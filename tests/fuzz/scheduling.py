"""The scheduler request: decoded alone, and answered by a whole project in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.fuzz.loops import lasting_loop
from tests.fuzz.watch import Run
from tests.unit.scheduler.project import Project, a_project, a_request, a_success, listed
from wire.client import encode_request
from wire.decode import decode_request
from wire.encode import encode_reply
from wire.messages import ProtocolError

REQUESTS = 300  # a project is replaced after this many requests, which bounds the data they add


def decode_target(raw: bytes) -> None:
    """Decode bytes to a message, or to a ProtocolError that fits on one line."""
    try:
        decode_request(raw)
    except ProtocolError as error:
        str(error).encode()


def answer_target() -> Run:
    """Answer bytes with the bytes of a reply. The clock advances by a minute per request."""
    loop = lasting_loop()
    projects: list[tuple[Project, int]] = []

    def run(raw: bytes) -> None:
        try:
            request = decode_request(raw)
        except ProtocolError:
            return
        project, asked = projects.pop() if projects else (loop.run_until_complete(_busy_project()), 0)
        if asked < REQUESTS:
            projects.append((project, asked + 1))
        reply = loop.run_until_complete(project.answer(request))
        encode_reply(reply)
        project.clock.at += 60.0  # type: ignore[assignment]  # an Instant is a float
        project.counts.answered.clear()
        project.ledger.writes.clear()
        project.ledger.reads.clear()

    return run


async def _busy_project() -> Project:
    project = await a_project()
    await project.submit(40)
    await project.submit(20, quorum=2)
    await project.answer(a_request())
    return project


def answer_seeds() -> Sequence[bytes]:
    """Return requests of clients that have jobs of the project, report some, and list others."""
    names = [f"pi_1_{number}_{number}" for number in range(1, 5)]
    first = a_request()
    return [
        encode_request(request)
        for request in (
            first,
            replace(first, host_id=1, rpc_seqno=1, other_results=listed(*names)),
            replace(first, host_id=1, rpc_seqno=2, results=tuple(a_success(name) for name in names)),
            replace(first, host_id=1, rpc_seqno=3, results=(a_success(names[0], exit_status=1, state=3),)),
            replace(first, host_id=1, rpc_seqno=0, authenticator="f" * 32),
        )
    ]
