"""The history of usage: what returned work used, by account, submitter and time, also after days are added up."""

from __future__ import annotations

import csv
import io

import pytest

from domain.units import DAY_S, HOUR_S, utc
from tests.acceptance.faces import command, json_of
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import a_browser
from tests.acceptance.test_ordering_acts import given
from tests.acceptance.test_ordering_faces import order
from tests.browser.scene import OPERATOR, add_operator
from tests.facts import missing

HALF_S = HOUR_S / 2


async def begin_day(pi: LiveServer) -> str:
    """Set the clock to shortly after midnight, so that a test's steps are on one day; return the day."""
    await pi.forward(DAY_S + 60.0 - pi.clock.now() % DAY_S)
    return today(pi)


async def returned(pi: LiveServer, submitter: str, name: str) -> None:
    """Let a host return a job of a new batch: estimated at an hour, done in half of it."""
    batch_id = await pi.submit(submitter=submitter, jobs={"count": 1, "fpops_est": HOUR_S * 1e9})
    await order(pi)
    await pi.feed()
    host = await pi.add_host(name)
    assert await given(pi, host) == batch_id
    await order(pi)
    await pi.forward(HALF_S)
    [task] = host.held.values()
    await host.work(task, elapsed_s=HALF_S)
    await pi.validate()
    await order(pi)


def today(pi: LiveServer) -> str:
    return f"{utc(pi.clock.now()):%Y-%m-%d}"


async def test_returned_work_is_reported_by_account_and_day(pi: LiveServer) -> None:
    first = await begin_day(pi)
    await returned(pi, "ada", "one")
    await begin_day(pi)
    await returned(pi, "ada", "two")
    await returned(pi, "bob", "three")
    await pi.submit(submitter="bob", jobs={"count": 1})
    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("four")) is not None  # sent, and not returned
    await order(pi)
    days = ("--from", first, "--to", today(pi))

    found = await json_of(pi, "usage", "report", *days)
    used = {one["account"]: one for one in found["usage"]}
    assert {name: one["instances"] for name, one in used.items()} == {"adas": 2, "bobs": 1}
    assert [used[name]["cpu_s"] for name in ("adas", "bobs")] == pytest.approx([2 * HALF_S, HALF_S], rel=0.01)
    assert used["bobs"]["used_su"] == pytest.approx(used["bobs"]["cpu_s"] / HOUR_S)  # the queue normal costs 1
    usage = {one["submitter"]: one for one in await json_of(pi, "fairshare", "show")}
    assert used["adas"]["flop"] == pytest.approx(usage["ada"]["usage"], rel=0.2)  # decayed

    by_day = await json_of(pi, "usage", "report", *days, "--by", "day,submitter", "--account", "adas")
    assert [(one["starts_at"] % DAY_S, one["submitter"], one["instances"]) for one in by_day["usage"]] == [
        (0.0, "ada", 1),
        (0.0, "ada", 1),
    ]
    text = (await command(pi, "usage", "report", *days, "--by", "account,day", "--csv")).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["day"], row["account"], row["instances"]) for row in rows] == [
        (first, "adas", "1"),
        (today(pi), "adas", "1"),
        (today(pi), "bobs", "1"),
    ]
    assert not missing((await command(pi, "usage", "report", *days)).stdout, "service_units", "adas")
    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as grace:
        asked = f"/ordering/usage?by=day,account&first_day={first}&last_day={today(pi)}&account=&submitter="
        _, page = await grace.get(asked)
        assert not missing(page, "adas", "bobs", first), page
        assert "&amp;as=csv" in page, page
        _, sent = await grace.get(f"{asked}&as=csv")
    assert [row["account"] for row in csv.DictReader(io.StringIO(sent))] == ["adas", "adas", "bobs"]
    await json_of(pi, "fairshare", "reset", "--all", "--why", "a new year")
    assert (await json_of(pi, "usage", "report", *days))["usage"] == found["usage"]


async def test_old_days_are_added_up_by_the_month(pi: LiveServer) -> None:
    await pi.create("PUT", "/settings/ordering.keep_usage_s", json={"value": 31 * DAY_S, "why": "a test"})
    await begin_day(pi)
    await returned(pi, "ada", "one")
    then = pi.clock.now()
    await pi.forward(70 * DAY_S)
    await returned(pi, "bob", "two")
    first = f"{utc(then):%Y-%m-01}"

    found = await pi.create("GET", "/usage", params={"by": "month,submitter", "first_day": first})
    assert [(f"{utc(one['starts_at']):%Y-%m-%d}", one["submitter"]) for one in found["usage"]] == [
        (first, "ada"),
        (f"{utc(pi.clock.now()):%Y-%m-01}", "bob"),
    ]
    for asked, field in (({"by": "day", "first_day": first}, "by"), ({"first_day": first[:-1] + "2"}, "first_day")):
        status, answer = await pi.api("GET", "/usage", params=asked)
        assert status == 422 and not missing(str(answer["detail"]), field, "ordering.keep_usage_s")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"by": "day,week"}, "by"),
        ({"by": "host"}, "by"),
        ({"first_day": "2026-02-30"}, "first_day"),
        ({"first_day": "1.2.2026"}, "first_day"),
        ({"first_day": "2026-02-02", "last_day": "2026-02-01"}, "last_day"),
        ({"account": "nowhere"}, "nowhere"),
        ({"submitter": "eve"}, "eve"),
    ],
)
async def test_odd_reports_are_refused(shared_pi: LiveServer, asked: dict[str, str], field: str) -> None:
    status, answer = await shared_pi.api("GET", "/usage", params=asked)

    assert status in (404, 422) and field in str(answer["detail"])
