"""Forms of the console: refused input is kept, with the error at its field; roles see only forms they may send."""

from __future__ import annotations

import re

import pytest

from administration.thresholds.keys import TITLES
from console.batch_page import suggested_deadline
from console.simulate import VERDICTS, verdict_of
from domain.access import Role
from domain.apps import CPU
from domain.ranking import CutPoints, HostStatisticsRun
from domain.restrictions import Restricted, Restriction
from domain.settings import Settings
from domain.units import AppId, BatchId, Seconds
from domain.views import SimulationState
from tests.acceptance.faces import run_duty
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import PAGES, Browser, a_browser, add_person, until_over
from tests.browser.scene import OPERATOR, add_operator, work_off
from tests.facts import missing
from web.moments import iso, length, stamp
from wire.messages import STATE_COMPUTE_ERROR

TRIED = "/percentiles/preview?deadline.p_tight=0.8"
WEIGHED = "/ordering/preview?ordering.policy=multifactor&ordering.wait_weight=7"
MOVED = {"deadline.p_tight": "0.8"}
SIZE = {"hosts": "6", "days": "3", "seeds": "2"}
WEIGHTS = {"ordering.policy": "multifactor", "ordering.wait_weight": "7"}

REFUSED = (  # address, fields, page of the form, field at which the error is shown, input that is kept
    ("/settings/deadline.p_tight", {"value": "2", "why": "trial"}, "", "deadline.p_tight", ("2", "trial")),
    ("/settings/deadline.p_tight", {"value": "0.75", "why": " "}, "", "why", ("0.75",)),
    ("/percentiles", {**MOVED, "why": ""}, TRIED, "why", ("0.8",)),
    ("/percentiles", {"deadline.p_tight": "7", "why": "x"}, TRIED, "deadline.p_tight", ("7",)),
    ("/percentiles/simulate", {**MOVED, **SIZE, "seeds": "99"}, TRIED, "seeds", ("99", "6", "0.8")),
    ("/percentiles/simulate", {**MOVED, **SIZE, "seeds": "1"}, TRIED, "seeds", ("1", "0.8")),
    ("/percentiles/simulate", {**MOVED, **SIZE, "days": "x"}, TRIED, "days", ("x",)),
    ("/batches/1/importance", {"user_priority": "9999", "level": "standby"}, "/batches/1", "user_priority", ("9999",)),
    ("/batches/1/importance", {"level": "standby", "why": "x" * 201}, "/batches/1", "why", ("x",)),
    ("/batches/1/deadline", {"deadline": "soon"}, "/batches/1", "deadline", ("soon",)),
    ("/ordering/preview", {"ordering.wait_weight": "much"}, "/ordering", "ordering.wait_weight", ("much",)),
    ("/ordering", {**WEIGHTS, "why": ""}, WEIGHED, "why", ("7", "multifactor")),
    ("/news", {"title": " ", "body": "kept"}, "", "title", ()),
    ("/simulate", {"scenario": "small", "rules": "fixed", "seeds": "99"}, "", "seeds", ("99",)),
    ("/simulate", {"scenario": "small", "rules": "fixed", "seeds": "1", "hosts": "0"}, "", "hosts", ("0",)),
    ("/password", {"old": "a", "new": "one password", "again": "another password"}, "", "password", ()),
)
REFUSED_ADDRESSES = (
    ("/percentiles/preview?deadline.p_tight=7", "deadline.p_tight", "7"),
    ("/percentiles/preview?deadline.p_tight=0.9", "deadline.p_tight", "0.9"),  # the present value
    ("/ordering/preview?ordering.wait_weight=much", "ordering.wait_weight", "much"),
    ("/ordering/usage?first_day=x", "first_day", "x"),
)


@pytest.fixture
async def grace_server(server: LiveServer) -> LiveServer:
    """A project with an operator, and batch 1 with a deadline."""
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(name="due", qos="short_deadline", deadline_s=90_000.0, jobs={"count": 6})
    await work_off(server, [host], share=0.5)
    return server


def flaws_of(page: str) -> tuple[list[str], list[str]]:
    """Return the fields marked as invalid, by the text that describes them, and the ids of such texts."""
    return re.findall(r'aria-describedby="flaw-([^"]+)"', page), re.findall(r'id="flaw-([^"]+)"', page)


async def test_refused_input_is_kept_with_its_error(grace_server: LiveServer) -> None:
    async with a_browser(grace_server, OPERATOR) as grace:
        for path, fields, form, field, kept in REFUSED:
            status, _, page = await grace.post(path, fields, form=form or None)
            assert (status, flaws_of(page)) == (422, ([field], [field])), (path, fields, page[:4000])
            assert [text for text in kept if not re.search(rf'(value="|<option selected>){text}', page)] == [], path
            assert 'role="alert"' in page
            linked = re.findall(r'href="#flaw-([^"]+)"', page)
            assert linked == [field] or (linked == [] and "/batches/" not in path), path
            assert page.count(" autofocus") == 1, path
        for path, field, text in REFUSED_ADDRESSES:
            status, page = await grace.get(path)
            assert (status, flaws_of(page)) == (422, ([field], [field])), (path, page[:4000])
            assert f'value="{text}"' in page
    assert list(await grace_server.store.settings.settings()) == ["project.url"]


async def forms_seen(browser: Browser) -> set[str]:
    """Return the addresses to which the console's pages send forms."""
    found: set[str] = set()
    for path in PAGES:
        _, page = await browser.get(path)
        found |= set(re.findall(r'<form method="post" action="[^"]*/console(/[^"]*)"', page))
    return found


async def test_roles_see_only_forms_that_they_may_send(grace_server: LiveServer) -> None:
    await add_person(grace_server, "vera", Role.VIEWER)
    await grace_server.create("POST", "/submitters", json={"name": "ben", "account": "default", "shares": 1.0})
    await add_person(grace_server, "ben", Role.SUBMITTER, "ben")
    async with a_browser(grace_server, "vera") as vera, a_browser(grace_server, "ben") as ben:
        seen_by_vera = await forms_seen(vera)
        assert "/batches/new" not in (await vera.get("/batches"))[1]
        seen_by_ben = await forms_seen(ben)
        assert not {"/percentiles", "/simulate", "/percentiles/simulate", "/settings/deadline.p_tight"} & seen_by_vera
        assert {"/batches/new", "/simulate", "/percentiles/simulate"} <= seen_by_ben - seen_by_vera
        assert not {"/percentiles", "/settings/deadline.p_tight", "/ordering", "/batches/1/abort"} & seen_by_ben
    async with a_browser(grace_server, OPERATOR) as grace:
        seen = await forms_seen(grace)
    assert {"/percentiles", "/settings/deadline.p_tight", "/ordering", "/batches/1/abort"} <= seen


async def test_batch_of_another_submitter_says_who_may_change_it(grace_server: LiveServer) -> None:
    await add_person(grace_server, "vera", Role.VIEWER)
    async with a_browser(grace_server, "vera") as vera, a_browser(grace_server, OPERATOR) as grace:
        pages = [(await one.get("/batches/1"))[1] for one in (vera, grace)]

    assert ['id="batch-not-yours"' in page for page in pages] == [True, False]
    assert ['id="batch-actions"' in page for page in pages] == [False, True]


async def test_pages_link_the_batches_that_go_before(grace_server: LiveServer) -> None:
    ids = [await grace_server.submit(name=f"b{number}", jobs={"count": 2}) for number in range(4)]
    async with a_browser(grace_server, OPERATOR) as grace:
        pages = [(await grace.get(f"/batches/{ids[-1]}{page}"))[1] for page in ("/why", "")]
        order = (await grace_server.create("GET", f"/explain/batch/{ids[-1]}"))["order"]

    told = [re.split("</p>|</dd>", page.partition('id="ahead"')[2])[0] for page in pages]
    links = [re.findall(r'href="/console/([^"]+)"', said) for said in told]
    named = [f"batches/{one['batch_id']}" for one in order["first_ahead"]]
    rest = [f"ordering?batch={ids[-1]}"] * (order["batches_ahead"] > len(named))
    assert len(named) == min(3, order["batches_ahead"]) > 1 and links == [[*named, *rest]] * 2


async def test_preview_links_the_batches_that_need_the_gate(grace_server: LiveServer) -> None:
    rush = await grace_server.submit(name="rush", qos="afap", jobs={"count": 2})
    async with a_browser(grace_server, OPERATOR) as grace:
        page = (await grace.get("/percentiles/preview?deadline.p_afap=0.3"))[1]
    assert re.findall(r'href="/console/([^"]+)"', page.partition('id="effect"')[2].partition("</div>")[0]) == [
        f"batches/{rush}/why"
    ]


async def test_forms_of_previews_say_who_may_save(grace_server: LiveServer) -> None:
    await add_person(grace_server, "vera", Role.VIEWER)
    async with a_browser(grace_server, OPERATOR) as grace, a_browser(grace_server, "vera") as vera:
        for path in ("/percentiles", "/ordering"):
            assert ["only operators" in (await one.get(path))[1] for one in (grace, vera)] == [False, True], path
        listed = [(await grace.get(f"/settings?q={key}"))[1] for key in ("p_tight", "afap_turn_factor")]
        assert [page.count('href="/console/percentiles"') for page in listed] == [
            2,
            1,
        ]  # of a threshold, and the menu's
        page = (await grace.get("/percentiles"))[1]
        assert page.index('name="deadline.p_tight"') < page.index("h-trail")
        assert [one for one in TITLES if not re.search(f">{TITLES[one]} <code[^>]*>{one}</code>", page)] == []
        for one in (grace, vera):
            page = (await one.get("/settings/deadline.p_tight"))[1]
            assert 'action="/console/percentiles/preview"' in page and 'name="deadline.p_tight"' in page
        assert ["only operators" in (await one.get(TRIED))[1] for one in (grace, vera)] == [False, True]
        assert 'value="0.8"' in (await vera.get(f"{TRIED.replace('/preview', '')}"))[1]


async def test_actions_of_a_batch_stand_once_at_its_top(grace_server: LiveServer) -> None:
    await add_person(grace_server, "vera", Role.VIEWER)
    active = ("#restrict", "#h-act", "/clone", "/abort")
    async with a_browser(grace_server, OPERATOR) as grace, a_browser(grace_server, "vera") as vera:
        _, page = await grace.get("/batches/1")
        top, _, rest = page.partition('aria-label="Actions"')[2].partition("</div>")
        assert [one for one in active if f'{one}"' not in top or f'{one}"' in rest] == []
        assert all(f' id="{one}"' in rest for one in ("restrict", "h-act"))
        assert "/retry" not in page and 'aria-label="Actions"' not in (await vera.get("/batches/1"))[1]
        await grace.post("/batches/1/abort", {})
        _, page = await grace.get("/batches/1")
        top = page.partition('aria-label="Actions"')[2].partition("</div>")[0]
        assert [one for one in active if f'{one}"' in top] == ["/clone"]


async def test_head_of_a_batch_has_few_buttons_and_a_menu(grace_server: LiveServer) -> None:
    async with a_browser(grace_server, OPERATOR) as grace:
        _, page = await grace.get("/batches/1")
    head = page.partition('<div class="top">')[2].partition('id="batch-about"')[0]
    before, _, menu = head.partition('<details class="menu">')
    menu, _, after = menu.partition("</details>")

    assert len(re.findall('class="button[" ]', before + after)) == 5 and menu.count("<li>") >= 5
    assert [one for one in ("/jobs", "/instances", "/clone", "/abort") if f'{one}"' not in menu] == []


async def test_batch_without_unsent_work_has_no_dry_run(grace_server: LiveServer) -> None:
    async with a_browser(grace_server, OPERATOR) as grace:
        pages = [(await grace.get("/batches/1/why"))[1]]
        await grace.post("/batches/1/abort", {})
        pages.append((await grace.get("/batches/1/why"))[1])

    assert [("dry run" in one, "/instances?state=unsent" in one) for one in pages] == [(True, True), (False, False)]


async def test_threshold_change_is_simulated_on_the_project(grace_server: LiveServer) -> None:
    paused = await grace_server.submit(name="rush", qos="afap", jobs={"count": 2})
    await grace_server.create("PUT", f"/restrictions/batch/{paused}", json={"why": "trial"})
    async with a_browser(grace_server, OPERATOR) as grace:
        _, where, page = await grace.post("/percentiles/simulate", {**MOVED, **SIZE, "days": "1"}, form=TRIED)
        assert "/simulate/1" in where, page[:4000]
        assert await until_over(grace_server, 1) is SimulationState.DONE
        status, page = await grace.get("/simulate/1")
        assert status == 200 and "changed values" in page and 'id="h-said"' in page
        assert page.count('data-label="Forecast now"') == page.count('data-label="Simulated, present values"') == 1
        assert page.count('data-label="Difference"') == 1 and 'class="tag' not in page.split('id="h-ends"')[1]
        assert f"/batches/{paused}" in page.partition('id="left-out"')[2].partition("</p>")[0]
        simulation = await grace_server.store.simulations.simulation(1)
        row = (await grace.get("/simulate"))[1].partition("<tbody>")[2].partition("</tr>")[0]
        assert not missing(row, "this project", "deadline.p_tight 0.9 → 0.8", OPERATOR)
        found = verdict_of(simulation)
        assert found is not None and f">{VERDICTS[found.verdict]}</span>" in row
        assert page.count('data-label="Verdict"') == len(found.findings) > 0
        assert simulation.result is not None
        assert "jobs_failed" not in str(simulation.result["rows"])
        took_s = simulation.heard_at - simulation.asked_at
        assert f"takes about {length(2.5 * took_s)}" in page or 'name="seeds" value="5"' not in page
        undecided = 'class="note  verdict"' in page
        assert ('name="seeds" value="5"' in page) is undecided
        assert "/percentiles/preview?deadline.p_tight=0.8" in page and ">0.9<" in page
        assert list(await grace_server.store.settings.settings()) == ["project.url"]
        _, where, _ = await grace.post("/percentiles", {**MOVED, "why": "simulated"}, form="/simulate/1")
        assert "/percentiles?" in where
        assert 'id="h-save"' not in (await grace.get("/simulate/1"))[1]
    assert (await grace_server.store.settings.settings())["deadline.p_tight"] == 0.8
    assert (OPERATOR, "simulate") in [(one.who, one.what) for one in await grace_server.store.access.acts(limit=9)]


@pytest.mark.parametrize(("hosts", "active", "warned"), [(20, 240, True), (40, 240, False), (20, 20, False)])
async def test_simulation_of_too_few_hosts_says_so(
    grace_server: LiveServer, hosts: int, active: int, warned: bool
) -> None:
    asked = {"scenario": "recent", "rules": ["now", "then"], "seeds": 3, "changes": {"deadline.p_tight": 0.8}}
    now = grace_server.clock.now()
    number = await grace_server.store.simulations.add(
        {**asked, "hosts": hosts, "hosts_active": active}, who=OPERATOR, now=now, heard_since=now, most=1
    )
    async with a_browser(grace_server, OPERATOR) as grace:
        assert ("Too few hosts" in (await grace.get(f"/simulate/{number}"))[1]) is warned


async def test_simulation_names_its_unfinished_batches(grace_server: LiveServer) -> None:
    batch_id = await grace_server.submit(name="rush", qos="afap", jobs={"count": 2})
    sides = {side: {"makespan_s": {"afap": 86400.0}, "batches_unfinished": 1.0} for side in ("now", "then")}
    asked = {"scenario": "recent", "rules": [*sides], "seeds": 2, "changes": {}, "hosts": 40, "days": 1.0}
    result = {"rules": sides, "seeds": 2, "rows": [], "replayed": {"unfinished": [batch_id]}}
    store, now = grace_server.store.simulations, grace_server.clock.now()
    number = await store.add(asked, who=OPERATOR, now=now, heard_since=now, most=1)
    assert number is not None and await store.end(number, SimulationState.DONE, now=now, result=result)
    async with a_browser(grace_server, OPERATOR) as grace:
        note = (await grace.get(f"/simulate/{number}"))[1].partition('class="note warn"')[2].partition("</div>")[0]
    assert f"/batches/{batch_id}" in note


async def test_pages_link_only_to_pages_that_the_role_may_see(grace_server: LiveServer) -> None:
    old = {"scenario": "recent", "rules": ["now", "then"], "seeds": 1, "changes": {"deadline.p_tight": 0.8}}
    now = grace_server.clock.now()
    await grace_server.store.simulations.add(old, who=OPERATOR, now=now, heard_since=now, most=1)  # of an older version
    await grace_server.create("POST", "/submitters", json={"name": "ben", "account": "default", "shares": 1.0})
    await add_person(grace_server, "vera", Role.VIEWER)
    await add_person(grace_server, "ben", Role.SUBMITTER, "ben")
    for name in ("vera", "ben", OPERATOR):
        async with a_browser(grace_server, name) as browser:
            pages = ("/", "/batches", "/batches/1", "/hosts/1", "/unschedulable", "/simulate", "/accounts", "/tokens")
            texts = [(await browser.get(path))[1] for path in pages]
            links = {one for text in texts for one in re.findall(r'href="[^"]*/console(/[^"#]*)"', text)}
            wanted = {one.replace("&amp;", "&") for one in links if "/static/" not in one and "as=csv" not in one}
            refused = [path for path in sorted(wanted) if (await browser.get(path))[0] != 200]
            assert refused == [], name


async def test_a_batch_has_one_position_on_all_pages(server: LiveServer) -> None:
    """Most requests take the last batch first."""
    await add_operator(server)
    await server.add_app()
    for name in ("survey", "census"):
        await server.submit(name=name, jobs={"count": 2})
    await server.submit(name="rush", qos="afap", jobs={"count": 2})
    await run_duty(server, "ordering")
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/ordering")
        assert re.findall(r'<th scope="row"[^>]*><a [^>]*>(\w+) #', page) == ["rush", "survey", "census"]
        for batch, place in ((3, "1 of 3"), (1, "2 of 3"), (2, "3 of 3")):
            for address in (f"/batches/{batch}", f"/batches/{batch}/why"):
                _, page = await grace.get(address)
                assert re.findall(r"/ordering\?batch=\d+\">([^<]*)<", page) == [place], address
                assert ("sent first" in page.partition("Position")[2].partition("</div>")[0]) == (batch == 3)


async def test_pages_have_one_word_for_afap_batches(server: LiveServer) -> None:
    """Only settings and files have the value "afap"."""
    await add_operator(server)
    await server.add_app()
    await server.submit(name="rush", qos="afap", jobs={"count": 2})
    await run_duty(server, "ordering")
    async with a_browser(server, OPERATOR) as grace:
        for path in ("/", "/batches", "/batches/1", "/batches/1/why", "/batches/new", "/ordering", "/percentiles"):
            _, page = await grace.get(path)
            assert "AFAP" in page and not re.findall(r">[^<]*(?<![.\w])afap\b[^<]*<", page), path


async def test_later_deadline_says_why_the_batch_moves(grace_server: LiveServer) -> None:
    store, now, within_s = grace_server.store, grace_server.clock.now(), 100_000.0
    app_id = (await store.views.batch(BatchId(1))).app_id
    retry_s = Seconds(within_s / Settings().deadline.first_factor)
    async with store.generations.new(now=now, full=False) as run:
        assert run is not None
        cuts = CutPoints(app_id, CPU, now, 9, (), (), retry_turnaround_s=retry_s)
        await run.publish([cuts], HostStatisticsRun(1, full=False, started_at=now, seconds=Seconds(1.0)))
    await grace_server.submit(name="before it in the order", level="expedite", jobs={"count": 2})
    await run_duty(grace_server, "ordering")
    await grace_server.feed()
    async with a_browser(grace_server, OPERATOR) as grace:
        _, page = await grace.get("/batches/1")
        form = page.partition("<h3>Deadline")[2]
        assert not missing(form, "sent first") and "not change the position" not in form
        [then] = re.findall(r"about (\d+ of \d+)", form)
        new = {"deadline": "2099-01-01T00:00"}
        _, where, page = await grace.post("/batches/1/deadline", new, form="/batches/1")
        at = (await store.views.batch(BatchId(1))).deadline_at
        assert at is not None and "said=not_first" in where
        moved = page.partition('id="batch-moved"')[2].partition("</div>")[0]
        assert not missing(moved, "no longer", stamp(at - within_s), f"position {then}")
        _, where, page = await grace.post("/batches/1/deadline", {"deadline": "2098-01-01T00:00"}, form="/batches/1")
        assert "said=deadline" in where and "no longer sent first" not in page


async def test_batch_that_will_be_late_suggests_a_deadline(server: LiveServer) -> None:
    """Unless it is sent first because its deadline is near, a place that a later one would end."""
    await add_operator(server)
    await server.add_app()
    hosts = [await server.add_host(f"host{number}") for number in range(8)]
    await server.submit(name="due", qos="short_deadline", deadline_s=3600.0, jobs={"count": 40})
    for _ in range(2):
        await work_off(server, hosts)
    for name in ("ordering", "estimator"):
        await run_duty(server, name)
    shown = await server.store.views.batch(BatchId(1))
    assert shown.completion_q90_at is not None and shown.deadline_at is not None
    assert server.clock.now() < shown.deadline_at < shown.completion_q90_at
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/batches/1")
        [value] = re.findall(r'name="deadline"[^>]*value="([^"]*)"', page)
        assert value == iso(shown.deadline_at)[:16] and "suggested-deadline" not in page
        await server.store.settings.set_setting(
            "deadline.afap", "table", now=server.clock.now(), who="ada", why="order"
        )
        await server.feed()
        _, page = await grace.get("/batches/1")
        suggested_at = suggested_deadline(shown.deadline_at, shown.completion_q90_at, server.clock.now())
        assert suggested_at is not None
        [value] = re.findall(r'name="deadline"[^>]*value="([^"]*)"', page)
        assert value == iso(suggested_at)[:16]
        hint = page.partition('id="suggested-deadline"')[2].partition("</small>")[0]
        assert not missing(hint, stamp(suggested_at))


async def test_batch_whose_jobs_are_all_sent_has_no_place(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    for name in ("first", "second"):
        await server.submit(name=name, jobs={"count": 2})
    await run_duty(server, "ordering")
    await server.feed()
    assert len(await (await server.add_host("ada")).ask(2)) == 2
    await server.feed()
    paths = ("/batches/1", "/batches/1/why", "/batches", "/ordering?batch=1", "/ordering")
    async with a_browser(server, OPERATOR) as grace:
        pages = {path: (await grace.get(path))[1] for path in paths}
        _, _, changed = await grace.post_many([("batch", "1")], {"what": "change", "level": "standby"})
        shown = await server.create("GET", "/explain/batch/1")

    for path in paths[:3]:
        assert "all sent" in pages[path] and " of 2" not in pages[path].replace("of 2 jobs", ""), path
    assert not re.search(r"(standby|normal): ", pages["/batches/1"].partition('id="batch-levels"')[2])
    assert ["#1</a>" in pages[path] for path in paths[3:]] == [False, False]
    assert "1 of 1" in pages["/ordering"] and "position" not in changed.partition("<main")[2]
    assert shown["order"]["place"] is None


async def test_retries_give_a_sent_batch_no_position(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    await server.submit(name="first", jobs={"count": 2})
    await run_duty(server, "ordering")
    await server.feed()
    ada = await server.add_host("ada")
    for task in await ada.ask(2):
        ada.end(task, STATE_COMPUTE_ERROR, 1)
    await ada.call()
    await server.validate()
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/batches")

    cell = page.partition('data-label="Position"')[2].partition("</td>")[0]
    assert "only retries" in cell and "ordering?batch" not in cell


async def two_ordered(server: LiveServer) -> None:
    """Batch 1 is in the order, and batch 2, an AFAP batch, is sent first."""
    await add_operator(server)
    await server.add_app()
    for qos in ("throughput", "afap"):
        await server.submit(name=qos, qos=qos, jobs={"count": 2})
    await run_duty(server, "ordering")


async def test_order_around_a_batch_has_those_sent_first(server: LiveServer) -> None:
    await two_ordered(server)
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/ordering?batch=1")
    assert re.findall(r'<span class="nowrap">(\d of \d)', page.partition('id="t-order"')[2]) == ["1 of 2", "2 of 2"]


async def test_short_order_around_a_batch_is_whole(server: LiveServer) -> None:
    """Batches that are not sent come last."""
    await add_operator(server)
    await server.add_app()
    for number in range(12):
        await server.submit(name=f"b{number}", jobs={"count": 2})
    await run_duty(server, "ordering")
    await server.store.restrictions.put(Restriction(Restricted.BATCH, "1", 0, "", "bob", server.clock.now()))
    async with a_browser(server, OPERATOR) as grace:
        pages = [(await grace.get(path))[1] for path in ("/ordering?batch=12", "/ordering")]
    found = [
        re.findall(r'data-label="Position" data-value="(\d*)"', page.partition('id="t-order"')[2]) for page in pages
    ]
    assert found == 2 * [[*map(str, range(1, 12)), ""]]


async def test_level_without_effect_is_saved_without_a_notice(server: LiveServer) -> None:
    await two_ordered(server)
    async with a_browser(server, OPERATOR) as grace:
        for number in (1, 2):
            path = f"/batches/{number}"
            _, page = await grace.get(path)
            levels = page.partition('id="batch-levels"')[2].partition("</select>")[0]
            assert re.findall(r">(\w+)</option>", levels) == ["expedite", "normal", "standby"]
            change = {"level": "expedite", "queue": "normal", "user_priority": "0"}
            _, where, page = await grace.post(f"{path}/importance", change, form=path)
            moved = page.partition('id="batch-moved"')[2].partition("</div>")[0]
            assert "said=importance" in where and not missing(moved, "in force, position")
            assert "takes effect" not in page and "takes effect" not in (await grace.get("/ordering"))[1]


async def test_level_moves_a_batch_and_the_page_says_where(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    for name in ("ahead", "between", "urgent"):
        await server.submit(name=name, jobs={"count": 2})
    await run_duty(server, "ordering")
    change = {"level": "expedite", "queue": "normal", "user_priority": "0", "why": "the paper is due"}
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/batches/3")
        form = page.partition('id="h-act"')[2]
        assert not missing(form, "expedite: about 1 of 3<", "normal: 3 of 3, as now<", "standby: 3 of 3, as now<")
        assert (
            form.index('name="level"') < form.index("<details") < form.index('name="queue"') < form.index("</details")
        )
        _, where, page = await grace.post("/batches/3/importance", change, form="/batches/3")
        assert "said=importance" in where and "in force, position 1 of 3" in page
        assert page.count('class="note good"') == 1
        _, where, page = await grace.post("/batches/3/importance", change, form="/batches/3")
        assert "said=unchanged" in where
        _, page = await grace.get("/ordering?batch=3")
        row = r"<tr( class=\"here\")?[^>]*><td[^>]*><span[^>]*>(\d of \d).*?#(\d)</a>(.*?)</tr>"
        rows = re.findall(row, page, re.DOTALL)
        assert [(bool(here), place, one) for here, place, one, _ in rows] == [
            (True, "1 of 3", "3"),
            (False, "2 of 3", "1"),
            (False, "3 of 3", "2"),
        ]
        assert "takes effect" not in page
        assert "expedite" in rows[0][-1] and "/batches/3#h-act" in rows[0][-1]
        _, page = await grace.get("/batches/1")
        assert not missing(page, "standby: about 3 of 3<", "normal: 2 of 3, as now<")
        _, _, page = await grace.post_many([("batch", "1")], {"what": "change", "level": "standby"})
        assert "in force, position 3 of 3" in page
        await run_duty(server, "ordering")
        _, page = await grace.get("/batches/3?said=importance")  # the note follows the pass
        assert "in force, position 1 of 3" in page
        await grace.post("/settings/deadline.p_tight", {"value": "0.75", "why": "trial"})
        _, page = await grace.get("/audit?what=set_setting")
        assert "0.9 → 0.75" in page and '<option value="set_importance">' in page
        _, page = await grace.get("/audit?subject=batch+3")
        assert "normal → expedite" in page and "urgent" in page
        await grace.post("/batches/2/importance", {**change, "why": "other"})
        _, page = await grace.get("/batches/3")
        changes = page.partition('id="changes"')[2].partition("</details>")[0]
        assert not missing(changes, OPERATOR, "set level", "normal → expedite", "the paper is due")
        assert "audit?subject=batch" in changes
        assert missing(changes, "other")
    await add_person(server, "vic", Role.VIEWER)
    async with a_browser(server, "vic") as vic:
        _, page = await vic.get("/batches/3")
        assert 'id="changes"' not in page and "the paper is due" not in page
    ids = [BatchId(number) for number in (1, 2, 3)]
    places = await server.store.ordering_rules.places(ids, {AppId(1)}, without=())
    assert [one.place for one in places.values()] == [3, 1, 2]
    [act] = [one for one in await server.store.access.acts(limit=9) if one.what == "set_importance"][-1:]
    assert act.detail == {"level": "expedite", "was": {"level": "normal"}, "why": "the paper is due"}
