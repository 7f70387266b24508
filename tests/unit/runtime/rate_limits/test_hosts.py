"""New computers are limited; known ones are not affected, and refusals have a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from administration.access.sign_in import ASKED_FROM
from domain.settings import Settings
from domain.units import DAY_S
from runtime.guards import GuardedLedger
from runtime.rate_limits.hosts import NewcomerLimit
from tests.builders import NOW
from tests.facts import missing
from tests.memory import MemoryStore
from tests.unit.runtime.test_guards import Locks
from tests.unit.scheduler.project import Project, a_project, a_request
from tests.worlds import a_registered_volunteer


class CountedArrivals:
    """Counts its calls."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.asked = 0

    async def arrive(self, day: int, most: Mapping[str, int]) -> str | None:
        self.asked += 1
        return await self._store.arrivals.arrive(day, most)


async def a_bounded_project(**settings: int) -> tuple[Project, CountedArrivals]:
    """A project with limits of new computers per day."""
    made = await a_project()
    server = Settings.from_mapping({f"server.{name}": value for name, value in settings.items()}).server
    arrivals = CountedArrivals(made.store)
    newcomers = NewcomerLimit(arrivals, lambda: server, made.clock)
    made.ledger.inner = GuardedLedger(made.store.ledger, Locks(), newcomers)
    return made, arrivals


async def new_hosts(project: Project, times: int, **changes: str) -> list[int | None]:
    """Return the ids assigned to this many new computers."""
    request = a_request(**changes)
    computers = [replace(request, host=replace(request.host, host_cpid=f"{n:032d}")) for n in range(times)]
    return [(await project.answer(computer)).host_id for computer in computers]


async def test_volunteer_cannot_exceed_new_host_limit() -> None:
    project, _ = await a_bounded_project(volunteer_new_hosts=3)
    await project.submit(500)

    told = await new_hosts(project, 20)
    project.clock.at += DAY_S  # type: ignore[assignment]  # an Instant is a float
    tomorrow = await new_hosts(project, 4)

    assert told == [1, 2, 3, *[None] * 17]
    assert tomorrow == [1, 2, 3, 4]  # refused hosts left no record


async def test_address_cannot_exceed_new_host_limit() -> None:
    project, _ = await a_bounded_project(address_new_hosts=2)
    await a_registered_volunteer(project.store, "e" * 32, email="eve@example.org")
    token = ASKED_FROM.set("192.0.2.7")
    first = [*await new_hosts(project, 1), *await new_hosts(project, 2, authenticator="e" * 32)]
    ASKED_FROM.set("192.0.2.8")
    elsewhere = await new_hosts(project, 1, authenticator="e" * 32)
    ASKED_FROM.reset(token)

    assert first == [1, 2, None]
    assert elsewhere == [2]  # the earlier computer, known by its CPID


async def test_refusal_of_new_host_says_when_to_retry() -> None:
    project, _ = await a_bounded_project(volunteer_new_hosts=1)
    await new_hosts(project, 1)

    reply = await project.answer(a_request())
    project.clock.at += DAY_S  # type: ignore[assignment]  # an Instant is a float
    later = await project.answer(a_request())

    [message] = reply.messages
    assert not missing(message.text, "not added:", "this account", "new computers per day (1)", "tomorrow")
    assert (reply.request_delay_s, reply.acks, reply.results) == (DAY_S, (), ())
    assert later.host_id == 2


async def test_a_known_computer_is_not_asked_about() -> None:
    project, arrivals = await a_bounded_project(volunteer_new_hosts=1)
    await project.answer(a_request())
    for number in range(1, 4):
        await project.answer(a_request(host_id=1, rpc_seqno=number))

    assert arrivals.asked == 1


async def test_no_bound_counts_nothing() -> None:
    project, arrivals = await a_bounded_project(volunteer_new_hosts=0, address_new_hosts=0)

    assert await new_hosts(project, 5) == [1, 2, 3, 4, 5]
    assert arrivals.asked == 0


async def test_proxy_without_client_address_is_not_counted() -> None:
    project, arrivals = await a_bounded_project(volunteer_new_hosts=0, address_new_hosts=1)
    token = ASKED_FROM.set("127.0.0.1")

    assert await new_hosts(project, 3) == [1, 2, 3]

    ASKED_FROM.reset(token)
    assert arrivals.asked == 0


async def test_computers_at_one_address_share_its_quota() -> None:
    project, _ = await a_bounded_project()
    await project.store.settings.set_setting("scheduler.shared_quota_start", 8, now=NOW, who="ops", why="test")
    project.shelf.held = await project.store.applications.load_catalogue()
    await project.submit(100)
    token = ASKED_FROM.set("192.0.2.9")
    try:
        given = []
        for number in range(6):
            await a_registered_volunteer(project.store, f"account {number}")
            reply = await project.answer(a_request(authenticator=f"account {number}", rpc_seqno=1))
            given.append(len(reply.results))
    finally:
        ASKED_FROM.reset(token)
    assert given == [2, 2, 2, 2, 0, 0]
