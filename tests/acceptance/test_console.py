"""The console on a real worker: sign-in, forms, and use without scripts."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from administration.access.sign_in import stretched
from domain.access import Role
from domain.apps import VersionState
from domain.settlement import ExtraCopy
from domain.units import JobId
from domain.views import SimulationState
from tests.acceptance.server import LiveServer
from tests.browser.scene import CHEAP, OPERATOR, PASSWORD, add_operator, tell, work_off
from tests.facts import missing
from tests.stores import batches_of
from web.form_words import label_of
from web.manual import PLACE

PAGES = (
    *(
        "/",
        "/batches",
        "/batches?sort=order",
        "/batches?state=at_risk&sort=-deadline&q=a",
        "/batches/new",
        "/batches/upload",
        "/batches/1",
        "/hosts?sort=-cpus&platform=x86_64-pc-linux-gnu",
    ),
    *("/batches/1/jobs", "/batches/1/jobs?state=failed", "/batches/1/abort"),
    *("/batches/1/clone", "/batches/1/retry", "/batches/1/errors"),
    *("/batches/1/instances", "/batches/1/instances?state=unsent", "/batches/1/instances?state=valid&after=0~1"),
    *("/batches/1/why", "/jobs/1", "/jobs/1/why", "/jobs/5/why", "/instances/1", "/hosts", "/hosts?q=a@b", "/hosts/1"),
    *(
        "/hosts?show=slow",
        "/hosts?show=without_work&sort=-failed",
        "/hosts?show=failing",
        "/hosts?show=restricted",
        "/hosts?show=silent&days=0",
        "/hosts/1?state=valid",
    ),
    *("/hosts/1/why", "/percentiles", "/percentiles/preview?deadline.p_tight=0.8", "/unschedulable", "/ordering"),
    *("/attention", "/attention?whose=mine", "/batches?state=attention"),
    *("/ordering/usage", "/ordering/usage?by=day,account&first_day=2026-01-01&last_day=2026-02-28&account=&submitter="),
    *("/ordering?batch=1", "/ordering/preview?ordering.policy=fifo", "/simulate", "/settings", "/settings?q=x"),
    *("/settings/deadline.p_tight", "/password", "/volunteers", "/volunteers?q=host&before=9", "/volunteers/1"),
    *("/apps", "/apps/pi", "/apps/pi/versions/1", "/restrictions"),
)
WRONG = (  # their last parameter is unknown or invalid
    *(
        "/batches?state=gone",
        "/batches?qos=soon",
        "/batches?app=none",
        "/batches?after=7",
        "/batches?state=complete&sort=deadline",
        "/batches?as=xml",
        "/batches/1/jobs?state=gone",
    ),
    *(
        "/batches/1/jobs?after=x",
        "/batches/1/why?hosts=some",
        "/jobs/1/why?hosts=3",
        "/hosts?show=old",
        "/hosts?sort=size",
        "/hosts?show=slow&sort=id",
        "/hosts?after=x",
        "/hosts?show=silent&days=x",
        "/hosts?days=3",
        "/hosts?show=slow&q=a",
        "/hosts/1?state=unsent",
        "/hosts/1?after=x",
    ),
    *("/batches/1/instances?state=gone", "/batches/1/instances?after=1", "/batches/1/instances?after=-1~1"),
    *("/percentiles?app=none", "/percentiles/preview?deadline.p_tight=0.8&p_tight=1", "/ordering?batch=x"),
    *("/ordering/usage?by=host", "/ordering/usage?as=xml", "/ordering/usage?by=day&first_day=1.2.2026"),
    *(
        "/ordering/preview?ordering.policy=fifo&policy=fifo",
        "/settings?key=x",
        "/hosts?q=1&q=2",
        "/volunteers?before=x",
        "/?said=nothing",
    ),
)


class Browser:
    """A console user's browser, without scripts."""

    def __init__(self, http: aiohttp.ClientSession, root: str) -> None:
        self.http = http
        self.root = root

    async def get(self, path: str) -> tuple[int, str]:
        async with self.http.get(self.root + path) as response:
            policy = response.headers["Content-Security-Policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            return response.status, await response.text()

    async def post(self, path: str, fields: dict[str, str], *, form: str | None = None) -> tuple[int, str, str]:
        """Send the form of page `form`, by default of the same page; return status, final address and text."""
        _, page = await self.get(path if form is None else form)
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
        token = found.group(1) if found is not None else ""
        async with self.http.post(self.root + path, data={"csrf": token, **fields}) as response:
            return response.status, response.url.path_qs, await response.text()

    async def post_many(
        self, chosen: list[tuple[str, str]], fields: dict[str, str], query: str = ""
    ) -> tuple[int, str, str]:
        """Send the form around the list of batches with some of them selected."""
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', (await self.get("/batches"))[1])
        assert found is not None
        data = [("csrf", found[1]), *chosen, *fields.items()]
        async with self.http.post(f"{self.root}/batches/selected{query}", data=data) as response:
            return response.status, response.url.path_qs, await response.text()


@asynccontextmanager
async def a_browser(server: LiveServer, name: str = "") -> AsyncIterator[Browser]:
    """A new browser; signed in if a name is given."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        browser = Browser(http, f"{server.url}console")
        if name:
            _, where, _ = await browser.post("/sign-in", {"name": name, "password": PASSWORD})
            assert where.endswith("/console/"), where
        yield browser


async def add_person(server: LiveServer, name: str, role: Role, submitter: str | None = None) -> None:
    found = None if submitter is None else (await server.store.people.submitter(submitter)).submitter_id
    await server.store.access.add_person(
        name,
        role=role,
        submitter_id=found,
        password=stretched(PASSWORD, CHEAP),
        one_time_until=None,
        now=server.clock.now(),
    )


async def test_every_page_needs_sign_in(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(name="<b>rush</b>", qos="afap", jobs={"count": 6})
    await work_off(server, [host], share=0.5)
    await tell(server)

    async with a_browser(server, OPERATOR) as grace, a_browser(server) as visitor:
        for path in PAGES:
            status, page = await grace.get(path)
            assert status == 200, (path, page[:2000])
            assert "<h1>" in page and f"/{PLACE}/" in page, path
            assert "<b>rush</b>" not in page, path
            assert "onclick" not in page, path
            status, page = await visitor.get(path)
            assert 'name="password"' in page, path
            assert "rush" not in page, path
        for path in PAGES:
            found, page = await grace.get(f"{path}{'&' if '?' in path else '?'}batches=1")
            assert found == 422 and "batches: expected " in page, path
        for path in WRONG:
            found, page = await grace.get(path)
            name = re.search(r"[?&](\w+)=[^&]*$", path)
            assert (
                name is not None
                and found == 422
                and f"{label_of(name[1])}: expected" in page.replace(name[1], label_of(name[1]))
            ), (path, page[:2000])
        for path, status in (("/batches/99", 404), ("/batches/x", 422), ("/nowhere", 404), ("/batches?sort=size", 422)):
            found, page = await grace.get(path)
            assert found == status, path
            assert "What to do" in page, path
            assert "Traceback" not in page, path


async def test_forms_change_settings_and_are_audited(server: LiveServer) -> None:
    await add_operator(server)
    await add_person(server, "vera", Role.VIEWER)
    await server.create("POST", "/submitters", json={"name": "ben", "account": "default", "shares": 1.0})
    await add_person(server, "ben", Role.SUBMITTER, "ben")
    await server.add_app()
    async with a_browser(server, OPERATOR) as grace, a_browser(server, "vera") as vera, a_browser(server, "ben") as ben:
        new = {"app": "pi", "name": "mine", "count": "3", "gflop": "1", "memory_mb": "1", "disk_mb": "1"}
        new |= {"delay_bound_h": "24", "output": "out", "deadline": "2099-01-01T00:00"}
        _, where, page = await ben.post("/batches/new", {**new, "qos": "short_deadline"})
        assert "/batches/1?said=submitted" in where, page
        assert (await ben.post("/batches/new", {**new, "qos": "afap", "count": "0"}))[0] == 422
        other = await server.submit(name="not ben's")

        assert (await vera.post("/batches/1/abort", {}, form="/batches/1"))[0] == 403
        assert (await ben.post(f"/batches/{other}/abort", {}, form="/batches/1"))[0] == 403
        assert (await ben.post("/settings/deadline.p_tight", {"value": "0.8", "why": "x"}))[0] == 403
        assert (await grace.post("/batches/1/abort", {"csrf": "0" * 64}))[0] == 403

        await ben.post("/batches/1/deadline", {"deadline": "2098-01-01T00:00"}, form="/batches/1")
        await ben.post(
            "/batches/1/importance", {"user_priority": "-5", "level": "standby", "queue": "normal"}, form="/batches/1"
        )
        batch = await server.store.views.batch((await batches_of(server.store, limit=9))[-1].batch_id)
        assert (batch.deadline_at, batch.user_priority, batch.level) == (4_039_372_800.0, -5, "standby")
        assert (
            await grace.post(
                "/percentiles", {"deadline.p_tight": "0.8"}, form="/percentiles/preview?deadline.p_tight=0.8"
            )
        )[0] == 422
        moved = {"deadline.p_tight": "0.8", "why": "they waited"}
        await grace.post("/percentiles", moved, form="/percentiles/preview?deadline.p_tight=0.8")
        weights = {"ordering.policy": "multifactor", "ordering.wait_weight": "7", "ordering.size_weight": "0"}
        tried = "/ordering/preview?" + "&".join(f"{key}={value}" for key, value in weights.items())
        _, page = await grace.get(tried)
        assert "Contribution of each term" in page
        assert "(now 10000)" in page  # the weight, in the form that is filled with what was asked for
        assert (await vera.post("/ordering", {**weights, "why": "x"}, form=tried))[0] == 403
        assert (await grace.post("/ordering", weights, form=tried))[0] == 422
        await grace.post("/ordering", {**weights, "ordering.targets": "", "why": "short waits"}, form=tried)
        late = {"ordering.wait_weight": "9", "was.ordering.wait_weight": "10000", "why": "x"}
        status, _, page = await grace.post("/ordering", late, form="/ordering")
        assert status == 409 and "from 10000 to 7" in page, page
        many = " ".join(f"user:somebody-{number}=20" for number in range(1000))  # longer than an address may be
        status, _, page = await vera.post("/ordering/preview", {"ordering.targets": many}, form="/ordering")
        assert status == 200 and "Order after the change" in page, page
        assert (await grace.post("/ordering/preview", {"ordering.targets": many, "csrf": "0" * 64}))[0] == 403
        await grace.post("/settings/feeder.slots", {"value": "500", "why": "small"})
        await grace.post("/batches/1/abort", {})

    assert {key: one for key, one in (await server.store.settings.settings()).items() if key in (*weights, *moved)} == {
        "deadline.p_tight": 0.8,
        "ordering.policy": "multifactor",
        "ordering.wait_weight": 7.0,
    }
    trail = [one for one in await server.store.settings.setting_changes(9) if one.key == "ordering.wait_weight"]
    assert [(one.changed_by, one.why) for one in trail] == [(OPERATOR, "short waits")]
    [change] = [one for one in await server.store.settings.setting_changes(9) if one.key == "deadline.p_tight"]
    assert (change.changed_by, change.why) == (OPERATOR, "they waited")
    assert (await server.batch(batch.batch_id))["state"] == "aborted"
    acts = [(one.who, one.what) for one in await server.store.access.acts(limit=50)]
    for act in (
        ("ben", "submit_batch"),
        ("ben", "set_deadline"),
        (OPERATOR, "set_thresholds"),
        (OPERATOR, "set_ordering"),
        (OPERATOR, "abort_batch"),
    ):
        assert act in acts


async def test_selected_batches_are_changed_and_audited_each(server: LiveServer) -> None:
    await add_operator(server)
    await add_person(server, "vera", Role.VIEWER)
    await add_person(server, "sam", Role.SUBMITTER, "default")
    await server.add_app()
    ids = [await server.submit(name=f"b{number}") for number in range(3)]
    chosen = [("batch", str(one)) for one in ids[:2]]
    async with a_browser(server, OPERATOR) as grace, a_browser(server, "vera") as vera:
        change = {"what": "change", "user_priority": "-7", "level": "", "queue": ""}
        assert (await vera.post_many(chosen, change))[0] == 403
        status, _, page = await grace.post_many([], change, "?state=active")
        bulk = page[page.index('class="bulk"') :]
        assert (status, "selected?state=active" in page, 'class="bad"' in bulk) == (422, True, True)
        assert (await grace.post_many([], change, "?state=gone"))[0] == 422
        assert (await grace.post_many(chosen, {**change, "user_priority": ""}))[0] == 422
        status, _, page = await grace.post_many(chosen, change)
        assert status == 200 and not missing(re.findall(r"<h1>(.*)</h1>", page)[0], "2 of 2", "user priority -7")
        batches = [await server.store.views.batch(one) for one in ids]
        assert [one.user_priority for one in batches] == [-7, -7, 0]
        status, _, page = await grace.post_many([*chosen, ("batch", str(ids[2]))], change)
        assert status == 200 and "1 of 3" in re.findall(r"<h1>(.*)</h1>", page)[0]
        assert [len(re.findall(f"#{one}: user priority -7 already<", page)) for one in ids] == [1, 1, 0]
        async with a_browser(server, "sam") as sam:  # a submitter without the permission
            status, _, page = await sam.post_many(chosen, {"what": "change", "level": "expedite"})
            assert status == 409 and "expedite" in page
        status, _, page = await grace.post_many(chosen, {"what": "end"})
        assert status == 200 and 'name="sure"' in page
        assert [(await server.batch(one))["state"] for one in ids] == ["active"] * 3
        await grace.post_many(chosen, {"what": "end", "sure": "yes"})
        _, _, page = await grace.post_many([*chosen, ("batch", str(ids[2]))], {"what": "retry"})
        assert re.findall(r"#(\d+): ", page) == ["3"]
        status, _, page = await grace.post_many(chosen, {"what": "retry", "sure": "yes"})
        assert status == 409 and "#1: " in page and "#2: " in page  # aborted batches stay so

    assert [(await server.batch(one))["state"] for one in ids] == ["aborted", "aborted", "active"]
    acts = [(one.what, one.target) for one in await server.store.access.acts(limit=50)]
    for what, changed in (("set_importance", ids), ("abort_batch", ids[:2])):
        assert [target for act, target in acts[::-1] if act == what] == [f"batch {one}" for one in changed]


async def test_retry_of_selected_batches_asks_first(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    jobs = {"count": 2, "max_errors": 1, "max_instances": 1}
    ids = [await server.submit(name=name, jobs=jobs) for name in ("oak", "elm")]
    for _ in range(4):
        for task in await host.ask(1):
            host.end(task, 3, 195)
        await host.call()
        await server.forward(60.0)
    await server.validate()
    before = [(await server.store.views.batch(one)).counts.jobs_failed for one in ids]
    assert before == [2, 2]
    chosen = [("batch", str(one)) for one in ids]
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/apps/pi/versions/1?state=withdrawn")
        assert 'value="withdrawn" required checked' in page and page.count(" checked") == 1
        await grace.post("/apps/pi/versions/1", {"state": "withdrawn", "why": "wrong results"})
        await tell(server)
        _, page = await grace.get("/apps/pi/versions/1")
        assert 'value="aborted" required checked' in page  # the only choice that is left
        changes = page.partition('id="changes"')[2]
        assert not missing(changes, OPERATOR, "offered → withdrawn", "wrong results", "audit?subject=app+version+1")
        _, page = await grace.get(f"/hosts/{host.host_id}")
        row = page.partition('id="h-havs"')[2].partition("<td")[0]
        tags = re.findall(r'<span class="tag[^"]*">([^<]+)</span>', row)
        assert tags == [VersionState.WITHDRAWN.words]
        _, page = await grace.get(f"/batches/{ids[0]}")
        assert not missing(page.partition('id="batch"')[2], "wrong results", 'href="/console/apps/pi/versions/1"')
        _, _, asked = await grace.post_many(chosen, {"what": "retry"}, "?state=failed_jobs")
        after = [(await server.store.views.batch(one)).counts.jobs_failed for one in ids]
        confirmed = re.findall(r'name="batch" value="(\d+)"', asked)
        retried = [("batch", one) for one in confirmed]
        places = [
            (await grace.post_many(retried, {"what": "retry", "sure": "yes"}, "?state=failed_jobs"))[1]
            for _ in range(2)  # a second click
        ]
    acts = [one for one in await server.store.access.acts(limit=9) if one.what == "retry_batch"]

    assert (after, "selected?state=failed_jobs" in asked) == (before, True)
    assert confirmed == [str(one) for one in ids]
    assert asked.count('role="alert"') == 1  # both batches are of the app without a version
    assert not missing(asked, "oak", "elm", "wrong results", "Retry 4 failed jobs")
    assert places == ["/console/batches?state=failed_jobs&said=retried"] * 2
    assert [(one.target, one.detail) for one in reversed(acts)] == [
        (f"batch {one}", {"jobs_retried": 2}) for one in ids
    ]


async def test_batch_all_sent_has_no_position_after_a_change(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    sent = await server.submit(name="oak", jobs={"count": 1})
    assert len(await host.ask(1)) == 1
    other = await server.submit(name="elm")
    chosen = [("batch", str(one)) for one in (sent, other)]
    async with a_browser(server, OPERATOR) as grace:
        _, _, page = await grace.post_many(chosen, {"what": "change", "level": "standby"})

    rows = re.findall(r"(?s)<li>(.*?)</li>", page.partition('class="reasons"')[2])
    assert [bool(re.search(r"[0-9] of [0-9]", one)) for one in rows] == [False, True]


async def test_lists_by_position_have_rising_positions(server: LiveServer) -> None:
    """The page, its CSV file and the API: an urgent batch is sent first, and one whose instances are sent has none."""
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    sent = await server.submit(name="oak", jobs={"count": 1})
    assert len(await host.ask(1)) == 1
    plain = await server.submit(name="elm")
    urgent = await server.submit(name="ash", qos="afap")
    in_order = [urgent, plain, sent]
    async with a_browser(server, OPERATOR) as grace:
        for sort, expected in (("order", in_order), ("-order", [plain, urgent, sent])):
            page = (await grace.get(f"/batches?sort={sort}"))[1].partition('id="t-batches"')[2]
            assert [int(one) for one in re.findall(r'name="batch" value="(\d+)"', page)] == expected
            positions = [int(one) for one in re.findall(r"\b(\d) of 2\b", page)]
            assert positions == ([1, 2] if sort == "order" else [2, 1])
            async with grace.http.get(f"{grace.root}/batches?sort={sort}&as=csv") as answer:
                rows = [*csv.DictReader(io.StringIO(await answer.text()))]
            assert [int(row["batch_id"]) for row in rows] == expected
            more = ""
            for batch_id in expected:
                found = await server.create("GET", f"/batches?sort={sort}&limit=1{more}")
                assert [one["batch_id"] for one in found["batches"]] == [batch_id]
                more = f"&cursor={found['next_cursor']}"


async def test_pages_name_the_batch_and_the_host(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host("ada")
    await server.submit(name="oak")
    await host.ask(1)
    async with a_browser(server, OPERATOR) as grace:
        for path in ("/jobs/1", "/jobs/1/why", "/instances/1", f"/hosts/{host.host_id}"):
            assert 'batches/1">oak</a>' in (await grace.get(path))[1], path
        pause = {"kind": "batch", "name": "1", "why": "wrong input"}
        await grace.post("/restrictions", pause, form="/batches/1")
        assert ">batch 1 oak</a>" in (await grace.get("/restrictions"))[1]
        _, page = await grace.get("/batches/1/why")
    assert not missing(page.partition('verdict"')[2].partition("</p>")[0], f"host ada ({host.host_id})")
    awaited = page.partition('id="t-awaited"')[2].partition("</table>")[0]
    assert not missing(awaited, "instances/1", "in progress", f"hosts/{host.host_id}")


async def test_host_page_marks_results_of_ended_batches(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(name="oak")
    await host.ask(1)
    tags = []
    async with a_browser(server, OPERATOR) as grace:
        for _ in range(2):
            _, page = await grace.get(f"/hosts/{host.host_id}?state=in_progress")
            tags.append(page.partition('id="t-sent"')[2].partition("</table>")[0].count('<span class="tag'))
            await server.create("POST", "/batches/1/abort")

    assert tags == [1, 2]


async def test_lists_are_saved_as_csv(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(name="=1+1", jobs={"count": 4})
    await work_off(server, [host], share=0.5)
    async with a_browser(server, OPERATOR) as grace:
        for path, column, values in (
            ("/batches?sort=order&as=csv", "name", ["'=1+1"]),
            ("/batches?state=complete&as=csv", "name", []),
            ("/batches?sort=order&as=csv", "probability", [""]),
            ("/hosts?sort=-last_contact&as=csv", "host_id", ["1"]),
            ("/hosts?show=slow&as=csv", "x", []),
            ("/hosts?q=99&as=csv", "host_id", []),
            ("/batches/1/jobs?as=csv", "job_id", ["1", "2", "3", "4"]),
            ("/batches/1/instances?state=unsent&as=csv", "state", ["unsent", "unsent"]),
        ):
            async with grace.http.get(grace.root + path) as answer:
                rows = [*csv.DictReader(io.StringIO(await answer.text()))]
                assert (answer.content_type, answer.charset) == ("text/csv", "utf-8"), path
            assert [row[column] for row in rows] == values, path


async def test_number_opens_a_host_from_every_list(server: LiveServer) -> None:
    await add_operator(server)
    host = await server.add_host("room-99")
    assert await host.ask(1) == []
    async with a_browser(server, OPERATOR) as grace:
        found = [
            (await grace.get(f"/hosts?{show}q={number}"))[0]
            for show in ("", "show=without_work&")
            for number in (host.host_id, 99)
        ]
        opened = [(await grace.get(f"/hosts?q={number}"))[1] for number in (host.host_id, "9" * 50)]
        narrowed = (await grace.get("/hosts?show=without_work&q=99"))[1]
        empty = (await grace.get("/hosts?show=without_work&days=0"))[1]
        page = (await grace.get(f"/hosts/{host.host_id}"))[1]

    assert f'/hosts/{host.host_id}#h-refused"' in narrowed and 'id="h-refused"' in page
    assert f'/hosts/{host.host_id}/why"' in narrowed
    assert '/hosts?sort=in_progress"' in empty.partition('class="empty"')[2].partition("</div>")[0]
    assert found == [200] * 4 and ">room-99" in narrowed
    assert ["<h1" in page and "room-99" in page for page in opened] == [True, False]


async def test_pages_call_a_copy_a_copy_and_no_retry(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(qos="afap", jobs={"count": 6})
    await work_off(server, [host], share=0.5)
    copies = [ExtraCopy(JobId(5), 1, 0, 1, because="no result after 1.2 times")]
    assert await server.store.tails.add_copies(copies, now=server.clock.now()) == 1
    await tell(server)

    async with a_browser(server, OPERATOR) as grace:
        for path in ("/jobs/5", "/batches/1", "/batches/1/instances", "/batches/1/instances?state=unsent"):
            _, page = await grace.get(path)
            assert re.findall(r'<span class="tag[^>]*>(copy|retry)', page) == ["copy"], path
            assert ("with 1 copy" in page) is ("/batches/" in path), path
        assert "with 1 copy" in (await grace.get("/batches/1/why"))[1]
        _, page = await grace.get("/jobs/5/why")
        assert "no result after 1.2 times" in page and "A retry" not in page


async def test_why_page_counts_the_instances_of_open_jobs(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    hosts = [await server.add_host(f"host{number}") for number in range(3)]
    await server.submit(jobs={"count": 2})
    await server.feed()
    [done], [_] = [await host.ask() for host in hosts[:2]]
    jobs = [await server.store.views.job(JobId(number)) for number in (1, 2)]
    [job_id] = [one.job_id for one in jobs if one.instances[0].host_id == hosts[0].host_id]
    copies = [ExtraCopy(job_id, 1, 0, 1, because="slow")]
    assert await server.store.tails.add_copies(copies, now=server.clock.now()) == 1
    await server.feed()
    assert len(await hosts[2].ask()) == 1
    await hosts[0].work(done)
    await server.validate()
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/batches/1/why")
        shown = await server.create("GET", "/explain/batch/1")

    told = page.partition("<dt>In progress</dt>")[2].partition("</div>")[0]
    assert (shown["awaited"]["instances"], shown["in_progress"]) == (1, 2) and not missing(told, 2, "1 of them")


async def test_rules_are_compared_in_the_background(server: LiveServer) -> None:
    await add_operator(server)
    async with a_browser(server, OPERATOR) as grace:
        asked = {"scenario": "startup", "seeds": "1", "hosts": "6", "days": "5", "rules": "fixed"}
        _, where, page = await grace.post("/simulate", asked)
        assert where.endswith("/simulate/1"), page  # the same address, without a message, once it is done
        assert "number of simulations" in (await grace.post("/simulate", asked))[2].lower()
        simulation = await until_over(server, 1)
        assert simulation is SimulationState.DONE
        status, page = await grace.get("/simulate/1")
    assert status == 200
    assert "Makespan" in page
    assert "instances per job" in page


async def until_over(server: LiveServer, simulation_id: int) -> SimulationState:
    """Wait for its end; the pages of the test's worker continue meanwhile."""
    while True:
        found = await server.store.simulations.simulation(simulation_id)
        if found.state is not SimulationState.RUNNING:
            assert found.failure is None
            return found.state
        await server.clock.sleep(0.2)
