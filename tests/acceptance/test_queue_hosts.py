"""Queues bound to classes of hosts: their batches' jobs go only to hosts that meet the conditions."""

from __future__ import annotations

import pytest

from domain.access import Role
from domain.limits import Limit, Quantity, Scope
from tests.acceptance.faces import command, json_of
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import a_browser, add_person
from tests.acceptance.test_ordering_acts import given
from tests.acceptance.test_ordering_faces import order
from tests.browser.scene import OPERATOR, add_operator
from tests.facts import missing

BOUND = ("big=0/2/1 normal=1/1/1", "big:ncpus>=8,ram_bytes>=16e9")


async def bind(pi: LiveServer, queues: str, hosts: str) -> None:
    await json_of(pi, "priority", "set", f"queues={queues}", f"queue_hosts={hosts}", "--why", "a class of hosts")


async def test_queue_is_served_only_by_its_hosts(pi: LiveServer) -> None:
    await bind(pi, *BOUND)
    big = await pi.submit(submitter="ada", queue="big", jobs={"count": 5})
    small = await pi.submit(submitter="bob", jobs={"count": 5})
    await order(pi)
    await pi.feed()
    hosts = {
        name: await pi.add_host(name, ncpus=ncpus, ram_bytes=ram)
        for name, ncpus, ram in (("few", 4, 32e9), ("little", 8, 8e9), ("large", 8, 32e9))
    }

    assert {name: await given(pi, host) for name, host in hosts.items()} == {
        "few": small,
        "little": small,
        "large": big,
    }
    few = (await command(pi, "explain", "host", str(hosts["few"].host_id))).stdout
    assert not missing(few, "queue: queue big", "ncpus >= 8", "this host has 4")
    little = (await command(pi, "explain", "host", str(hosts["little"].host_id))).stdout
    assert not missing(little, "queue: queue big", "ram_bytes >= 16 GB", "this host has 8 GB")
    batch = await json_of(pi, "explain", "batch", str(big))
    assert batch["order"]["queue_hosts"] == "ncpus >= 8, ram_bytes >= 16 GB"
    assert not missing((await command(pi, "explain", "batch", str(big))).stdout, "ncpus >= 8", "queue")

    table = {"app": "pi", "qos": "throughput", "queue": "big", "jobs": {"count": 5, "fpops_est": 1e12}}
    preview = await pi.create("POST", "/batches", params={"preview": "true"}, json=table)
    assert not missing(preview["forecast"]["start"], "1 of 3 active hosts", "queue big", "ncpus >= 8")

    await json_of(pi, "batch", "set", str(big), "--queue", "normal")
    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("another", ncpus=1)) == big  # last: ada and bob take turns
    changes = {change.key: change.why for change in await pi.store.settings.setting_changes(5)}
    assert changes["ordering.queue_hosts"] == "a class of hosts"


async def test_queue_of_labelled_hosts_keeps_its_limit(pi: LiveServer) -> None:
    await bind(pi, "lab=0/2/1 normal=1/1/1", "lab:label=lab|cluster")
    await pi.store.ordering_rules.put_limit(Limit(Scope.QUEUE, Quantity.JOBS, "lab", hard=1.0))
    labs = await pi.submit(submitter="ada", queue="lab", jobs={"count": 5})
    await order(pi)
    await pi.feed()
    one, two = [await pi.add_host(name) for name in ("one", "two")]
    assert await given(pi, one) is None

    for host in (one, two):
        shown = await json_of(pi, "host", "set", str(host.host_id), "--label", "cluster") if host.host_id else None
        assert shown is None or shown["labels"] == ["cluster"]
    assert await given(pi, one) == labs
    assert (await pi.create("GET", f"/hosts/{one.host_id}"))["labels"] == ["cluster"]
    assert await given(pi, two) is None  # without a label, and over the limit of the queue
    await json_of(pi, "host", "set", str(two.host_id), "--label", "lab")
    assert await given(pi, two) is None
    await order(pi)
    assert not missing((await pi.batch(labs))["hold"], "queue lab", "1 + 1 > 1")
    [act, *_] = await pi.store.access.acts(limit=5)
    assert act.what == "set_host_labels" and act.detail["labels"] == ["lab"]


async def test_dry_run_links_to_the_labels_and_to_the_batch(pi: LiveServer) -> None:
    await bind(pi, "lab=0/2/1 label=0/2/1 normal=1/1/1", "lab:label=lab label:ncpus>=64")
    labs, big = [await pi.submit(submitter="ada", queue=queue, jobs={"count": 5}) for queue in ("lab", "label")]
    host = await pi.add_host("first")
    await host.call()
    await order(pi)
    await add_operator(pi)
    await add_person(pi, "vera", Role.VIEWER)
    pages = []
    async with a_browser(pi, OPERATOR) as browser, a_browser(pi, "vera") as vera:
        for _ in range(2):
            await pi.feed()
            status, page = await browser.get(f"/hosts/{host.host_id}/why")
            assert status == 200
            for place in (f"/hosts/{host.host_id}/why", f"/batches/{big}/why"):  # the forms are not hers
                seen = (await vera.get(place))[1].partition("<main")[2]
                assert "#h-act" not in seen and "#h-labels" not in seen and f"/batches/{big}" in seen
            pages.append(page.partition('id="h-order"')[2].partition("</section>")[0])
            await json_of(pi, "host", "set", str(host.host_id), "--label", "lab")
        own = (await browser.get(f"/batches/{big}/why"))[1]

    before, after = pages
    for link in (f"/hosts/{host.host_id}#h-labels", f"/batches/{labs}#h-act", f"/batches/{big}#h-act"):
        assert f'{link}"' in before, link
    assert "#h-labels" not in after and f"/batches/{labs}#" not in after
    assert f'/batches/{big}#h-act"' in own


async def test_labels_are_set_on_the_hosts_page(pi: LiveServer) -> None:
    host = await pi.add_host("first")
    await host.call()
    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as browser:
        page = f"/hosts/{host.host_id}"
        status, _, text = await browser.post(f"{page}/labels", {"labels": "lab, cluster"}, form=page)
        refused, _, again = await browser.post(f"{page}/labels", {"labels": "-x"}, form=page)

    assert (status, refused) == (200, 422) and 'value="cluster lab"' in text and 'value="-x"' in again
    [act, *_] = await pi.store.access.acts(limit=1)
    assert (act.what, act.detail) == ("set_host_labels", {"labels": ["cluster", "lab"], "was": {"labels": []}})


async def test_hosts_that_no_queue_wants_make_work_unschedulable(pi: LiveServer) -> None:
    await bind(pi, *BOUND)
    big = await pi.submit(submitter="ada", queue="big", jobs={"count": 5})
    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("one", ncpus=1)) is None
    for worker in pi.workers:
        await worker.parts.heartbeat.write_once()

    [found] = (await json_of(pi, "unschedulable"))["refused"]
    assert (found["batch_id"], found["codes"]) == (big, {"queue": 1})


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("huge:ncpus>=8", "huge"),
        ("normal:ncpus>8", "ncpus>8"),
        ("normal:cores>=8", "cores"),
        ("normal:label=", "label="),
        ("normal:ncpus>=8 normal:gpus>=1", "normal"),
    ],
)
async def test_wrong_conditions_of_a_queue_are_refused(shared_pi: LiveServer, value: str, wrong: str) -> None:
    status, answer = await shared_pi.api(
        "PUT", "/settings/ordering.queue_hosts", json={"value": value, "why": "a slip"}
    )

    assert status == 422 and not missing(str(answer["detail"]), "ordering.queue_hosts", wrong)


async def test_bound_queue_cannot_be_dropped(pi: LiveServer) -> None:
    await bind(pi, *BOUND)
    status, answer = await pi.api("PUT", "/settings/ordering.queues", json={"value": "normal=1/1/1", "why": "tidy"})

    assert status == 422 and not missing(str(answer["detail"]), "ordering.queue_hosts", "big")
    status, _ = await pi.api("PUT", "/settings/ordering.queue_hosts", json={"value": "big:gpus>=1", "why": "GPUs"})
    assert status == 200


async def test_odd_labels_are_refused(pi: LiveServer) -> None:
    host = await pi.add_host("one")
    await host.call()
    for labels in (["a b"], [""], ["x" * 65], [str(one) for one in range(17)], "lab", [1]):
        status, answer = await pi.api("PUT", f"/hosts/{host.host_id}/labels", json={"labels": labels})
        assert (status, "labels" in str(answer["detail"])) == (422, True), labels

    status, answer = await pi.api("PUT", "/hosts/99/labels", json={"labels": ["lab"]})
    assert status == 404 and "99" in str(answer["detail"])
