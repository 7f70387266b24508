"""Lists of failing hosts show when the count of failures starts."""

from __future__ import annotations

from aiohttp.test_utils import make_mocked_request

from administration.access.who import Person
from administration.hosts import choice_of, counted_since
from api.hosts import HostsApi, ListParams
from api.table import Ask
from domain.access import Right, Role
from domain.host_lists import HostKind
from domain.jobs import InstanceState
from domain.units import DAY_S, later
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_hav_event, a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

WEEK_AGO = later(NOW, -7 * DAY_S)


async def two_failing_hosts() -> MemoryStore:
    store = MemoryStore()
    batch = await a_submitted_batch(store, jobs=2)
    for _ in range(2):
        host = await a_registered_host(store)
        sent = await a_sent_instance(store, batch.batch_id, host)
        await report(store, host, a_report(sent, to_state=InstanceState.FAILED, hav_event=a_hav_event(sent)))
    return store


async def test_failures_have_the_start_of_their_count() -> None:
    store = await two_failing_hosts()
    api = HostsApi(as_postgres(store), HandClock())
    operator = Person("ada", Role.OPERATOR, frozenset(Right))

    said = await api.list_hosts(Ask(make_mocked_request("GET", "/hosts"), operator, ListParams(show="failing"), None))
    slow = await api.list_hosts(Ask(make_mocked_request("GET", "/hosts"), operator, ListParams(show="slow"), None))
    choice = choice_of(HostKind.FAILING, now=NOW)
    found = await store.host_lists.hosts(choice, after=None, limit=1)

    assert slow == {"hosts": [], "next_cursor": None}
    assert [one["failures"] and one["failures"]["since"] for one in said["hosts"]] == [WEEK_AGO, WEEK_AGO]
    assert (len(found.hosts), counted_since(found, choice)) == (1, WEEK_AGO)


async def test_failure_count_starts_at_the_oldest_failure_read() -> None:
    store = await two_failing_hosts()
    choice = choice_of(HostKind.FAILING, now=NOW)
    few = await store.host_lists.hosts(choice, after=None, limit=9, looked_at=1)

    assert few.since is not None and few.since > WEEK_AGO
    assert counted_since(few, choice) == few.since
