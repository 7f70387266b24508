"""Tests reservations for big jobs, on every store: leases made by requests, kept slots, and how both end."""

from __future__ import annotations

from dataclasses import replace

from domain.apps import CPU
from domain.dispatch import RequestWrites
from domain.ordering import Request
from domain.reservations import Kept, Lease, LeaseEnd
from domain.units import AppId, BatchId, Instant, Seconds, later
from jobs.ordering.ordering_pass import Orderer
from jobs.reserving import ClassSearch, Reserver, ReservingReport
from tests.builders import NOW
from tests.conformance.test_ordering_duty import submitted
from tests.stores import Store
from tests.unit.jobs.projects import HandClock
from tests.worlds import RegisteredHost, a_registered_host, a_registered_version, a_sent_instance

LONG_AGO = Instant(0.0)
NO_APPS: tuple[AppId, ...] = ()


def a_lease(host: RegisteredHost, batch_id: BatchId, **changes: object) -> Lease:
    lease = Lease(
        batch_id,
        host.host_id,
        8.0,
        start_at=later(NOW, 3600.0),
        limit_s=Seconds(7200.0),
        expires_at=later(NOW, 7200.0),
        processor_type=CPU,
        made_at=NOW,
    )
    return replace(lease, **changes)  # type: ignore[arg-type]


async def wide(store: Store, who: str = "default", **jobs: object) -> BatchId:
    return await submitted(store, who, jobs={"fpops_est": 3.6e12, "count": 10, **jobs})


async def leased(store: Store, lease: Lease, host: RegisteredHost) -> None:
    await store.ledger.write(RequestWrites(host.host, lease=lease))


async def test_a_request_makes_a_lease_and_every_catalogue_has_it(store: Store) -> None:
    await a_registered_version(store)
    host, batch = await a_registered_host(store, last_rpc_at=NOW), await wide(store)
    lease = a_lease(host, batch)

    await leased(store, lease, host)

    reserved = (await store.applications.load_catalogue()).reserved
    assert reserved.leases == {host.host_id: lease}
    assert reserved.lease_for(batch, NOW) == lease
    assert await store.reserving.reserved() == reserved


async def test_the_first_lease_of_a_host_and_of_a_batch_stands(store: Store) -> None:
    await a_registered_version(store)
    host, other = [await a_registered_host(store, last_rpc_at=NOW) for _ in range(2)]
    batch, another = await wide(store), await wide(store)
    first = a_lease(host, batch)

    await leased(store, first, host)
    await leased(store, a_lease(host, another), host)
    await leased(store, a_lease(other, batch), other)

    assert (await store.reserving.reserved()).leases == {host.host_id: first}


async def test_outcome_of_lease_is_returned(store: Store) -> None:
    await a_registered_version(store)
    host, batch = await a_registered_host(store, last_rpc_at=NOW), await wide(store)
    await leased(store, a_lease(host, batch), host)

    [before] = await store.reserving.standing_leases()
    await a_sent_instance(store, batch, host)
    [after] = await store.reserving.standing_leases()

    assert (before.unsent, before.given, before.last_rpc_at) == (10, False, NOW)
    assert (after.unsent, after.given) == (9, True)


async def test_unused_lease_ends_with_reason_and_host_pause(store: Store) -> None:
    await a_registered_version(store)
    hosts = [await a_registered_host(store, last_rpc_at=NOW) for _ in range(2)]
    batches = [await wide(store), await wide(store)]
    for host, batch in zip(hosts, batches, strict=True):
        await leased(store, a_lease(host, batch), host)
    unused, of_use = (
        LeaseEnd(host.host_id, batch, f"because {use}", of_use=use)
        for host, batch, use in zip(hosts, batches, (False, True), strict=True)
    )

    await store.reserving.reserve([], [unused, of_use], forget_before=LONG_AGO, now=later(NOW, 60.0))

    [lease] = (await store.reserving.reserved()).leases.values()
    assert (lease.host_id, lease.ended_at, lease.because) == (hosts[0].host_id, later(NOW, 60.0), "because False")
    assert await store.reserving.standing_leases() == []
    await leased(store, a_lease(hosts[0], batches[0]), hosts[0])
    assert await store.reserving.standing_leases() == []
    again = a_lease(hosts[1], batches[0])
    await leased(store, again, hosts[1])
    assert [one.lease for one in await store.reserving.standing_leases()] == [again]
    await store.reserving.reserve([], [], forget_before=later(NOW, 61.0), now=later(NOW, 61.0))
    assert list((await store.reserving.reserved()).leases) == [hosts[1].host_id]


async def test_slots_stay_kept_as_they_are_noted(store: Store) -> None:
    kept = [Kept(BatchId(7), NOW, 3), Kept(BatchId(4), later(NOW, 1.0))]

    await store.reserving.reserve(kept, [], forget_before=LONG_AGO, now=NOW)

    assert list((await store.applications.load_catalogue()).reserved.kept.values()) == kept


async def test_big_batches_are_found_in_order_by_any_resource(store: Store) -> None:
    await a_registered_version(store)
    await wide(store, ncpus=2)
    many = await wide(store, ncpus=8)
    large = await wide(store, memory_bytes=8e9)
    least = Request(4.0, 4e9, 1e15)

    found = await store.reserving.big_batches(least, NO_APPS, 10)

    assert [(one.batch_id, one.cores, one.memory_bytes, one.sent) for one in found] == [
        (many, 8.0, found[0].memory_bytes, 0),
        (large, 1.0, 8e9, 0),
    ]
    assert [one.batch_id for one in await store.reserving.big_batches(least, NO_APPS, 1)] == [many]
    [pi] = await store.applications.apps()
    assert len(await store.reserving.big_batches(Request(1e3, 1e30, 1e30), [pi.app_id], 10)) == 3


async def test_untaken_big_batch_keeps_slot_until_dispatch(store: Store) -> None:
    await a_registered_version(store)
    host = await a_registered_host(store, last_rpc_at=NOW, ncpus=8, ram_bytes=8e9)
    await wide(store)
    big = await wide(store, ncpus=8)
    catalogue = await store.applications.load_catalogue()
    await Orderer(store.ordering, lambda: catalogue, HandClock()).run_once()
    clock = HandClock()
    reserver = Reserver(store.reserving, lambda: catalogue, clock)

    assert await reserver.run_once() == ReservingReport()  # it was not waiting in an earlier round
    assert await reserver.run_once() == ReservingReport(kept=1, newly_kept=1)
    assert (await store.reserving.reserved()).kept == {big: Kept(big, NOW, 0)}
    clock.time = later(NOW, 60.0)
    assert await reserver.run_once() == ReservingReport(kept=1)
    await a_sent_instance(store, big, host)
    assert await reserver.run_once() == ReservingReport()
    assert (await store.reserving.reserved()).kept == {}
    assert (await reserver.run_once()).newly_kept == 1


async def test_host_classes_are_read_while_jobs_need_them(store: Store) -> None:
    await a_registered_version(store)
    catalogue = await store.applications.load_catalogue()
    for vendor, flop_per_s, count in (("GenuineIntel", 1e9, 2), ("AuthenticAMD", 2e9, 1), ("", 1e9, 1)):
        for _ in range(count):
            await a_registered_host(store, last_rpc_at=NOW, cpu_vendor=vendor, flop_per_s=flop_per_s, ncpus=4)
    looker = ClassSearch(store.reserving, lambda: catalogue, HandClock())
    await wide(store)
    assert (await looker.run_once()).standings == ()

    alike = await wide(store, hr_type=1, quorum=2)
    committed = await a_registered_host(store, last_rpc_at=NOW, cpu_vendor="GenuineIntel", ncpus=4)
    await a_sent_instance(store, alike, committed, hr_class=21)
    found = await looker.run_once()

    [pi] = await store.applications.apps()
    assert [(one.app_id, one.hr_type, one.hr_class, one.hosts, one.cores) for one in found.standings] == [
        (pi.app_id, 1, 21, 3, 12.0),
        (pi.app_id, 1, 22, 1, 4.0),
    ]
    assert [one.queued_flop for one in found.standings] == [3.6e12, 0.0]
    assert found.standings[1].flop_per_s == 8e9
    of = (await store.applications.load_catalogue()).host_classes.of
    assert tuple(of[pi.app_id, 1]) == found.standings
