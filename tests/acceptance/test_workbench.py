"""Batches from uploaded files, clones, retries, grouped errors and the table of results, in the console and the API."""

from __future__ import annotations

import csv
import html
import io
import re
import tomllib
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from administration.accounts import AccountKeys
from domain.access import Role
from domain.attention import FAILED_JOBS
from domain.batches import BatchState
from domain.units import HOUR_S, BatchId
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import Browser, a_browser, add_person
from tests.browser.scene import OPERATOR, add_operator
from tests.facts import missing
from tests.stores import batches_of
from transfer.keys import load_keys

TOML = """app = "pi"
qos = "afap"
name = "from a file"
jobs_csv = "anything.csv"

[jobs]
command_line = "--n {n}"
disk_bytes = 2e8
outputs = [{name = "out", max_bytes = 1000}]
"""
CSV = "n,fpops_est\n1,1e9\n2,2e9\n3,3e9\n"
UPLOAD = "/batches/upload"


async def bring(
    browser: Browser,
    files: dict[str, tuple[str, str]],
    fields: dict[str, str] | None = None,
    *,
    token: str | None = None,
) -> tuple[int, str]:
    """Send the upload form; return status and page."""
    _, page = await browser.get(UPLOAD)
    [found] = re.findall(
        r'enctype="multipart/form-data"[^>]*><input type="hidden" name="csrf" value="([0-9a-f]+)"', page
    )
    form = aiohttp.FormData({"csrf": found if token is None else token, **(fields or {})}, default_to_multipart=True)
    for name, (file, content) in files.items():
        form.add_field(name.partition(" ")[0], content.encode(), filename=file)
    async with browser.http.post(browser.root + UPLOAD, data=form) as response:
        return response.status, await response.text()


async def submit_checked(browser: Browser, page: str) -> tuple[int, str, str]:
    """Send the form of the preview."""
    [token] = re.findall(r'upload/submit"[^>]*><input type="hidden" name="csrf" value="([0-9a-f]+)"', page)
    [batch] = re.findall(r'name="batch" value="([^"]+)"', page)
    data = {"csrf": token, "batch": html.unescape(batch), **key_in(page)}
    async with browser.http.post(f"{browser.root}{UPLOAD}/submit", data=data) as response:
        return response.status, response.url.path_qs, await response.text()


async def furnished(server: LiveServer) -> None:
    await add_people(server)
    await server.add_app()


async def add_people(server: LiveServer) -> None:
    await add_operator(server)
    await server.create("POST", "/submitters", json={"name": "ben", "account": "default", "shares": 1.0})
    await add_person(server, "ben", Role.SUBMITTER, "ben")
    await add_person(server, "vera", Role.VIEWER)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ben(shared_pi: LiveServer) -> AsyncIterator[Browser]:
    await add_people(shared_pi)
    async with a_browser(shared_pi, "ben") as browser:
        yield browser


async def test_files_are_checked_previewed_and_submitted(server: LiveServer) -> None:
    await furnished(server)
    async with a_browser(server, "ben") as ben:
        status, page = await bring(ben, {"batch": ("b.toml", TOML), "table": ("t.csv", CSV)})
        assert status == 200 and "3 jobs of pi" in page, page
        assert (
            missing(
                page,
                "AFAP: as fast as possible",
                "ben, account default",
                "--n 1",
                "disk 200 MB",
                "b.toml, t.csv",
                "b.toml names anything.csv",
            )
            == []
        )
        assert (
            "names anything.csv"
            not in (await bring(ben, {"batch": ("b.toml", TOML), "table": ("anything.csv", CSV)}))[1]
        )
        assert await batches_of(server.store, limit=9) == []
        _, where, page = await submit_checked(ben, page)
        assert "/batches/1?said=submitted" in where, page
    batch = await server.batch(BatchId(1))
    assert (batch["name"], batch["submitter"], batch["jobs_total"]) == ("from a file", "ben", 3)
    assert [job.command_line for job in await server.jobs(BatchId(1))] == ["--n 1", "--n 2", "--n 3"]
    assert ("ben", "submit_batch") in [(one.who, one.what) for one in await server.store.access.acts(limit=9)]


async def test_example_of_the_page_is_submitted(server: LiveServer) -> None:
    await furnished(server)
    await server.feed()  # the worker reads the new app
    async with a_browser(server, "ben") as ben:
        _, page = await ben.get(UPLOAD)
        shown = re.findall(r'<pre id="example-(batch|table)">(.*?)</pre>', page, re.DOTALL)
        names = {"batch": "batch.toml", "table": "jobs.csv"}
        files = {kind: (names[kind], html.unescape(text)) for kind, text in shown}
        assert tomllib.loads(files["batch"][1])["submitter"] == "ben"
        status, page = await bring(ben, files)
        assert status == 200, page
        await submit_checked(ben, page)
    assert [job.command_line for job in await server.jobs(BatchId(1))] == ["--seed 1", "--seed 2", "--seed 3"]
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get(UPLOAD)
    assert 'submitter = "default"' in html.unescape(page)


async def test_missing_field_of_a_batch_file_shows_no_code(server: LiveServer) -> None:
    await furnished(server)
    async with a_browser(server, "ben") as ben:
        status, page = await bring(ben, {"batch": ("b.toml", 'app = "pi"\nqos = "afap"\n[jobs]\ncount = 2\n')})
    assert status == 422 and not missing(page, "fpops_est", "no value") and missing(page, "got None")


async def test_table_alone_takes_its_batch_from_the_form(server: LiveServer) -> None:
    await furnished(server)
    rows = '{"n": 1, "input.in.txt": ""}\n{"n": 2, "command_line": "--own"}\n'
    async with a_browser(server, OPERATOR) as grace:
        form = {"app": "pi", "qos": "throughput", "name": "lines", "gflop": "2", "command_line": "--n {n}"}
        status, page = await bring(grace, {"table": ("t.jsonl", rows)}, form)
        assert status == 200, page
        await submit_checked(grace, page)
    assert [job.command_line for job in await server.jobs(BatchId(1))] == ["--n 1", "--own"]
    assert (await server.batch(BatchId(1)))["qos"] == "throughput"


async def test_forms_for_new_batches_have_level_queue_and_submitter(server: LiveServer) -> None:
    await furnished(server)
    await server.feed()
    places = {"level": "standby", "queue": "bonus", "user_priority": "-5"}
    new = {"app": "pi", "qos": "afap", "count": "3", "gflop": "1", **places}
    async with a_browser(server, "ben") as ben, a_browser(server, OPERATOR) as grace:
        for path in ("/batches/new", UPLOAD):
            pages = [(await one.get(path))[1] for one in (ben, grace)]
            assert [all(f'name="{name}"' in page for name in places) for page in pages] == [True, True], path
            assert [('value="expedite"' in page, 'name="submitter"' in page) for page in pages] == [
                (False, False),
                (True, True),
            ]
        await ben.post("/batches/new", {**new, "what": "submit"})
        assert (await ben.post("/batches/new", {**new, "level": "expedite", "what": "submit"}))[0] == 422
        await grace.post("/batches/new", {**new, "level": "expedite", "submitter": "ben", "what": "submit"})
        _, page = await bring(grace, {"table": ("t.csv", "fpops_est\n1e9\n")}, {**new, "submitter": "ben"})
        await submit_checked(grace, page)
    found = [await server.batch(BatchId(number)) for number in (1, 2, 3)]
    assert [(one["level"], one["submitter"]) for one in found] == [
        (one, "ben") for one in ("standby", "expedite", "standby")
    ]
    assert {(one["queue"], one["user_priority"]) for one in found} == {("bonus", -5)}


async def test_service_without_deadline_hides_and_refuses_one(server: LiveServer) -> None:
    """Forms hide the field and leave out what it has; batch files and the API say what they bring."""
    await furnished(server)
    batch_id = await a_failed_batch(server)
    given = {"app": "pi", "qos": "afap", "count": "3", "gflop": "1", "delay_bound_h": "24", "name": "dated"}
    given |= {"deadline": "2099-01-01T00:00"}
    async with a_browser(server, "ben") as ben:
        for path in ("/batches/new", f"/batches/{batch_id}/clone"):
            status, _, page = await ben.post(path, {**given, "what": "preview"})
            assert (status, 'value="2099-01-01T00:00"' in page) == (200, True)
            status, where, page = await ben.post(path, {**given, "what": "submit"})
            assert "said=submitted" in where, page
            batch = await server.batch(BatchId(int(where.partition("?")[0].rpartition("/")[2])))
            assert (batch["qos"], batch["deadline_at"]) == ("afap", None)
        status, page = await bring(ben, {"table": ("t.csv", "n\n1\n")}, {**given, "command_line": "{n}"})
        assert (status, "2099-01-01" in page) == (200, False)
        status, page = await bring(ben, {"batch": ("b.toml", f"deadline_s = 60\n{TOML}"), "table": ("t.csv", CSV)})
        assert (status, "b.toml, line 1:" in page) == (422, True)
    status, problem = await server.api("POST", f"/batches/{batch_id}/clone", json={"qos": "afap", "deadline_s": 60})
    assert (status, problem["field"]) == (422, "deadline_s")


async def test_input_files_named_by_path_come_along(server: LiveServer) -> None:
    await furnished(server)
    toml = (
        TOML.replace('jobs_csv = "anything.csv"\n', "")
        + 'count = 2\nfpops_est = 1e9\ninputs = [{path = "data/in.txt"}]\n'
    )
    async with a_browser(server, "ben") as ben:
        status, page = await bring(ben, {"batch": ("b.toml", toml)})
        assert status == 422 and "inputs.path" in page
        status, page = await bring(ben, {"batch": ("b.toml", toml), "inputs": ("in.txt", "hello")})
        assert status == 200, page
        await submit_checked(ben, page)
    classes = await server.store.views.classes_of_batch(BatchId(1))
    assert [(one.open_name, one.nbytes) for one in classes[0].inputs] == [("in.txt", 5)]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("files", "facts"),
    [
        ({}, ("Batch: expected",)),
        ({"batch": ("b.toml", "app = \n")}, ("b.toml, line 1", "TOML")),
        (
            {"batch": ("b.toml", TOML.replace('"afap"', '"soon"') + "quorun = 2\n")},
            ("2 errors", "b.toml, line 2", "'soon'", "jobs.quorun"),
        ),
        (
            {"batch": ("b.toml", TOML), "table": ("t.csv", CSV + "4,many\n5,1e9\n6,few\n")},
            ("2 errors", "t.csv, line 5", "many", "t.csv, line 7", "few"),
        ),
        (
            {"batch": ("b.toml", TOML.replace('"afap"', '"soon"')), "table": ("t.csv", CSV)},
            ("b.toml, line 2", "qos", '"soon"'),
        ),
        (
            {"batch": ("b.toml", TOML), "table": ("t.csv", CSV + "4,many\n")},
            ("t.csv, line 5", "fpops_est", "many", "anything.csv"),
        ),
        ({"batch": ("b.toml", TOML), "table": ("t.csv", CSV + "4\n")}, ("t.csv, line 5",)),
        (
            {"batch": ("b.toml", TOML), "table": ("t.csv", "fpops_est,site\n1e9,x1\n")},
            ("b.toml, line 7", "jobs.command_line:", "fpops_est, site", "got '{n}'", "command_line = "),
        ),
        (
            {"batch": ("b.toml", TOML), "table": ("t.csv", "n,fpops_est,x\n1,1e9,\n")},
            ("t.csv, line 1, column x", "{x}"),
        ),
        ({"batch": ("b.toml", TOML.replace('"pi"', '"e"')), "table": ("t.csv", CSV)}, ("b.toml, line 1", "app")),
        ({"batch": ("b.toml", TOML)}, ("b.toml", "anything.csv", "Table of jobs")),
        ({"batch": ("b.json", '{\n"app": }')}, ("b.json, line 2", "JSON")),
        ({"batch": ("b.exe", TOML)}, (".toml or .json", "b.exe")),
        ({"batch": ("b.json", "[" * 100_000)}, ("b.json", "batch: expected")),
        ({"batch": ("b.toml", "#" * 500_000)}, ("b.toml", "400 kB")),
        ({"batch": ("a.toml", TOML), "batch 2": ("b.toml", TOML)}, ("one file", "2 files")),
    ],
)
async def test_wrong_files_are_refused_with_file_and_line(
    ben: Browser, files: dict[str, tuple[str, str]], facts: tuple[str, ...]
) -> None:
    status, page = await bring(ben, files)
    assert status == 422
    [told] = re.findall(r'<div class="note bad" role="alert" id="wrong">(.*?)</div>', page, re.DOTALL)
    told = html.unescape(re.sub(r"<[^>]+>", "", told))
    assert [fact for fact in facts if fact not in told] == [], told
    assert "/tmp" not in told
    assert all(name in page.partition('id="wrong"')[2].partition("<form")[0] for name, _ in files.values())


async def test_uploads_need_the_role_and_the_forms_token(server: LiveServer) -> None:
    await furnished(server)
    files = {"batch": ("b.toml", TOML), "table": ("t.csv", CSV)}
    async with a_browser(server, "ben") as ben, a_browser(server, "vera") as vera, a_browser(server) as visitor:
        assert (await bring(ben, files, token="0" * 64))[0] == 403
        assert (await vera.get(UPLOAD))[0] == 403
        form = aiohttp.FormData({"csrf": "x"}, default_to_multipart=True)
        async with visitor.http.post(visitor.root + UPLOAD, data=form, allow_redirects=False) as response:
            assert response.status == 303  # to sign in
        head = {"Content-Type": "multipart/form-data; boundary=x"}
        async with ben.http.post(ben.root + UPLOAD, data=b"no such thing", headers=head) as response:
            assert response.status == 403


async def test_batch_that_the_second_form_cannot_send_is_refused(server: LiveServer) -> None:
    await furnished(server)
    head = TOML.replace('jobs_csv = "anything.csv"\n', "") + "fpops_est = 1e9\n"
    job = '[[job]]\ncommand_line = "%s"\n'
    async with a_browser(server, "ben") as ben:
        status, page = await bring(ben, {"batch": ("b.toml", head + job % ("é" * 900) * 150)})
        assert status == 200 and (await submit_checked(ben, page))[1].endswith("said=submitted")
        status, page = await bring(ben, {"batch": ("b.toml", head + job % ("é" * 900) * 210)})
    assert status == 422
    assert re.search(r"batch: expected .*\b995 kB\b.*1\.\d+ MB", page)


async def test_upload_without_parts_is_invalid_input(server: LiveServer) -> None:
    await furnished(server)
    async with a_browser(server, "ben") as ben:
        status, _, page = await ben.post(UPLOAD, {"app": "pi"})  # URL-encoded
    assert (status, 'role="alert"' in page) == (422, True)


async def a_failed_batch(server: LiveServer) -> BatchId:
    """Return a batch of ben's with a valid and a failed job; its only error is a crash."""
    host = await server.add_host()
    jobs = {"fpops_est": 1e12, "max_errors": 1, "outputs": [{"name": "out", "max_bytes": 1000}]}
    values = {"app": "pi", "qos": "throughput", "name": "shaky", "submitter": "ben", "jobs": jobs}
    lines = [{"command_line": f"--n {number}"} for number in (1, 2)]
    batch_id = BatchId((await server.create("POST", "/batches", json={**values, "job": lines}))["batch_id"])
    await server.feed()
    good, bad = await host.ask(2)
    await host.compute(good)
    host.end(bad, 3, 195, stderr="reading row 7\nbad row 7\n")
    await host.call()
    await server.validate()
    return batch_id


async def test_failed_jobs_are_retried_by_a_form(server: LiveServer) -> None:
    await furnished(server)
    batch_id = await a_failed_batch(server)
    assert (await server.batch(batch_id))["state"] == BatchState.COMPLETE
    async with a_browser(server, "ben") as ben, a_browser(server, "vera") as vera:
        _, page = await vera.get(f"/batches/{batch_id}/errors")
        assert "exit status 195" in page and "bad row 7" in page and "/retry" not in page
        assert (await vera.get(f"/batches/{batch_id}/retry"))[0] == 403
        _, where, page = await ben.post(f"/batches/{batch_id}/retry", {})
        assert where.endswith("?retried=1&said=retried"), page
        assert f'/batches/{batch_id}/jobs?state=open"' in page and not missing(page, "1 failed job is open again")
        assert 'href="?range=' in page and 'href="?retried' not in page, "links to ranges drop the form's result"
        _, other = await ben.get(f"/batches/{batch_id}?retried=1")
        assert 'id="batch-retried"' in page and 'id="batch-retried"' not in other
        _, where, _ = await ben.post(f"/batches/{batch_id}/retry", {})
        assert where.endswith("?said=unchanged")
    await server.validate()
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["jobs_failed"], batch["unsent"]) == ("active", 0, 1)
    host = await server.add_host("eve")
    [again] = await host.ask(1)
    await host.work(again)
    await server.validate()
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["jobs_validated"]) == ("complete", 2)
    assert ("ben", "retry_batch") in [(one.who, one.what) for one in await server.store.access.acts(limit=9)]


async def test_retry_is_no_advice_where_all_jobs_fail_alike(server: LiveServer) -> None:
    await furnished(server)
    shaky, host = await a_failed_batch(server), await server.add_host("dan")
    batch_id = await server.submit(submitter="ben", jobs={"count": 6, "fpops_est": 1e12, "max_errors": 1})
    await server.feed()
    for instance in (await host.ask(5, seconds=1e6))[:FAILED_JOBS]:
        host.end(instance, 3, 195, stderr="bands.nc: wrong dimension\n")
    await host.call()
    await server.validate()
    assert (await server.batch(batch_id))["jobs_failed"] == FAILED_JOBS
    async with a_browser(server, "ben") as ben:
        pages = [(await ben.get(f"/batches/{one}/errors"))[1] for one in (shaky, batch_id)]
    assert ['class="button main"' in page for page in pages] == [True, False]
    note = pages[1].partition('<div class="note bad"')[2].partition("</div>")[0]
    assert not missing(note, f"{batch_id}#restrict", f"{batch_id}/abort") and "/retry" in pages[1]


async def test_list_opens_with_the_submitters_own_batches(server: LiveServer) -> None:
    await furnished(server)
    await server.submit(name="others")
    await server.submit(name="own", submitter="ben")
    async with a_browser(server, "ben") as ben, a_browser(server, OPERATOR) as grace:
        (_, first), (_, every), (_, hers) = [
            await one.get(path) for one, path in ((ben, "/batches"), (ben, "/batches?submitter="), (grace, "/batches"))
        ]
    assert "own</a>" in first and missing(first, "others</a>")
    assert not missing(every + hers, "own</a>", "others</a>") and '?submitter=" aria-current="page">all' in every


async def test_clone_is_previewed_and_submitted_by_a_form(server: LiveServer) -> None:
    await furnished(server)
    batch_id = await a_failed_batch(server)
    async with a_browser(server, "ben") as ben, a_browser(server, "vera") as vera:
        assert (await vera.get(f"/batches/{batch_id}/clone"))[0] == 403
        _, page = await ben.get(f"/batches/{batch_id}/clone")
        assert 'value="shaky (2)"' in page
        form = {"name": "again", "qos": "afap", "level": "normal", "queue": "normal", "user_priority": "0"}
        status, _, page = await ben.post(f"/batches/{batch_id}/clone", {**form, "what": "preview"})
        assert status == 200 and 'role="status"' in page
        assert (await ben.post(f"/batches/{batch_id}/clone", {**form, "qos": "short_deadline"}))[0] == 422
        _, where, page = await ben.post(f"/batches/{batch_id}/clone", {**form, "what": "submit"})
        assert "said=submitted" in where, page
    clone = await server.batch(BatchId(batch_id + 1))
    assert (clone["name"], clone["submitter"], clone["jobs_total"], clone["unsent"]) == ("again", "ben", 2, 2)
    lines = [[job.command_line for job in await server.jobs(BatchId(batch_id + n))] for n in (0, 1)]
    assert lines[0] == lines[1]


async def test_clone_form_names_the_level_taken_from_its_original(server: LiveServer) -> None:
    await furnished(server)
    hints = {}
    async with a_browser(server, "ben") as ben:
        for level in ("normal", "standby"):
            batch = {
                "app": "pi",
                "qos": "throughput",
                "submitter": "ben",
                "level": level,
                "jobs": {"count": 2, "fpops_est": 1e12},
            }
            batch_id = (await server.create("POST", "/batches", json=batch))["batch_id"]
            _, page = await ben.get(f"/batches/{batch_id}/clone")
            choice = page.partition('name="level"')[2].partition("</label>")[0]
            hints[level] = choice.partition("<small>")[2]
            assert f'value="{level}" selected' in choice

    assert hints["normal"] and hints["standby"].endswith(hints["normal"])
    assert "standby" in hints["standby"].removesuffix(hints["normal"])


async def test_forms_preset_the_service_that_delays_no_batch(server: LiveServer) -> None:
    """A clone keeps the service of its batch."""
    await furnished(server)
    urgent = {"app": "pi", "qos": "afap", "submitter": "ben", "jobs": {"count": 2, "fpops_est": 1e12}}
    batch_id = (await server.create("POST", "/batches", json=urgent))["batch_id"]
    await server.feed()
    preset = {}
    async with a_browser(server, "ben") as ben:
        for path in ("/batches/new", UPLOAD, f"/batches/{batch_id}/clone"):
            page = (await ben.get(path))[1]
            preset[path] = re.findall(r'name="qos" value="(\w+)" checked', page)
            assert len(re.findall('name="qos"', page)) == 4
        given = {"app": "pi", "qos": "long_deadline", "count": "0"}
        again = (await ben.post("/batches/new", {**given, "what": "preview"}))[2]
    assert list(preset.values()) == [["throughput"], ["throughput"], ["afap"]]
    assert re.findall(r'name="qos" value="(\w+)" checked', again) == ["long_deadline"]


async def test_clone_changes_the_needs_of_its_jobs(server: LiveServer) -> None:
    await furnished(server)
    batch_id = await a_failed_batch(server)
    form = {"name": "lean", "qos": "afap", "level": "normal", "queue": "normal", "user_priority": "0"}
    path = f"/batches/{batch_id}/clone"
    async with a_browser(server, "ben") as ben:
        refused = {}
        for field, given in (("memory_mb", "-1"), ("disk_mb", "1e20"), ("delay_bound_h", "0.00001")):
            status, _, page = await ben.post(path, {**form, field: given, "what": "submit"})
            refused[field] = (status, re.findall(r'name="(\w+)"[^>]* aria-invalid', page))
        await ben.post(path, {**form, "memory_mb": "64", "delay_bound_h": "2", "what": "submit"})
    refused_too, problem = await server.api("POST", f"/batches/{batch_id}/clone", json={"delay_bound_s": 0.0})
    status, again = await server.api("POST", f"/batches/{batch_id}/clone", json={"disk_bytes": 5e6})

    assert refused == {field: (422, [field]) for field in ("memory_mb", "disk_mb", "delay_bound_h")}
    assert (refused_too, problem["field"], status) == (422, "delay_bound_s", 201)
    by_api, by_form = [one.detail for one in await server.store.access.acts(limit=9) if one.what == "clone_batch"]
    assert (by_form["memory_bytes"], by_form["delay_bound_s"], by_api["disk_bytes"]) == (64e6, 2 * HOUR_S, 5e6)
    assert "disk_bytes" not in by_form
    needs = []
    for one in (batch_id, batch_id + 1, again["batch_id"]):
        [job_class] = await server.store.views.classes_of_batch(BatchId(one))
        needs.append((job_class.memory_bytes, job_class.disk_bytes, job_class.delay_bound_s))
    (memory, disk, bound_s) = needs[0]
    assert needs[1:] == [(64e6, disk, 2 * HOUR_S), (memory, 5e6, bound_s)]


async def test_operators_clone_at_a_level_the_submitter_lacks(server: LiveServer) -> None:
    await furnished(server)
    batch_id = await a_failed_batch(server)
    form = {"name": "", "qos": "afap", "level": "expedite", "queue": "normal", "user_priority": "0", "submitter": "ben"}
    path = f"/batches/{batch_id}/clone"

    async with a_browser(server, "ben") as ben, a_browser(server, OPERATOR) as grace:
        offered = [">expedite<" in (await browser.get(path))[1] for browser in (ben, grace)]
        sent = [await browser.post(path, {**form, "what": "submit"}) for browser in (ben, grace)]

    assert (offered, [one[0] for one in sent]) == ([False, True], [422, 200]), sent[1][2]
    assert (await server.batch(BatchId(batch_id + 1)))["level"] == "expedite"


async def test_operators_upload_at_a_level_the_submitter_lacks(server: LiveServer) -> None:
    await furnished(server)
    files = {"batch": ("b.toml", TOML.replace("[jobs]", 'level = "expedite"\n[jobs]')), "table": ("t.csv", CSV)}
    async with a_browser(server, "ben") as ben, a_browser(server, OPERATOR) as grace:
        assert (await bring(ben, files))[0] == 422
        status, page = await bring(grace, files)
        assert status == 200, page
        _, where, page = await submit_checked(grace, page)
        assert "said=submitted" in where, page
    assert (await server.batch(BatchId(1)))["level"] == "expedite"


def key_in(page: str) -> dict[str, str]:
    [key] = re.findall(r'name="key" value="([^"]+)"', page)
    return {"key": key}


async def test_second_click_on_a_form_leads_to_the_same_batch(server: LiveServer) -> None:
    await furnished(server)
    batch_id = await server.submit(name="first", submitter="ben", jobs={"count": 2})
    new = {"app": "pi", "qos": "short_deadline", "deadline": "2099-01-01T00:00", "count": "3", "gflop": "1"}
    clone = {"name": "again", "qos": "afap", "level": "normal", "queue": "normal", "user_priority": "0"}
    forms = (("/batches/new", new, "count"), (f"/batches/{batch_id}/clone", clone, "user_priority"))
    async with a_browser(server, "ben") as ben:
        for number, (path, fields, field) in enumerate(forms, start=batch_id + 1):
            key = key_in((await ben.get(path))[1])
            for what, words in (("preview", "previewed"), ("submit", "submitted")):
                status, _, page = await ben.post(path, {**fields, **key, field: "x", "what": what})
                said = page.partition('id="wrong"')[2].partition("</strong>")[0]
                assert (status, key_in(page), words in said) == (422, key, True)
            status, _, page = await ben.post(path, {**fields, **key, "what": "preview"})
            assert (status, key_in(page)) == (200, key)
            places = [(await ben.post(path, {**fields, **key, "what": "submit"}))[1] for _ in range(2)]
            assert places == [f"/console/batches/{number}?said=submitted"] * 2
            status, _, page = await ben.post(path, {**fields, **key, "name": "changed"})
            assert status == 422 and key_in(page) != key  # the next click submits it as another batch
            assert (await ben.post(path, {**fields, "key": "k" * 201}))[0] == 422
        _, page = await bring(ben, {"batch": ("b.toml", TOML), "table": ("t.csv", CSV)})
        assert [(await submit_checked(ben, page))[1] for _ in range(2)] == ["/console/batches/4?said=submitted"] * 2
    assert len(await batches_of(server.store, limit=9)) == 4
    recorded = [one.what for one in await server.store.access.acts(limit=9) if one.who == "ben"]
    assert (recorded.count("submit_batch"), recorded.count("clone_batch")) == (2, 1)


async def test_errors_and_results_of_a_batch_over_the_api(server: LiveServer) -> None:
    await furnished(server)
    batch_id = await a_failed_batch(server)
    _, found = await server.api("GET", f"/batches/{batch_id}/errors")
    [group] = found["groups"]
    assert (group["exit_status"], group["instances"], group["jobs"], group["hosts"]) == (195, 1, 1, 1)
    assert group["example"]["stderr"].endswith("bad row 7")
    assert len(group["versions"]) == 1
    token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
    address, head = f"{server.url}api/v1/batches/{batch_id}/results.csv", {"Authorization": f"Bearer {token}"}
    async with server.http.get(address, headers=head) as response:
        assert response.content_type == "text/csv"
        rows = list(csv.DictReader(io.StringIO(await response.text())))
    assert [(row["i"], row["state"], row["command_line"]) for row in rows] == [
        ("0", "valid", "'--n 1"),
        ("1", "failed", "'--n 2"),
    ]
    assert rows[0]["files"] == "0/out" and rows[1]["because"].startswith("it failed")
    _, page = await server.api("GET", "/hosts/1/results")
    assert sorted(one["state"] for one in page["results"]) == ["failed", "valid"]
    _, page = await server.api("GET", "/hosts/1/results?state=failed")
    assert [one["job_id"] for one in page["results"]] == [group["example"]["job_id"]]


async def test_a_repeated_clone_makes_one_batch(server: LiveServer) -> None:
    await furnished(server)
    batch_id = await a_failed_batch(server)
    token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
    head = {"Authorization": f"Bearer {token}", "Idempotency-Key": "again-1"}
    made = []
    for _ in range(2):
        address = f"{server.url}api/v1/batches/{batch_id}/clone"
        async with server.http.post(address, json={"name": "x"}, headers=head) as response:
            made.append((response.status, (await response.json())["batch_id"]))
    assert made == [(201, batch_id + 1)] * 2
    status, problem = await server.api("POST", f"/batches/{batch_id}/clone", json={"qos": "short_deadline"})
    assert (status, problem["field"]) == (422, "deadline_s")


async def test_unknown_app_is_named_as_the_invalid_field(server: LiveServer) -> None:
    batch = {"app": "none", "qos": "afap", "jobs": {"count": 1, "fpops_est": 1e9}}
    status, problem = await server.api("POST", "/batches", json=batch)
    assert (status, problem["field"]) == (422, "app")
