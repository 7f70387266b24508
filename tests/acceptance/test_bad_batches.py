"""Errors in batches and API calls are reported, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from administration.batches import Batches, input_file_name, read_batch_file
from domain.bounds import BOUNDS
from domain.errors import InvalidInputError
from domain.settings import Settings
from tests.acceptance.evidence import evidence
from tests.acceptance.server import LiveServer, a_batch
from tests.facts import missing
from transfer.files import content_of
from transfer.project_files import ProjectFiles

JOB = {"fpops_est": 1e9}
FIELDS = (
    "account, after_any, after_ok, app, deadline_s, job, jobs, jobs_csv, level, name, qos, queue, submitter, "
    "user_priority"
)
JOB_FIELDS = (
    "command_line, count, delay_bound_s, disk_bytes, fpops_bound, fpops_est, hr_type, inputs, max_errors, "
    "max_instances, memory_bytes, ncpus, outputs, quorum, validator"
)
KINDS = "one of throughput, long_deadline, afap, short_deadline"
TEXT = "text of at most 200 characters, without control characters"
FILE_NAME = "a file name, with folders or without: no \\ % < > & or .., no leading / or dot"
HUGE = 10**400

BAD_BATCHES: list[tuple[str, dict[str, object], str]] = [
    ("unknown field", a_batch(colour="red"), f"colour: expected one of {FIELDS}; this field is unknown, got 'red'"),
    (
        "unknown field of jobs",
        a_batch(jobs={"cuont": 3}),
        f"jobs.cuont: expected one of {JOB_FIELDS}; this field is unknown, got 3",
    ),
    (
        "text for number",
        a_batch(jobs={"fpops_est": "many"}),
        "jobs.fpops_est: expected a number from 1 to 1e+21, got 'many'",
    ),
    (
        "negative number",
        a_batch(jobs={"delay_bound_s": -5}),
        "jobs.delay_bound_s: expected a number from 1 to 315360000, got -5",
    ),
    (
        "number beyond floats",
        a_batch(jobs={"fpops_est": HUGE}),
        f"jobs.fpops_est: expected a number from 1 to 1e+21, got {str(HUGE)[:197]}...",
    ),
    *[
        (
            f"an absurd {field}",
            a_batch(jobs={**JOB, field: 1e300}),
            f"jobs.{field}: expected {BOUNDS[field].expected}, got 1e+300",
        )
        for field in ("fpops_est", "fpops_bound", "memory_bytes", "disk_bytes", "delay_bound_s", "ncpus")
    ],
    (
        "an absurd deadline",
        a_batch(qos="short_deadline", deadline_s=1e300),
        "deadline_s: expected a number from 1 to 3153600000, got 1e+300",
    ),
    ("truth for number", a_batch(jobs={"quorum": True}), "jobs.quorum: expected a whole number from 1 to 20, got True"),
    ("number for text", a_batch(name=7), f"name: expected {TEXT}, got 7"),
    ("list for table", {"app": "pi", "qos": "afap", "jobs": [1]}, "jobs: expected a table, got [1]"),
    ("no app", {"qos": "afap", "jobs": JOB}, f"app: expected {TEXT}, got no value"),
    ("no kind", {"app": "pi", "jobs": JOB}, f"qos: expected {KINDS}, got no value"),
    ("unknown kind", a_batch(qos="asap"), f"qos: expected {KINDS}, got 'asap'"),
    ("zero jobs", a_batch(jobs={"count": 0}), "jobs.count: expected a whole number from 1 to 1000000, got 0"),
    (
        "one job too many",
        a_batch(jobs={"count": 1_000_001}),
        "jobs.count: expected a whole number from 1 to 1000000, got 1000001",
    ),
    (
        "one job too many in two tables",
        {"app": "pi", "qos": "afap", "job": [{**JOB, "count": 10**6}, JOB]},
        "jobs: expected at most 1000000 jobs in a batch, got '1000001 or more'",
    ),
    ("no job tables", {"app": "pi", "qos": "afap", "job": []}, "jobs: expected at least one job, got 0"),
    (
        "no deadline",
        a_batch(qos="short_deadline"),
        "deadline_s: expected a number from 1 to 3153600000, got no value",
    ),
    (
        "a path over the network",
        a_batch(jobs={"inputs": [{"path": "/etc/passwd"}]}),
        "inputs.path: expected the name of a file uploaded to /api/v1/files, got '/etc/passwd'",
    ),
    (
        "an output that climbs",
        a_batch(jobs={"outputs": [{"name": "../x", "max_bytes": 5}]}),
        f"jobs.outputs[0].name: expected {FILE_NAME}, got '../x'",
    ),
    ("unknown submitter", a_batch(submitter="missing"), "submitter: expected the name of a submitter, got 'missing'"),
    ("unknown input", a_batch(jobs={"inputs": [{"name": "missing.txt"}]}), "no input file missing.txt"),
    ("unknown app", a_batch(app="nope"), "app: expected the name of an app (see `muster app list`), got 'nope'"),
    (
        "a CSV file over the network",
        {"app": "pi", "qos": "afap", "jobs": JOB, "jobs_csv": "jobs.csv"},
        "jobs_csv: expected the name of a file uploaded to /api/v1/files, got 'jobs.csv'",
    ),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("batch", "why"), [case[1:] for case in BAD_BATCHES], ids=[case[0] for case in BAD_BATCHES])
async def test_bad_batch_is_refused(shared_pi: LiveServer, batch: dict[str, object], why: str) -> None:
    before = await evidence(shared_pi.project)

    status, answer = await shared_pi.api("POST", "/batches", json=batch)

    assert answer["detail"] == why
    assert status == (404 if why.startswith("no ") else 422)
    assert await evidence(shared_pi.project) == before


async def test_batch_of_an_app_without_versions_is_refused(server: LiveServer) -> None:
    await server.add_app(versions=0)
    before = await evidence(server.project)

    status, answer = await server.api("POST", "/batches", json=a_batch())

    assert (status, missing(answer["detail"], "app:", "`muster app version add`", "'pi'")) == (422, [])
    assert await evidence(server.project) == before


# ---------------------------------------------------------------- files


async def refused(server: LiveServer, folder: Path, batch: str, csv: str) -> str:
    """Submit a batch file with an uploaded CSV file; return the refusal, and check that nothing is written."""
    (folder / "batch.toml").write_text(batch)
    (folder / "jobs.csv").write_text(csv)
    files = ProjectFiles(server.project.files_dir)
    batches = Batches(server.store, files, server.clock)
    name = input_file_name(folder / "jobs.csv", content_of(folder / "jobs.csv").md5)
    await files.register(folder / "jobs.csv", name, max_bytes=Settings().files.max_input_bytes)
    before = await evidence(server.project)
    with pytest.raises(InvalidInputError) as refusal:
        await batches.submit({**read_batch_file(folder / "batch.toml"), "jobs_csv": name})
    assert await evidence(server.project) == before
    return str(refusal.value)


CSV_BATCH = 'app = "pi"\nqos = "afap"\njobs_csv = "jobs.csv"\n[jobs]\nfpops_est = 1e9\n'


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ("--part 7,lots", ("jobs_csv row 7.fpops_est:", "1 to 1e+21", "'lots'")),
        ("--part 7,-1", ("jobs_csv row 7.fpops_est:", "1 to 1e+21", "'-1'")),
        ("--part 7,nan", ("jobs_csv row 7.fpops_est:", "1 to 1e+21", "'nan'")),
        ("--part 7", ("jobs_csv row 7:", "cells", "header row")),
        ("--part 7,1e9,x", ("jobs_csv row 7:", "cells", "header row")),
    ],
)
async def test_bad_csv_row_is_named(shared_pi: LiveServer, tmp_path: Path, row: str, facts: tuple[str, ...]) -> None:
    good = [f"--part {number},1e9" for number in range(1, 10)]
    rows = ["command_line,fpops_est", *good[:6], row, *good[7:]]

    told = await refused(shared_pi, tmp_path, CSV_BATCH, "\n".join(rows) + "\n")

    assert not missing(told, *facts)


# ---------------------------------------------------------------- the API


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("token", ["", "wrong", "0" * 64])
async def test_requests_without_the_token_are_refused(shared_pi: LiveServer, token: str) -> None:
    before = await evidence(shared_pi.project)

    status, answer = await shared_pi.api("POST", "/apps", token=token, json={"name": "pi"})

    assert status == 401
    assert (answer["title"], answer["status"]) == ("not signed in", 401)
    assert "`Authorization: Bearer …`" in answer["detail"]
    assert await evidence(shared_pi.project) == before


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "facts"),
    [
        ("POST", "/apps", b"{", 422, ("body:", "JSON", "truncated")),
        ("POST", "/apps", b"", 422, ("body:", "JSON", "truncated")),
        ("POST", "/apps", b"[]", 422, ("body:", "object", "'array'")),
        ("POST", "/apps", b"{}", 422, ("name:", "'nothing'")),
        ("POST", "/apps", b'{"name": "pi", "colour": 1}', 422, ("colour:", "known")),
        ("POST", "/apps", b'{"name": 5}', 422, ("name:", "text", "'int'")),
        ("POST", "/apps", b'{"name": "a/b"}', 422, ("name:", "1 to 64", "letter", "digit", "'a/b'")),
        (
            "POST",
            "/apps",
            b'{"name": "pi", "adaptive_copies": true}',
            422,
            ("adaptive_copies:", "whole", "'bool'"),
        ),
        ("POST", "/batches", b"[1]", 422, ("body:", "object", "'array'")),
        ("POST", "/volunteers", b'{"email": "no-address"}', 422, ("email:", "e-mail", "'no-address'")),
        ("GET", "/batches/77", b"", 404, ("no batch 77",)),
        ("POST", "/batches/77/abort", b"", 404, ("no batch 77",)),
        ("GET", "/batches/seven", b"", 422, ("batch_id:", "whole", f"1 to {2**62}", "'seven'")),
        ("GET", "/jobs/77", b"", 404, ("no job 77",)),
        ("GET", "/batches?limit=0", b"", 422, ("limit:", "whole", "1 to 1000", "'0'")),
        (
            "PUT",
            "/settings/deadline.p_tight",
            b'{"value": 2}',
            422,
            ("deadline.p_tight:", "0 to 1", "2"),
        ),
        ("PUT", "/settings/deadline.p_tight", b'{"value": 0.8}', 422, ("why:", "deadline.p_tight", "''")),
        ("DELETE", "/settings/feeder.tail_jobs", b"", 422, ("why:", "feeder.tail_jobs", "''")),
        (
            "PUT",
            "/settings/deadline.colour",
            b'{"value": 2}',
            422,
            ("deadline.colour:", "`muster setting list`", "'deadline.colour'"),
        ),
        (
            "PUT",
            "/files/..%2F..%2Fkeys%2Fupload_secret",
            b"x",
            422,
            ("file name:", "at most 240 bytes", "'../../keys/upload_secret'"),
        ),
        (
            "POST",
            "/apps/%00/versions?platform=x&version=1&file=x",
            b"x",
            422,
            ("name:", "U+0000", "'\\x00'"),
        ),
        ("POST", "/apps/tau/versions?platform=x&version=1&file=x&signature=x", b"x", 404, ("no app tau",)),
        (
            "POST",
            "/accounts",
            b'{"name": "a", "parent": "\\u0000"}',
            422,
            ("parent:", "U+0000", "'\\x00'"),
        ),
        ("GET", "/nothing", b"", 404, ("404: Not Found",)),
        ("DELETE", "/apps", b"", 405, ("405: Method Not Allowed",)),
    ],
)
async def test_bad_call_gets_a_problem_document(
    shared_pi: LiveServer, method: str, path: str, body: bytes, status: int, facts: tuple[str, ...]
) -> None:
    before = await evidence(shared_pi.project)

    answer = await shared_pi.api(method, path, data=body)

    assert (answer[0], answer[1]["status"], missing(answer[1]["detail"], *facts)) == (status, status, [])
    assert await evidence(shared_pi.project) == before
