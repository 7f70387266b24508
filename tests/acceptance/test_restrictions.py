"""Operators pause work, ban hosts and withdraw versions in the console, with effect at the next requests."""

from __future__ import annotations

import re

import pytest

from administration.forecasts.words import NOT_SHOWN_WORDS
from administration.restrictions import key_of
from domain.access import Role
from domain.apps import VersionState
from domain.errors import InvalidInputError
from domain.forecasts import ForecastState
from domain.restrictions import Restricted, Restriction
from domain.units import AppVersionId, BatchId, VolunteerId
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import a_browser, add_person
from tests.acceptance.test_ordering_faces import order
from tests.browser.scene import OPERATOR, add_operator
from tests.builders import NOW
from tests.facts import missing
from tests.worlds import a_registered_host, a_retry

FIELDS = ("kind", "name", "why", "max_jobs", "effect")


async def test_a_ban_is_set_and_lifted_on_the_hosts_page(server: LiveServer) -> None:
    await add_operator(server)
    await add_person(server, "vera", Role.VIEWER)
    await server.add_app()
    host = await server.add_host()
    await server.submit(jobs={"count": 6})
    assert len(await host.ask(1)) == 1
    form = f"/hosts/{host.host_id}"
    ban = {"kind": "host", "name": str(host.host_id), "effect": "ban"}
    fields = {**ban, "sure": "yes", "back": f"/console{form}?state=valid&said=lifted"}

    async with a_browser(server, OPERATOR) as grace, a_browser(server, "vera") as vera:
        _, where, page = await grace.post("/restrictions", {**fields, "why": "wrong results"}, form=form)
        assert (f"{form}?state=valid&said=restricted" in where, "wrong results" in page) == (True, True)
        await server.feed()
        assert await host.ask(1) == []
        explained = await server.create("GET", f"/explain/host/{host.host_id}")
        assert explained["refused"]["code"] == "banned"
        assert explained["verdict"].count("no work") == 0 and "wrong results" in explained["verdict"]
        _, page = await grace.get(f"{form}/why")
        heading = re.findall(r'id="h-get">([^<]*)<', page)[0]
        assert ("ban" in heading, "1 job" in heading) == (True, True)
        _, page = await vera.get("/restrictions")
        assert not missing(page.partition("<main")[2], "wrong results", "operators can pause")
        _, page = await vera.get(form)
        assert "wrong results" in page and "ada@example.org" not in page
        assert (await vera.post("/restrictions/lift", fields, form=form))[0] == 403
        for path in ("/volunteers", "/volunteers/1"):
            assert (await vera.get(path))[0] == 403, path
        status, _, page = await grace.post("/restrictions", {**ban, "name": "99", "why": "x"})
        assert (status, 'role="alert"' in page, 'value="99"' in page) == (404, True, True)
        assert (await grace.post("/restrictions", {**ban, "why": " "}))[0] == 422
        named = f">ada ({host.host_id})</a>"
        for path in ("/hosts", "/hosts?show=restricted", "/restrictions", "/batches/1/instances", "/jobs/1"):
            assert named in (await grace.get(path))[1], path
        assert f">host ada ({host.host_id})</a>" in (await grace.get("/audit?subject=ada"))[1]
        forged = {**fields, "back": "https://example.org/console/"}
        lifted = await grace.post("/restrictions/lift", {**forged, "why": " results are fine "}, form=form)
        assert lifted[1].endswith("/console/?said=lifted")
        await server.feed()

    assert len(await host.ask(1)) == 1
    acts = {one.what: one for one in await server.store.access.acts(limit=9)}
    for what in ("restrict", "lift_restriction"):
        assert (acts[what].who, acts[what].target) == (OPERATOR, f"host {host.host_id}")
    assert acts["lift_restriction"].detail["why"] == "results are fine"


async def a_failing_host(server: LiveServer) -> Host:
    """Add an operator, an app, and a host whose ten results have failed."""
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(jobs={"count": 12, "max_errors": 1, "max_instances": 1})
    for _ in range(5):
        for task in await host.ask(2):
            host.end(task, 3, 195)
        await host.call()
        await server.forward(60.0)
    return host


async def test_offering_a_failed_version_again_says_what_failed(server: LiveServer) -> None:
    await a_failing_host(server)
    async with a_browser(server, OPERATOR) as grace:
        await grace.post("/apps/pi/versions/1", {"state": "withdrawn", "why": "it crashes"})
        _, page = await grace.get("/apps/pi/versions/1")
    note = page.partition('class="note warn"')[2].partition("</div>")[0]
    assert not missing(note, "10 of its 10 results") and "/batches/1/errors" in note


async def test_ban_ends_the_attention_for_a_failing_host_at_once(server: LiveServer) -> None:
    host = await a_failing_host(server)

    async def failing() -> list[str]:
        items = (await server.create("GET", "/attention"))["items"]
        return [one["remedy"] for one in items if one["kind"] == "failing_hosts"]

    [remedy] = await failing()
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/hosts?show=failing")
        await server.create("PUT", f"/restrictions/host/{host.host_id}", json={"why": "errors"})
        _, after = await grace.get("/hosts?show=failing")

    assert f"({host.host_id})" in remedy and await failing() == []
    link = f'/hosts/{host.host_id}"'
    assert (link in page, "10 of 10" in page, link in after) == (True, True, False)


async def test_every_page_says_that_the_project_is_paused(server: LiveServer) -> None:
    await add_operator(server)
    await add_person(server, "vera", Role.VIEWER)
    await server.add_app()
    batch = f"/batches/{await server.submit()}"
    pages = ("/", "/attention", "/batches", batch, "/hosts", "/restrictions")
    async with a_browser(server, OPERATOR) as grace, a_browser(server, "vera") as vera:
        assert "restricted" not in (await vera.get("/"))[1]
        await grace.post("/restrictions", {"kind": "project", "why": "disk swap", "sure": "yes"})
        for path in pages:
            for browser, resumes in ((grace, True), (vera, False)):
                banner = re.findall(r'id="pause".*', (await browser.get(path))[1])[0]
                told = (OPERATOR in banner, "disk swap" in banner, "/restrictions/lift" in banner)
                assert told == (True, True, resumes), path
        await grace.post("/restrictions/lift", {"kind": "project", "why": "new disk"}, form="/batches")
        assert "new disk" in (await grace.get("/audit"))[1]
        assert "disk swap" not in (await grace.get("/"))[1]


async def test_an_aborting_ban_replaces_the_jobs_at_once(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    banned, other = await server.add_host("ada"), await server.add_host("bob")
    batch_id = await server.submit()
    [task] = await banned.ask(1)
    fields = {"kind": "host", "name": str(banned.host_id), "why": "wrong results", "abort": "1"}
    async with a_browser(server, OPERATOR) as grace:
        status, _, page = await grace.post("/restrictions", {**fields, "effect": "limit", "max_jobs": "3"})
        assert (status, page.count('name="abort" value="1" checked class="wrong"')) == (422, 1)
        status, _, asked = await grace.post("/restrictions", {**fields, "effect": "ban"})
        assert (status, list(await restricted(server))) == (200, [])
        assert not missing(asked.partition("<main")[2], "1 instance", "wrong results", "abort")
        await grace.post("/restrictions", {**fields, "effect": "ban", "sure": "yes"})
        _, page = await grace.get("/restrictions")
        assert "jobs aborted" in page
    await server.validate()
    await server.feed()

    assert len(await other.ask(1)) == 1
    assert task.result.name in (await banned.call()).aborts
    assert [one.state for one in (await server.jobs(batch_id))[0].instances] == ["aborted", "in_progress"]


async def test_form_tells_a_ban_from_a_limit(server: LiveServer) -> None:
    await add_operator(server)
    host = await server.add_host("ada")
    await host.call()
    fields = {"kind": "host", "name": "ada", "why": "errors", "max_jobs": "0"}
    async with a_browser(server, OPERATOR) as grace:
        status, _, page = await grace.post("/restrictions", {**fields, "effect": "limit"})
        assert (status, 'aria-describedby="flaw-max_jobs"' in page) == (422, True)
        for effect, most in (("limit", 4), ("ban", 0)):
            await grace.post("/restrictions", {**fields, "max_jobs": "4", "effect": effect, "sure": "yes"})
            assert [one.max_jobs for one in await restricted(server)] == [most]
        await grace.post("/restrictions/lift", fields)
        _, page = await grace.get(f"/hosts/{host.host_id}")
        buttons = re.findall(r'name="effect" value="(\w+)">(\w+) host ada', page)
        assert (buttons, "checked" in page) == ([("ban", "Ban"), ("limit", "Limit")], False)


async def test_volunteers_ban_is_asked_with_what_it_ends(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host("ada")
    await server.submit(jobs={"count": 2})
    await host.ask(1)
    email = (await server.store.restrictions.listed([VolunteerId(1)]))[0].email
    fields = {"kind": "volunteer", "name": email, "why": "errors", "effect": "ban"}
    async with a_browser(server, OPERATOR) as grace:
        status, _, asked = await grace.post("/restrictions", fields)
        sent = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', asked.partition("<main")[2]))

        assert (status, sent["name"], sent["sure"], "abort" in sent) == (200, "1", "yes", False)
        assert not missing(asked.partition("<main")[2], "1 host", "1 instance")
        assert list(await restricted(server)) == []


async def test_a_host_is_banned_by_a_name_that_is_its_own(server: LiveServer) -> None:
    one, other = await server.add_host("ada"), await server.add_host("basil-143")
    twin = await server.add_host("bob", domain_name="ada")
    for host in (one, twin, other):
        await host.call()
    banned = await server.create("PUT", "/restrictions/host/BASIL-143", json={"why": "errors"})
    assert banned["name"] == str(other.host_id)
    assert (await server.create("DELETE", "/restrictions/host/basil-143"))["lifted"] is True
    with pytest.raises(InvalidInputError) as ambiguous:
        await key_of(server.store, Restricted.HOST, "ada")
    assert not missing(str(ambiguous.value), f"{one.host_id}", f"{twin.host_id}")


async def test_names_of_newer_hosts_do_not_hide_a_host(server: LiveServer) -> None:
    host = await server.add_host("basil")
    await host.call()
    for number in range(60):
        await a_registered_host(server.store, domain_name=f"basil{number}")

    banned = await server.create("PUT", "/restrictions/host/basil", json={"why": "errors"})

    assert banned["name"] == str(host.host_id)


async def test_lists_that_only_the_page_sorts_are_long(server: LiveServer) -> None:
    await add_operator(server)
    for _ in range(60):
        host = await a_registered_host(server.store)
        await server.store.restrictions.put(Restriction(Restricted.HOST, str(host.host_id), 0, "errors", "ada", NOW))

    async with a_browser(server, OPERATOR) as grace:
        pages = [(await grace.get(path))[1] for path in ("/hosts", "/hosts?show=restricted")]

    rows = [page.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr>") for page in pages]
    assert rows == [50, 60]
    assert ['id="t-hosts" data-sortable' in page for page in pages] == [False, True]


async def test_an_error_stands_at_its_field_of_its_form(server: LiveServer) -> None:
    await add_operator(server)
    await (await server.add_host()).ask(1)
    refused = {
        ("host", "99", "x", "0", "ban"): (404, "ban", "name"),
        ("host", "seven", "x", "1", "limit"): (404, "ban", "name"),
        ("volunteer", "1", " ", "0", "ban"): (422, "ban", "why"),
        ("volunteer", "1", "x", "-1", "limit"): (422, "ban", "max_jobs"),
        ("volunteer", "1", "x", "", "limit"): (422, "ban", "max_jobs"),
        ("host", "1", "x", "", "foo"): (422, "ban", ""),
        ("host", "1", "x", "0"): (422, "ban", ""),
        ("queue", "none", "x", "0"): (422, "pause", "target"),
        ("project", "", " ", "0"): (422, "pause", "why"),
        ("batch", "9", "x", "0"): (404, "pause", "target"),
        ("queue", "normal", "x", "5"): (422, "pause", ""),
    }
    async with a_browser(server, OPERATOR) as grace:
        for given, expected in refused.items():
            status, _, page = await grace.post("/restrictions", dict(zip(FIELDS, given, strict=False)))
            pause, ban = page.split('id="h-pause"')[1].split('id="h-ban"')
            at = {
                form: re.findall(r'name="(\w+)"[^>]* aria-invalid', part)
                for form, part in (("pause", pause), ("ban", ban))
                if 'role="alert"' in part
            }
            assert (status, at, page.count('role="alert"')) == (
                expected[0],
                {expected[1]: [expected[2]] if expected[2] else []},
                1,
            ), given


async def test_audit_names_the_restricted_object(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    await (await server.add_host()).ask(1)
    email = (await server.store.restrictions.listed([VolunteerId(1)]))[0].email
    async with a_browser(server, OPERATOR) as grace:
        for kind, name in (("app", "pi"), ("volunteer", email)):
            await grace.post("/restrictions", {"kind": kind, "name": name, "why": "x", "effect": "ban", "sure": "yes"})
            await grace.post("/restrictions/lift", {"kind": kind, "name": name})
        for path in ("host/1", f"volunteer/{email}"):
            await server.create("PUT", f"/restrictions/{path}", json={"why": "wrong results"})
            await server.create("DELETE", f"/restrictions/{path}")
        for action in ("ban", "pause", "lift", "resume"):
            _, page = await grace.get(f"/audit?what={action}")
            rows = re.findall(r'title="Only this action">([^<]*)<', page)
            offered = re.findall(r'<option value="[a-z_]*"( selected)?>([^<]*)<', page)
            assert set(rows) == {action} and (" selected", action) in offered

    acts = [one for one in await server.store.access.acts(limit=9) if "restrict" in one.what]
    assert [(one.what, one.target) for one in reversed(acts)] == [
        (what, target)
        for target in ("app pi", "volunteer 1", "host 1", "volunteer 1")
        for what in ("restrict", "lift_restriction")
    ]


async def test_restrictions_of_gone_objects_can_be_lifted(server: LiveServer) -> None:
    await server.add_app("pi")
    restrictions = server.store.restrictions
    for kind, name in ((Restricted.HOST, "99"), (Restricted.QUEUE, "removed"), (Restricted.BATCH, "12")):
        await restrictions.put(Restriction(kind, name, 0, "wrong results", "ada", NOW))
        await server.create("DELETE", f"/restrictions/{kind}/{name}")

    assert list(await restrictions.restrictions()) == []


async def test_bans_go_with_the_host_and_the_account(server: LiveServer) -> None:
    host = await a_registered_host(server.store)
    for kind, name in (("host", host.host_id), ("volunteer", host.volunteer_id)):
        await server.create("PUT", f"/restrictions/{kind}/{name}", json={"why": "wrong results"})
    participation, restrictions = server.store.participation, server.store.restrictions

    await participation.drop_host(host.volunteer_id, host.host_id, now=NOW)
    assert [one.kind for one in await restrictions.restrictions()] == [Restricted.VOLUNTEER]
    await participation.forget_volunteer(host.volunteer_id, bytes(32), now=NOW)
    assert list(await restrictions.restrictions()) == []


@pytest.mark.parametrize(("kind", "name"), [("batch", "1"), ("app", "pi"), ("queue", "normal")])
async def test_paused_work_is_not_sent_and_explained(server: LiveServer, kind: str, name: str) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    batch_id = await server.submit(jobs={"count": 4})
    await server.create("PUT", f"/restrictions/{kind}/{name}", json={"why": "wrong input"})
    await server.feed()

    assert await host.ask(1) == []
    unschedulable = await server.create("GET", "/unschedulable")
    assert [(one["kind"], one["name"], one["why"]) for one in unschedulable["paused"]] == [(kind, name, "wrong input")]
    hold = (await server.create("GET", f"/explain/batch/{batch_id}"))["order"]["hold"]
    assert hold.startswith(f"{kind} {name}") and not missing(hold, "is paused", "wrong input")
    explained = await server.create("GET", f"/explain/host/{host.host_id}")
    assert [one["code"] for one in explained["refused_at_large"]] == ["paused"]
    [job, *_] = await server.jobs(batch_id)
    assert (await server.create("GET", f"/explain/job/{job.job_id}"))["hold"] == hold
    async with a_browser(server, OPERATOR) as grace:
        _, why = await grace.get(f"/batches/{batch_id}/why")
        links = re.findall(r'class="button" href="/console/(restrictions|batches/1#restrict)"', why)
        assert links == ["batches/1#restrict" if kind == "batch" else "restrictions"]

    await server.create("DELETE", f"/restrictions/{kind}/{name}")
    await server.feed()
    assert len(await host.ask(1)) == 1


async def test_submitters_pause_only_their_own_batches(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    await server.create("POST", "/submitters", json={"name": "lab"})
    await add_person(server, "sue", Role.SUBMITTER, submitter="lab")
    await add_person(server, "tom", Role.SUBMITTER, submitter="lab")
    own, others = await server.submit(submitter="lab"), await server.submit()

    page = f"/batches/{own}"

    def pause(name: object, kind: str = "batch") -> dict[str, str]:
        return {"kind": kind, "name": str(name), "why": "wrong input", "back": f"/console{page}"}

    async with a_browser(server, "sue") as sue, a_browser(server, "tom") as tom, a_browser(server, OPERATOR) as grace:
        for form in (pause(others), pause("pi", "app"), pause("normal", "queue"), pause("", "project")):
            assert (await sue.post("/restrictions", form, form=page))[0] == 403, form
        assert (await sue.post("/restrictions", {**pause(own), "why": " "}, form=page))[0] == 422
        for lifts in (sue, tom):
            assert f"{page}?said=paused" in (await sue.post("/restrictions", pause(own), form=page))[1]
            assert "/restrictions/lift" in (await lifts.get("/restrictions"))[1]
            assert f"{page}?said=resumed" in (await lifts.post("/restrictions/lift", pause(own), form=page))[1]

        await grace.post("/restrictions", pause(own), form=page)
        for path in ("/restrictions", "/restrictions/lift"):
            assert (await sue.post(path, pause(own), form=page))[0] == 403
        assert "/restrictions/lift" not in (await sue.get("/restrictions"))[1]
        _, shown = await sue.get(page)
        assert ("wrong input" in shown, "/restrictions/lift" in shown) == (True, False)
        assert "/restrictions/lift" in (await grace.get(page))[1]


async def test_a_submitters_token_pauses_its_batches(server: LiveServer) -> None:
    await server.add_app()
    await server.create("POST", "/submitters", json={"name": "lab"})
    await add_person(server, "sue", Role.SUBMITTER, submitter="lab")
    token = (await server.create("POST", "/tokens", json={"name": "t", "person": "sue"}))["value"]
    own, others = await server.submit(submitter="lab"), await server.submit()

    async def ask(method: str, path: str, body: object = None) -> int:
        head = {"Authorization": f"Bearer {token}"}
        async with server.http.request(
            method, f"{server.url}api/v1/restrictions/{path}", json=body, headers=head
        ) as it:
            return it.status

    why = {"why": "wrong input"}
    assert await ask("PUT", f"batch/{own}", why) == 200
    assert await ask("DELETE", f"batch/{own}") == 200
    for path in (f"batch/{others}", "app/pi", "queue/normal", "host/1"):
        assert (await ask("PUT", path, why), await ask("DELETE", path)) == (403, 403), path
    assert await ask("PUT", "batch/99", why) == 404
    await server.create("PUT", f"/restrictions/batch/{own}", json=why)
    assert (await ask("PUT", f"batch/{own}", why), await ask("DELETE", f"batch/{own}")) == (403, 403)


async def test_the_project_and_a_batch_are_paused_in_the_console(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(jobs={"count": 4})
    await order(server)
    async with a_browser(server, OPERATOR) as grace:
        status, _, unchosen = await grace.post("/restrictions", {"target": "", "why": "full disk"})
        assert (status, '<select name="target" required class="wrong"' in unchosen) == (422, True)
        for fields in ({"kind": "project"}, {"kind": "batch", "name": "1"}):
            await grace.post("/restrictions", {**fields, "why": "full disk", "sure": "yes"})
            await server.feed()
            assert await host.ask(1) == [], fields
            _, page = await grace.get("/restrictions")
            row = re.findall(r"(?s)<tr><th scope=.row.*?</tr>", page.partition("<tbody>")[2])
            assert (len(row), row[0].count("/restrictions/lift")) == (1, 1) and not missing(
                row[0], "full disk", OPERATOR
            )
            _, page = await grace.get("/batches/1")
            assert "full disk" in page and page.index("/restrictions/lift") < page.index('class="figures"')
            for place in ("/batches", "/batches/1", "/batches/1/why"):
                _, page = await grace.get(place)
                assert ">1 of 1</a>" not in page and "not sent" in page and "come first" not in page, place
                assert NOT_SHOWN_WORDS[ForecastState.PAUSED] in page or place.endswith("why"), place
            _, page = await grace.get("/ordering")
            assert len(re.findall(r'class="tag warn"[^>]*>paused<', page)) == (fields["kind"] == "batch")
            [shown] = (await server.create("GET", "/batches"))["batches"]
            assert (shown["forecast_state"], shown["completion_q50_at"]) == ("paused", None)
            tag = {"batch": '">paused</span>', "project": '">project paused</span>'}[fields["kind"]]
            for place in ("/batches/1", "/batches"):
                _, page = await grace.get(place)
                assert 'class="tag accent">active' not in page and tag in page, place
            _, where, _ = await grace.post("/restrictions/lift", fields)
            assert ("said=project_resumed" in where) == (fields["kind"] == "project") and "resumed" in where
            await server.feed()
            assert len(await host.ask(1)) == 1, fields


async def test_one_form_pauses_and_names_what_it_stops(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(name="oak", jobs={"count": 1})
    await order(server)
    await host.ask(1)
    await server.submit(name="elm")
    async with a_browser(server, OPERATOR) as grace:
        form = (await grace.get("/apps/pi"))[1].partition("<details")[2].partition("</details>")[0]
        sent = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
        assert not missing(form, 'name="why"', "elm", "1 batch") and "oak" not in form
        assert (await grace.post("/restrictions", sent, form="/apps/pi"))[0] == 422
        _, where, _ = await grace.post("/restrictions", {**sent, "why": "full disk"}, form="/apps/pi")
        overview = (await grace.get("/"))[1].partition('id="h-paused"')[2]
        await server.create("POST", "/batches/2/abort")
        ended = await grace.post("/restrictions", {"kind": "batch", "name": "2", "why": "full disk"})

    assert "/apps/pi?said=paused" in where and ended[0] == 409
    assert [(one.kind, one.why) for one in await restricted(server)] == [(Restricted.APP, "full disk")]
    assert re.findall(r"[(]([0-9]+) batch", overview) == ["1"]


async def test_the_overview_lists_pauses(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    await server.submit(name="oak")
    async with a_browser(server, OPERATOR) as grace:
        assert 'id="h-paused"' not in (await grace.get("/"))[1]
        for kind, name in (("app", "pi"), ("queue", "bonus"), ("batch", "1")):
            await server.create("PUT", f"/restrictions/{kind}/{name}", json={"why": "full disk"})
        _, page = await grace.get("/")
    rows = re.findall(r"<li>.*?</li>", page.partition('id="h-paused"')[2].partition("</ul>")[0])

    assert [re.findall(r"\((\w+) ", row) for row in rows] == [[], ["each"], ["1"]]
    assert all("full disk" in row for row in rows) and "oak" in rows[0]


async def sent_to_a_host(server: LiveServer) -> None:
    """Submit a batch of one job, and send it."""
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(jobs={"count": 1})
    await order(server)
    await host.ask(1)


async def test_a_pause_does_not_mark_batches_that_are_sent(server: LiveServer) -> None:
    """A pause of its app is not shown beside an end."""
    await sent_to_a_host(server)
    await server.create("PUT", "/restrictions/app/pi", json={"why": "full disk"})
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/batches")

    assert (
        'class="tag accent">active' in page,
        "app paused" in page,
        NOT_SHOWN_WORDS[ForecastState.PAUSED] in page,
    ) == (
        True,
        False,
        False,
    )


@pytest.mark.parametrize(("kind", "name", "tag"), [("app", "pi", "app paused"), ("batch", "1", "paused")])
async def test_pause_of_a_batch_with_a_retry_unsent(server: LiveServer, kind: str, name: str, tag: str) -> None:
    """List, page, overview and order agree: only the batch's own pause marks it. Its position is no dash."""
    await add_operator(server)
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 1})
    await order(server)
    await a_retry(server.store, await a_registered_host(server.store), BatchId(batch_id))
    async with a_browser(server, OPERATOR) as grace:
        before = [(await grace.get(path))[1] for path in ("/batches", "/batches/1", "/batches/1/why")]
        await server.create("PUT", f"/restrictions/{kind}/{name}", json={"why": "full disk"})
        paths = ("/batches", "/batches/1", "/batches/1/why", "/", "/ordering")
        *after, overview, ordering = [(await grace.get(path))[1] for path in paths]

    assert all("only retries" in page for page in [*before, *after])
    assert [f">{tag}</span>" in page for page in after[:2]] == 2 * [kind == "batch"]
    assert "#1</a>" not in ordering.partition('id="h-order"')[2].partition("</section>")[0]
    paused = overview.partition('id="h-paused"')[2].partition("</ul>")[0]
    assert ("each job was sent" in paused) == (kind == "app")


async def test_paused_batch_whose_jobs_are_sent_is_marked(server: LiveServer) -> None:
    """Like the list of pauses, and what needs attention."""
    await sent_to_a_host(server)
    await server.create("PUT", "/restrictions/batch/1", json={"why": "full disk"})
    async with a_browser(server, OPERATOR) as grace:
        pages = [(await grace.get(path))[1] for path in ("/batches", "/batches/1")]

    assert all('">paused</span>' in page and "all sent" in page for page in pages)


async def test_work_to_pause_is_chosen_from_a_list(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    await server.feed()
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/restrictions")
        targets = re.findall(r'<option value="(\w+:[^"]*)"', page)
        assert set(targets) >= {"project:", "app:pi", "queue:normal"}
        status, _, page = await grace.post("/restrictions", {"target": "app:pi", "why": " "})
        assert (status, 'value="app:pi" selected' in page) == (422, True)
        for target in targets:
            assert (await grace.post("/restrictions", {"target": target, "why": "full disk"}))[0] == 200
        assert "project.down" not in await server.store.settings.settings()
        _, _, asked = await grace.post("/restrictions", {"target": "project:", "why": "full disk"})
        assert not missing(asked.partition("<main")[2], "0 active batches", "0 instances", "full disk")
        await grace.post("/restrictions", {"kind": "project", "why": "full disk", "sure": "yes"})

    paused = {f"{one.kind}:{'pi' if one.kind == 'app' else one.name}" for one in await restricted(server)}
    assert {"project:", *paused} == set(targets)
    assert (await server.store.settings.settings())["project.down"] is True


async def restricted(server: LiveServer) -> list[Restriction]:
    return list(await server.store.restrictions.restrictions())


async def test_a_version_is_withdrawn_and_offered_in_the_console(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    host = await server.add_host()
    await server.submit(jobs={"count": 4})
    path = "/apps/pi/versions/1"
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get(path)
        assert missing(page, "only version of pi", "4 unsent", "1 batch") == []
        assert len(await host.ask(1)) == 1
        abort = {"state": VersionState.ABORTED.value, "why": "it crashes"}
        status, _, asked = await grace.post(path, abort)
        assert (status, missing(asked.partition("<main")[2], "1 instance", "1 host", "it crashes")) == (200, [])
        assert 'name="state" value="withdrawn"' in asked  # leaves the jobs in progress
        version = (await server.store.applications.load_catalogue()).versions[AppVersionId(1)]
        assert version.state is VersionState.OFFERED
        _, where, page = await grace.post(path, {**abort, "sure": "yes"})
        assert f"{path}?said=version_aborted" in where and VersionState.ABORTED.words in page
        form = page.partition('id="h-state"')[2].partition("</section>")[0]
        assert "4 unsent" not in form
        assert "<button>Offer again" in form and 'class="danger"' not in form and 'type="radio"' not in form
        await server.feed()
        assert await host.ask(1) == []
        for place in ("/batches/1", "/batches/1/why", "/batches/1/retry", "/batches/1/clone"):
            _, page = await grace.get(place)
            assert missing(page, "it crashes") == [] and f'href="/console{path}"' in page, place
        assert (await grace.post(path, {"state": VersionState.OFFERED.value}))[0] == 422
        await grace.post(path, {"state": VersionState.OFFERED.value, "why": "mended"})
        assert (await grace.get("/apps/pi/versions/9"))[0] == 404
        _, page = await grace.get("/audit?subject=pi+1.00")
        assert f'href="/console{path}"' in page and missing(page, "offered → withdrawn", "aborted → offered") == []
        await server.feed()
        assert "it crashes" not in (await grace.get("/batches/1"))[1]
    await server.feed()

    assert len(await host.ask(1)) == 1
    acts = [(one.what, one.target, one.detail.get("why")) for one in await server.store.access.acts(limit=9)]
    assert ("set_app_version", "app version 1", "it crashes") in acts


async def test_a_link_to_offer_again_does_not_open_a_withdrawal(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    await server.store.applications.set_version_state(AppVersionId(1), VersionState.DEPRECATED)
    async with a_browser(server, OPERATOR) as grace:
        pages = [(await grace.get(f"/apps/pi/versions/1?state={state}"))[1] for state in ("offered", "withdrawn")]

    assert ['<details class="more" open' in page for page in pages] == [False, True]
