"""Tests lists of hosts: slow and silent ones; and all instances sent to a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from domain.dispatch import InstanceStep, RequestWrites
from domain.havs import HavEventKind
from domain.host_lists import (
    HostChoice,
    HostInstance,
    HostKind,
    HostList,
    HostPlace,
    HostSort,
    ListedHost,
)
from domain.jobs import InstanceState
from domain.refusals import Whys
from domain.restrictions import Restricted, Restriction
from domain.units import BatchId, HostId, Instant, Seconds, later
from domain.volunteers import ResultPlace
from tests.builders import NOW
from tests.conformance.test_host_statistics import one_sample_is_enough, ranked, some_hosts
from tests.stores import Store
from tests.worlds import (
    DAY_S,
    RegisteredHost,
    a_hav_event,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
)

S = InstanceState
SLOW = HostChoice(HostKind.SLOW)


async def pages(store: Store, choice: HostChoice, *, limit: int = 1, looked_at: int = 100) -> list[HostList]:
    """Return every page of a list."""
    found = [await store.host_lists.hosts(choice, after=None, limit=limit, looked_at=looked_at)]
    while found[-1].after is not None:
        found.append(await store.host_lists.hosts(choice, after=found[-1].after, limit=limit, looked_at=looked_at))
    return found


def ids(lists: Sequence[HostList]) -> list[list[HostId]]:
    return [[one.host.host_id for one in page.hosts] for page in lists]


async def a_failure(store: Store, host: RegisteredHost, batch_id: BatchId, state: InstanceState, at: float) -> None:
    """Fail an instance of the host at a number of seconds after NOW."""
    sent = await a_sent_instance(store, batch_id, host, due_at=later(NOW, at), timeout_at=later(NOW, at))
    if state is S.TIMED_OUT:
        await store.overdue.time_out([InstanceStep(sent.instance_id, S.IN_PROGRESS, state)], now=later(NOW, at))
        return
    event = a_hav_event(sent, HavEventKind.ERROR)
    await report(store, host, a_report(sent, to_state=state, reported_at=later(NOW, at), hav_event=event))


async def test_hosts_are_listed_newest_first_and_by_volunteer(store: Store) -> None:
    hosts = [(await a_registered_host(store)).host for _ in range(3)]
    [record, *_] = [
        one for one in await store.volunteers.volunteers() if one.volunteer.volunteer_id == hosts[1].volunteer_id
    ]

    assert ids(await pages(store, HostChoice(), limit=2)) == [[hosts[2].host_id, hosts[1].host_id], [hosts[0].host_id]]
    own = [host.host_id for host in hosts[::-1] if host.volunteer_id == hosts[1].volunteer_id]
    assert ids(await pages(store, HostChoice(email=record.email.upper()), limit=9)) == [own]
    assert ids(await pages(store, HostChoice(email="stranger@example.org"))) == [[]]


async def test_hosts_are_found_by_their_name_and_owner(store: Store) -> None:
    ada = await a_registered_host(store, domain_name="Larch-007")
    bob = await a_registered_host(store, domain_name="birch_7")
    [record] = [
        one for one in await store.volunteers.volunteers() if one.volunteer.volunteer_id == ada.host.volunteer_id
    ]

    for text, found in (
        ("larch", [ada.host_id]),
        ("CH", [bob.host_id, ada.host_id]),
        ("_7", [bob.host_id]),
        ("%", []),
        (record.email.upper(), [ada.host_id]),
    ):
        assert ids(await pages(store, HostChoice(text=text), limit=9)) == [found], text
    assert ids(await pages(store, HostChoice(text="ch"))) == [[bob.host_id], [ada.host_id]]


async def test_hosts_are_found_by_their_whole_name(store: Store) -> None:
    first, _, second, third = [
        (await a_registered_host(store, domain_name=name)).host_id for name in ("Larch", "larch-2", "LARCH", "larch")
    ]

    assert await store.host_lists.named("laRCH", limit=9) == [first, second, third]
    assert await store.host_lists.named("larch", limit=2) == [first, second]
    assert await store.host_lists.named("larc_", limit=2) == []


async def test_a_listed_host_comes_with_what_it_has_and_what_it_did(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=4)
    await a_failure(store, host, batch.batch_id, S.FAILED, 10.0)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent, hav_event=a_hav_event(sent)))
    await a_sent_instance(store, batch.batch_id, host)

    [page] = await pages(store, HostChoice())

    stored, _ = await store.views.host(host.host_id)
    assert page == HostList([ListedHost(stored, in_progress=1, n_valid=1, n_error=1, n_timeout=0)])
    assert await store.host_lists.listed([HostId(99), host.host_id]) == {host.host_id: page.hosts[0]}


async def test_slow_hosts_are_slowest_tenth_of_last_full_ranking(store: Store) -> None:
    await one_sample_is_enough(store)
    assert ids(await pages(store, SLOW)) == [[]]
    hosts = await some_hosts(store, 30, await a_registered_version(store))
    await ranked(store)

    found = await pages(store, SLOW)

    assert ids(found) == [[hosts[29].host_id], [hosts[28].host_id], [hosts[27].host_id]]
    slowest = found[0].hosts[0].slow
    assert slowest is not None
    assert slowest.x == pytest.approx(0.5 / 30)
    assert slowest.relative == pytest.approx(2.718281828**2.9)
    await ranked(store, later(NOW, 1.0), full=False)
    assert ids(await pages(store, SLOW, limit=9)) == [[hosts[29].host_id, hosts[28].host_id, hosts[27].host_id]]


async def test_hosts_without_work_call_and_have_none(store: Store) -> None:
    busy, content, long_ago = [await a_registered_host(store) for _ in range(3)]
    idle = await a_registered_host(store, domain_name="idle")
    batch = await a_submitted_batch(store, jobs=2)
    why = (("memory", "job needs 2 GB of RAM, host offers 1 GB"),)
    for host, at in ((busy, 50.0), (content, 20.0), (idle, 50.0), (long_ago, 1.0)):
        await called(store, host, at, why)
    await store.ledger.write(RequestWrites(replace(content.host, last_rpc_at=later(NOW, 30.0))))  # asks for none
    await a_sent_instance(store, batch.batch_id, busy)

    without = HostChoice(HostKind.WITHOUT_WORK, since=later(NOW, 10.0))
    found = await pages(store, without, limit=9)

    assert ids(found) == [[idle.host_id, content.host_id]]
    assert [one.refused for one in found[0].hosts] == [why, ()]
    assert ids(await pages(store, replace(without, since=NOW))) == [
        [idle.host_id],
        [long_ago.host_id],
        [content.host_id],
    ]
    by_contact = replace(without, since=NOW, sort=HostSort.LAST_CONTACT_DOWN)
    assert ids(await pages(store, by_contact)) == [[idle.host_id], [content.host_id], [long_ago.host_id]]
    assert ids(await pages(store, replace(without, since=NOW, text="IDL"))) == [[idle.host_id]]
    names = await store.host_lists.names([idle.host_id, busy.host_id, HostId(99)])
    assert names == {idle.host_id: "idle", busy.host_id: busy.host.domain_name}


async def called(store: Store, host: RegisteredHost, at: float, refused: Whys) -> None:
    """Let a host ask for work at a number of seconds after NOW; with `refused` it gets none."""
    caller = replace(host.host, last_rpc_at=later(NOW, at))
    await store.ledger.write(RequestWrites(caller, refused=refused))


async def test_restricted_hosts_are_those_of_bans_and_limits(store: Store) -> None:
    banned, _, limited, spare = [await a_registered_host(store) for _ in range(4)]
    sibling = await a_registered_host(store, volunteer_id=limited.volunteer_id)
    batch = await a_submitted_batch(store)
    for kind, name, most in (
        (Restricted.HOST, banned.host_id, 0),
        (Restricted.HOST, limited.host_id, 2),
        (Restricted.VOLUNTEER, limited.volunteer_id, 3),
        (Restricted.BATCH, batch.batch_id, 0),
        (Restricted.QUEUE, "spare", 0),
    ):
        await store.restrictions.put(Restriction(kind, str(name), most, "errors", "ada", NOW))

    restricted = HostChoice(HostKind.RESTRICTED)
    assert spare.host_id not in (found := [sibling.host_id, limited.host_id, banned.host_id])
    assert ids(await pages(store, restricted)) == [[one] for one in found]
    await store.restrictions.lift(Restricted.VOLUNTEER, str(limited.volunteer_id), now=NOW)
    assert ids(await pages(store, restricted, limit=9)) == [found[1:]]


async def test_silent_hosts_are_found_among_a_limited_number(store: Store) -> None:
    called = (0.0, 100.0, 100.0, 0.0, 100.0)
    hosts = [(await a_registered_host(store, last_rpc_at=later(NOW, at))).host_id for at in called]
    choice = HostChoice(HostKind.SILENT, since=later(NOW, 50.0))

    assert ids(await pages(store, choice)) == [[hosts[3]], [hosts[0]]]
    assert ids(await pages(store, choice, limit=9, looked_at=2)) == [[hosts[3]], [], [hosts[0]]]
    assert ids(await pages(store, choice, limit=9, looked_at=5)) == [[hosts[3], hosts[0]]]
    before_all = await store.host_lists.hosts(choice, after=HostPlace(hosts[0]), limit=9)
    assert before_all == HostList([])


async def test_hosts_are_filtered_by_platform_and_label(store: Store) -> None:
    linux, mac, other = "x86_64-pc-linux-gnu", "arm64-apple-darwin", "x86_64-pc-linux-gnu"
    hosts = [(await a_registered_host(store, platforms=(one,))).host for one in (linux, mac, other)]
    await store.ordering_rules.set_host_labels(hosts[0].host_id, ["lab"])

    newest = [hosts[2].host_id, hosts[0].host_id]
    assert ids(await pages(store, HostChoice(platform=linux), limit=9)) == [newest]
    assert ids(await pages(store, HostChoice(platform=linux), limit=9, looked_at=2)) == [[newest[0]], [newest[1]]]
    assert ids(await pages(store, HostChoice(platform=linux, label="lab"), limit=9)) == [[hosts[0].host_id]]
    quiet = HostChoice(HostKind.SILENT, since=later(NOW, DAY_S), platform=mac)
    assert ids(await pages(store, quiet, limit=9)) == [[hosts[1].host_id]]


async def test_hosts_are_found_by_a_part_of_any_platform(store: Store) -> None:
    pi, intel = ("aarch64-unknown-linux-gnu", "arm-unknown-linux-gnueabihf"), ("x86_64-pc-linux-gnu",)
    hosts = [(await a_registered_host(store, platforms=some)).host for some in (pi, intel)]
    first, second = [one.host_id for one in hosts]

    for part, found in (
        ("ARM", [first]),
        ("aarch", [first]),
        ("linux", [second, first]),
        ("x86_6", [second]),
        ("86%", []),
    ):
        assert ids(await pages(store, HostChoice(platform=part), limit=9)) == [found], part
        ordered = HostChoice(platform=part, sort=HostSort.OLDEST)
        assert ids(await pages(store, ordered, limit=9)) == [found[::-1]], part
    emails = {one.volunteer.volunteer_id: one.email for one in await store.volunteers.volunteers()}
    email = emails[hosts[0].volunteer_id]
    assert ids(await pages(store, HostChoice(email=email, platform="Arm"), limit=9)) == [[first]]
    assert ids(await pages(store, HostChoice(email=email, platform="windows"), limit=9)) == [[]]


async def test_hosts_are_sorted_over_all_pages(store: Store) -> None:
    called = (50.0, 10.0, 50.0, 30.0)
    one, two, three, four = [
        (await a_registered_host(store, last_rpc_at=later(NOW, at), ncpus=int(at))).host_id for at in called
    ]

    for sort, expected in (
        (HostSort.LAST_CONTACT, [two, four, one, three]),
        (HostSort.LAST_CONTACT_DOWN, [three, one, four, two]),
        (HostSort.CPUS_DOWN, [three, one, four, two]),
        (HostSort.OLDEST, [one, two, three, four]),
    ):
        assert ids(await pages(store, HostChoice(sort=sort))) == [[host_id] for host_id in expected]
    silent = HostChoice(HostKind.SILENT, since=later(NOW, 40.0), sort=HostSort.LAST_CONTACT_DOWN)
    assert ids(await pages(store, silent, limit=9)) == [[four, two]]


async def test_hosts_are_sorted_by_what_they_did(store: Store) -> None:
    none, good, bad = [await a_registered_host(store) for _ in range(3)]
    batch = await a_submitted_batch(store, jobs=9)
    await a_failure(store, bad, batch.batch_id, S.FAILED, 10.0)
    sent = await a_sent_instance(store, batch.batch_id, good)
    await report(store, good, a_report(sent, hav_event=a_hav_event(sent)))
    await a_sent_instance(store, batch.batch_id, bad)

    for sort, expected in (
        (HostSort.IN_PROGRESS_DOWN, [bad, good, none]),
        (HostSort.VALID_DOWN, [good, bad, none]),
        (HostSort.FAILED_DOWN, [bad, good, none]),
        (HostSort.FAILED, [none, good, bad]),
    ):
        assert ids(await pages(store, HostChoice(sort=sort))) == [[one.host_id] for one in expected], sort


async def sent_to(
    store: Store, host: RegisteredHost, state: InstanceState | None = None, *, limit: int = 9, looked_at: int = 100
) -> list[list[HostInstance]]:
    """Return every page of the instances sent to the host."""
    found: list[list[HostInstance]] = []
    after: ResultPlace | None = None
    while not found or after is not None:
        page = await store.host_lists.instances(
            host.host_id, host.volunteer_id, state=state, after=after, limit=limit, looked_at=looked_at
        )
        found.append(list(page.instances))
        after = page.after
    return found


def numbers(found: Sequence[Sequence[HostInstance]]) -> list[list[int]]:
    return [[one.instance_id for one in page] for page in found]


async def test_everything_a_host_was_sent_is_listed_the_last_one_first(store: Store) -> None:
    mine = await a_registered_host(store, account_key="one")
    sibling = await a_registered_host(store, account_key="one", volunteer_id=mine.volunteer_id)
    batch = await a_submitted_batch(store, jobs=6)
    sent = [
        await a_sent_instance(
            store, batch.batch_id, (mine, sibling)[number in (1, 2)], sent_at=Instant(NOW + number), tight=number == 4
        )
        for number in range(6)
    ]
    for one, changes in (
        (sent[0], {"to_state": S.FAILED, "reason": "exit status 1"}),
        (sent[1], {}),
        (sent[2], {}),
        (sent[4], {"reported_at": later(NOW, DAY_S + 100.0)}),
    ):
        await report(store, mine if one.host_id == mine.host_id else sibling, a_report(one, **changes))
    n = [one.instance_id for one in sent]

    [everything] = await sent_to(store, mine)

    assert numbers([everything]) == [[n[5], n[4], n[3], n[0]]]
    assert everything[3] == HostInstance(
        n[0],
        sent[0].job_id,
        batch.batch_id,
        "pi",
        S.FAILED,
        NOW,
        later(NOW, DAY_S),
        later(NOW, 3600.0),
        Seconds(3600.0),
        Seconds(3000.0),
        False,
        "exit status 1",
    )
    assert [one.is_late for one in everything] == [False, True, False, False]
    assert [one.turnaround_s for one in everything] == [None, DAY_S + 96.0, None, 3600.0]
    assert numbers(await sent_to(store, mine, limit=1)) == [[n[5]], [n[4]], [n[3]], [n[0]]]
    assert numbers(await sent_to(store, mine, S.IN_PROGRESS)) == [[n[5], n[3]]]
    assert numbers(await sent_to(store, mine, S.REPORTED)) == [[n[4]]]
    # Each page reads a fixed number of results of all the volunteer's hosts: it may be empty and not the last.
    assert numbers(await sent_to(store, mine, S.FAILED, looked_at=2)) == [[], [n[0]]]
    assert numbers(await sent_to(store, mine, looked_at=1)) == [[n[5], n[4]], [n[3]], [], [n[0]]]
    stranger = await a_registered_host(store)
    assert await sent_to(store, stranger) == [[]]
