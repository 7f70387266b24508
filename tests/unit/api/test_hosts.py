"""The list of failing hosts has the hosts that Needs attention counts, with the figures of the last day."""

from __future__ import annotations

from aiohttp.test_utils import make_mocked_request

from administration.access.who import Person
from administration.attention.items import HOST_RESULTS
from administration.attention.service import AttentionViews
from administration.hosts import choice_of
from api.hosts import HostsApi, ListParams
from api.table import Ask
from domain.access import Right, Role
from domain.host_lists import HostKind, HostPlace
from domain.jobs import InstanceState
from domain.settings import Settings
from domain.units import DAY_S, HostId, later
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_hav_event, a_registered_host, a_report, a_sent_instance, a_submitted_batch, report


async def failing_hosts(store: MemoryStore, *failures: int) -> list[HostId]:
    """Add hosts with so many failures."""
    batch = await a_submitted_batch(store, jobs=sum(failures))
    hosts = [await a_registered_host(store) for _ in failures]
    for host, count in zip(hosts, failures, strict=True):
        for _ in range(count):
            sent = await a_sent_instance(store, batch.batch_id, host)
            await report(store, host, a_report(sent, to_state=InstanceState.FAILED, hav_event=a_hav_event(sent)))
    return [one.host_id for one in hosts]


def views_of(store: MemoryStore) -> AttentionViews:
    return AttentionViews(as_postgres(store), Settings, HandClock())


async def test_only_hosts_that_fail_most_results_are_listed() -> None:
    store = MemoryStore()
    _, few, more = await failing_hosts(store, 1, HOST_RESULTS, HOST_RESULTS + 1)
    views = views_of(store)
    api = HostsApi(as_postgres(store), views, HandClock())
    operator = Person("ada", Role.OPERATOR, frozenset(Right))

    said = await api.list_hosts(Ask(make_mocked_request("GET", "/hosts"), operator, ListParams(show="failing"), None))
    slow = await api.list_hosts(Ask(make_mocked_request("GET", "/hosts"), operator, ListParams(show="slow"), None))

    assert slow == {"hosts": [], "next_cursor": None}
    assert [one["host_id"] for one in said["hosts"]] == [more, few]
    worst = said["hosts"][0]["failures"]
    assert worst is not None and (worst["errors"], worst["results"]) == (HOST_RESULTS + 1, HOST_RESULTS + 1)
    assert worst["since"] == later(NOW, -DAY_S)
    assert [one.host_id for one in await views.failing_hosts()] == [more, few]


async def test_failing_hosts_are_listed_page_by_page() -> None:
    store = MemoryStore()
    ids = await failing_hosts(store, HOST_RESULTS + 2, HOST_RESULTS + 1, HOST_RESULTS)
    views, choice = views_of(store), choice_of(HostKind.FAILING, now=NOW)

    first = await views.hosts(choice, after=None, limit=2)
    last = await views.hosts(choice, after=first.after, limit=2)

    assert [one.host.host_id for page in (first, last) for one in page.hosts] == ids
    assert last.after is None and (await views.hosts(choice, after=HostPlace(HostId(1), 1e9), limit=2)).hosts == []
