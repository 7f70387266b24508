"""Failing versions and batches, silent hosts, the state of validation and the last backup, from the database."""

from __future__ import annotations

from dataclasses import replace

from administration.attention.items import HOST_RESULTS
from administration.attention.service import KEPT_S, AttentionViews
from administration.explain.batch import fails_in_words
from domain.apps import VersionState
from domain.attention import FAILING_HOSTS, FAILURES, HostContacts
from domain.havs import HavEventKind
from domain.jobs import InstanceState
from domain.settings import Settings
from domain.units import DAY_S, later
from store.postgres import PostgresStore
from tests.builders import NOW
from tests.conformance.test_host_lists import a_failure
from tests.unit.jobs.projects import HandClock
from tests.worlds import (
    a_hav_event,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
    the_version,
)

S = InstanceState


async def test_failing_versions_count_failures_and_their_hosts(store: PostgresStore) -> None:
    bad, worse, good, late = [await a_registered_host(store) for _ in range(4)]
    batch = await a_submitted_batch(store, jobs=9)
    for host, state in ((bad, S.FAILED), (worse, S.FAILED), (worse, S.FAILED), (late, S.TIMED_OUT)):
        await a_failure(store, host, batch.batch_id, state, 10.0)
    sent = await a_sent_instance(store, batch.batch_id, good)
    await report(store, good, a_report(sent, hav_event=a_hav_event(sent)))

    await a_sent_instance(store, batch.batch_id, await a_registered_host(store))  # no result: it does not count
    loser = await a_registered_host(store)
    lost = await a_sent_instance(store, batch.batch_id, loser)
    await report(store, loser, a_report(lost, to_state=S.ABORTED, hav_event=a_hav_event(lost, HavEventKind.LOST)))

    [found] = await store.attention.versions(since=NOW, failures=3)

    assert (found.app, found.failures, found.failing) == ("pi", 3, 2)
    use = (await store.applications.use_of_versions(batch.app_id, since=NOW))[found.app_version_id]
    assert found.hosts == use.hosts == 3
    assert await store.attention.versions(since=NOW, failures=4) == []
    assert await store.attention.versions(since=later(NOW, 11.0), failures=1) == []


async def test_failing_version_has_the_batch_with_most_failures(store: PostgresStore) -> None:
    host = await a_registered_host(store)
    few, many = [await a_submitted_batch(store, jobs=9) for _ in range(2)]
    for batch, state in ((few, S.FAILED), *[(few, S.TIMED_OUT)] * 3, *[(many, S.FAILED), (many, S.INVALID)]):
        await a_failure(store, host, batch.batch_id, state, 10.0)

    [found] = await store.attention.versions(since=NOW, failures=3)
    await store.applications.set_version_state(found.app_version_id, VersionState.DEPRECATED)

    assert (found.failures, found.batch_id, found.batch_failures) == (3, many.batch_id, 2)
    assert await store.attention.versions(since=NOW, failures=3) == [replace(found, deprecated=True)]


async def test_failures_of_a_version_are_of_no_other_version(store: PostgresStore) -> None:
    """Also if the other one failed more often, with another batch, and was withdrawn."""
    host = await a_registered_host(store)
    other, batch = [await a_submitted_batch(store, jobs=9) for _ in range(2)]
    withdrawn = await the_version(store)
    for _ in range(4):
        await a_failure(store, host, other.batch_id, S.FAILED, 10.0)
    await store.applications.set_version_state(withdrawn.app_version_id, VersionState.WITHDRAWN)
    version = await a_registered_version(store, batch.app_id)
    for _ in range(3):
        await a_failure(store, host, batch.batch_id, S.FAILED, 10.0)

    found = {one.app_version_id: one for one in await store.attention.versions(since=NOW, failures=3)}

    assert (found[withdrawn.app_version_id].failures, found[withdrawn.app_version_id].deprecated) == (4, True)
    left = found[version.app_version_id]
    assert (left.failures, left.batch_id, left.batch_failures, left.deprecated) == (3, batch.batch_id, 3, False)


async def test_hosts_of_a_failing_version_do_not_fail_themselves(store: PostgresStore) -> None:
    """Neither while it gets jobs nor after it was withdrawn."""
    views = AttentionViews(store, Settings, HandClock(NOW))
    hosts = [await a_registered_host(store) for _ in range(FAILING_HOSTS)]
    batch = await a_submitted_batch(store, jobs=FAILING_HOSTS * HOST_RESULTS)
    for host in hosts:
        for _ in range(HOST_RESULTS):
            await a_failure(store, host, batch.batch_id, S.FAILED, 10.0)

    [found] = await views.failing_versions({})
    while_offered = await views.failing_hosts()
    await store.applications.set_version_state(found.app_version_id, VersionState.WITHDRAWN)

    assert (while_offered, await views.failing_versions({}), await views.failing_hosts()) == ([], [], [])


async def test_failing_hosts_are_not_hidden_by_a_version_that_works(store: PostgresStore) -> None:
    """They are why it fails on a quarter of its hosts."""
    views = AttentionViews(store, Settings, HandClock(NOW))
    hosts = [await a_registered_host(store) for _ in range(4 * FAILING_HOSTS)]
    batch = await a_submitted_batch(store, jobs=FAILING_HOSTS * HOST_RESULTS + len(hosts))
    for host in hosts[:FAILING_HOSTS]:
        for _ in range(HOST_RESULTS):
            await a_failure(store, host, batch.batch_id, S.FAILED, 10.0)
    for host in hosts[FAILING_HOSTS:]:
        sent = await a_sent_instance(store, batch.batch_id, host)
        await report(store, host, a_report(sent, hav_event=a_hav_event(sent)))

    [found] = await views.failing_versions({})

    assert (found.hosts, found.failing) == (len(hosts), FAILING_HOSTS)
    assert {one.host_id for one in await views.failing_hosts()} == {one.host_id for one in hosts[:FAILING_HOSTS]}


async def test_failing_versions_of_pages_are_read_once_a_minute(store: PostgresStore) -> None:
    clock = HandClock(NOW)
    views = AttentionViews(store, Settings, clock)
    hosts = [await a_registered_host(store) for _ in range(FAILING_HOSTS)]
    batch = await a_submitted_batch(store, jobs=FAILURES)
    await a_failure(store, hosts[0], batch.batch_id, S.FAILED, 10.0)
    assert await views.failing_versions({}) == []
    for number in range(1, FAILURES):
        await a_failure(store, hosts[number % FAILING_HOSTS], batch.batch_id, S.FAILED, 10.0)

    assert await views.failing_versions({}) == []
    await clock.sleep(KEPT_S)
    [found] = await views.failing_versions({})
    said = fails_in_words(batch, found.app, [found])

    assert (found.app, found.failures) == ("pi", FAILURES)
    assert found.title in said and not fails_in_words(batch, "sieve", [found])

    await store.applications.set_version_state(found.app_version_id, VersionState.DEPRECATED)
    assert await views.failing_versions({}) == []


async def test_hosts_are_silent_beyond_their_own_interval(store: PostgresStore) -> None:
    called_at = [(await a_registered_host(store)).host.last_rpc_at for _ in range(3)][-1]
    async with store.attention._database.transaction() as connection:
        await connection.execute("UPDATE host SET rpc_interval_s = 86400 WHERE host_id = 1")

    async def contacts(after_s: float) -> HostContacts:
        now = later(called_at, after_s)
        return await store.attention.contacts(now=now, since=later(now, -7 * DAY_S), silence_s=DAY_S, intervals=3.0)

    per_s = 1.0 / DAY_S  # of the host with an interval
    assert await contacts(DAY_S - 60.0) == HostContacts(3, 0, called_at, per_s)
    assert await contacts(2 * DAY_S) == HostContacts(3, 2, called_at, per_s)
    assert await contacts(4 * DAY_S) == HostContacts(3, 3, called_at, per_s)
    assert await contacts(8 * DAY_S) == HostContacts(0, 0)


async def test_host_that_left_counts_little_among_usual_requests(store: PostgresStore) -> None:
    called_at = [(await a_registered_host(store)).host.last_rpc_at for _ in range(2)][-1]
    async with store.attention._database.transaction() as connection:
        await connection.execute("UPDATE host SET rpc_interval_s = 100, last_rpc_at = $1 WHERE host_id = 1", called_at)
        left_at = later(called_at, -DAY_S)
        await connection.execute("UPDATE host SET rpc_interval_s = 1, last_rpc_at = $1 WHERE host_id = 2", left_at)

    now = later(called_at, 60.0)
    found = await store.attention.contacts(now=now, since=later(now, -7 * DAY_S), silence_s=DAY_S, intervals=3.0)

    assert found.missed(now) == 60.0 * (0.01 + 3.0 / DAY_S)


async def test_upkeep_has_the_last_backup_and_waiting_jobs(store: PostgresStore) -> None:
    first = await store.attention.upkeep(attempts=2)
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent))
    waiting = await store.attention.upkeep(attempts=2)
    for at in (NOW, later(NOW, 3600.0)):
        assert await store.unsettled.begin_comparisons([sent.job_id], now=at)
    failing = await store.attention.upkeep(attempts=2)

    assert (first.backup_at, first.waiting, first.failing) == (None, 0, 0)
    assert (waiting.waiting, waiting.failing, failing.failing) == (1, 0, 1)
    assert failing.installed_at == first.installed_at
