"""Tests quotas shared by the computers of an account or address: exact charges, and changes by results."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from domain.dispatch import RequestWrites
from domain.havs import HavEvent, HavEventKind
from domain.hosts import Host
from domain.jobs import InstanceState
from domain.quotas import KEPT_DAYS, QuotaGrant, QuotaRequest
from domain.units import HostId, VolunteerId
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch

DAY = 20_000
ADDRESS = "192.0.2.7"


async def a_store_with_quota(store: Store, start: int) -> None:
    await store.settings.set_setting("scheduler.shared_quota_start", start, now=NOW, who="ops", why="")
    await store.applications.load_catalogue()


async def ask(
    store: Store, host: Host, wanted: int = 60, *, idle: int = 4, day: int = DAY, network: str = ADDRESS
) -> QuotaGrant:
    return await store.ledger.reserve_quota(QuotaRequest(host.host_id, host.volunteer_id, day, wanted, idle, network))


async def test_quota_grants_freely_then_per_idle_processor_then_none(store: Store) -> None:
    await a_store_with_quota(store, 400)
    host = (await a_registered_host(store)).host

    grants = [await ask(store, host) for _ in range(3)]

    assert [(one.granted, one.sent, one.quota) for one in grants] == [(60, 0, 400), (40, 60, 400), (4, 100, 400)]
    assert (await ask(store, host, idle=500, wanted=500)).granted == 400 - 104
    assert (await ask(store, host)).granted == 0
    assert (await ask(store, host, day=DAY + 1)).granted == 60


async def test_address_shares_one_quota_accounts_have_their_own(store: Store) -> None:
    await a_store_with_quota(store, 400)
    hosts = [(await a_registered_host(store)).host for _ in range(3)]

    at_one = [(await ask(store, host, 100, idle=0)).granted for host in hosts]
    elsewhere = await ask(store, hosts[1], 100, idle=0, network="192.0.2.8")

    assert at_one == [100, 0, 0]
    assert elsewhere.granted == 100
    full = await ask(store, hosts[2], idle=0)
    assert (full.name, full.sent) == (f"address {ADDRESS}", 100)


async def test_what_is_released_can_be_granted_again(store: Store) -> None:
    await a_store_with_quota(store, 400)
    host = (await a_registered_host(store)).host
    request = QuotaRequest(host.host_id, host.volunteer_id, DAY, 100, 0, ADDRESS)
    assert (await store.ledger.reserve_quota(request)).granted == 100

    await store.ledger.release_quota(request, 30)

    assert (await store.ledger.reserve_quota(request)).granted == 30


async def test_results_move_the_quotas_of_account_and_address(store: Store) -> None:
    await a_store_with_quota(store, 400)
    host = await a_registered_host(store)
    await ask(store, host.host)
    batch = await a_submitted_batch(store, jobs=4)
    quotas = []
    for kind in (HavEventKind.VALID, HavEventKind.VALID, HavEventKind.LOST, HavEventKind.ERROR):
        sent = await a_sent_instance(store, batch.batch_id, host)
        event = HavEvent(host.host_id, sent.app_version_id, kind, NOW)
        report = a_report(sent, to_state=InstanceState.REPORTED, hav_event=event)
        await store.ledger.write(RequestWrites(host.host, (report,)))
        of_account, of_address = await ask(store, host.host, 0, network=""), await ask(store, host.host, 0)
        quotas.append((of_account.quota, of_address.quota))

    assert quotas == [(410, 405), (420, 410), (410, 405), (400, 400)]
    neighbour = QuotaRequest(HostId(99), VolunteerId(99), DAY, 0, 0, ADDRESS)
    assert (await store.ledger.reserve_quota(neighbour)).quota == 400


async def test_one_account_takes_no_more_than_half_of_its_address(store: Store) -> None:
    """It spoils any number of results: other accounts at the address still get work."""
    await a_store_with_quota(store, 400)
    hosts = [await a_registered_host(store) for _ in range(3)]
    batch = await a_submitted_batch(store, jobs=200)
    quotas = []
    for bad in hosts[:2]:
        await ask(store, bad.host)
        for _ in range(80):
            await a_sent_instance(store, batch.batch_id, bad)
        await store.ledger.write(RequestWrites(bad.host, detach=True))
        quotas.append((await ask(store, hosts[2].host, 0)).quota)

    assert quotas == [400 - 399 // 2, 400 - 2 * (399 // 2)]
    assert (await ask(store, hosts[0].host, 0, network="")).quota == 1


async def test_a_host_with_a_record_draws_on_its_account_alone(store: Store) -> None:
    await a_store_with_quota(store, 400)
    host, other = [(await a_registered_host(store)).host for _ in range(2)]
    await ask(store, other, 400, idle=400)
    request = QuotaRequest(host.host_id, host.volunteer_id, DAY, 60, 4, ADDRESS, has_record=True)

    assert (await store.ledger.reserve_quota(request)).granted == 60
    assert (await ask(store, host)).granted == 0


async def test_a_read_finds_the_quotas_of_account_and_network(store: Store) -> None:
    await a_store_with_quota(store, 400)
    host = await a_registered_host(store)
    key = host.key()
    assert (await store.ledger.read(key)).quotas == ()

    await ask(store, host.host, 60)

    view = await store.ledger.read(key)
    assert view.network == ADDRESS, "the address of the host's last use, if the request has none"
    assert sorted(one.name for one in view.quotas) == [f"address {ADDRESS}", f"volunteer {host.host.volunteer_id}"]
    assert {(one.day, one.sent, one.earned) for one in view.quotas} == {(DAY, 60, 0)}
    elsewhere = await store.ledger.read(replace(key, network="192.0.2.99"))
    assert (elsewhere.network, [one.name for one in elsewhere.quotas]) == (
        "192.0.2.99",
        [f"volunteer {host.host.volunteer_id}"],
    )


async def test_detach_loop_uses_quotas_of_account_and_address(store: Store) -> None:
    await a_store_with_quota(store, 400)
    host = await a_registered_host(store)
    await ask(store, host.host)
    batch = await a_submitted_batch(store, jobs=50)
    for _ in range(3):
        await a_sent_instance(store, batch.batch_id, host)
    await store.ledger.write(RequestWrites(host.host, detach=True))
    stranger = (await a_registered_host(store)).host

    assert (await ask(store, host.host, network="")).quota == 400 - 30
    assert (await ask(store, stranger)).quota == 400 - 15
    for _ in range(47):
        await a_sent_instance(store, batch.batch_id, host)
    await ask(store, host.host)
    await store.ledger.write(RequestWrites(host.host, detach=True))

    assert (await ask(store, host.host)).quota == 1, "the minimum is 1/800 of the start, at least 1"


async def test_requests_at_once_are_granted_no_more_than_the_quota(store: Store) -> None:
    await a_store_with_quota(store, 100)
    hosts = [(await a_registered_host(store)).host for _ in range(8)]

    grants = await asyncio.gather(*(ask(store, host, 20, idle=20) for host in hosts * 2))

    assert sum(one.granted for one in grants) == 100


async def test_quota_unused_for_a_month_starts_again(store: Store) -> None:
    await a_store_with_quota(store, 400)
    host = await a_registered_host(store)
    await ask(store, host.host)
    await a_sent_instance(store, (await a_submitted_batch(store)).batch_id, host)
    await store.ledger.write(RequestWrites(host.host, detach=True))

    assert (await ask(store, host.host, day=DAY + KEPT_DAYS)).quota == 400 - 10 // 2
    assert (await ask(store, host.host, day=DAY + 2 * KEPT_DAYS + 1)).quota == 400
