"""Results of jobs: their files, who may fetch them, and collecting a batch into a folder."""

from __future__ import annotations

import csv
import hashlib
import json
import tarfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from administration.access.who import Person
from administration.collecting import collect, new_index
from administration.results import CutFileError, OutputState, Result, Results, row_of, sees_results, tar_of
from api.results import file_headers
from cli.results import PatientResults
from domain.access import Right, Role
from domain.dispatch import Upload
from domain.errors import InvalidInputError, NotFoundError
from domain.jobs import InstanceState, JobClass, JobState, Output
from domain.units import BatchId, InstanceId, JobClassId, JobId, SubmitterId
from domain.views import InstanceRow, JobRow, Returned
from muster_client import ApiError, Client, UnreachableError
from tests.builders import a_job_class
from tests.facts import missing, states
from tests.unit.administration.access.world import ForwardClock
from transfer.files import CHUNK_BYTES
from transfer.project_files import ProjectFiles
from transfer.upload_folder import UploadFolder

OUTPUTS = (Output("out", 100), Output("log", 100, optional=True), Output("plot.png", 100))
JOB = {
    "job_id": 7,
    "because": "@SUM(A1)",
    "command_line": "=cmd|' /C calc'!A0",
    "inputs": ["+1", "b"],
    "outputs": [{"name": "out", "state": "here"}],
    "exit_status": -5,
    "elapsed_s": None,
}


def an_instance(instance_id: int, state: InstanceState, *positions: int) -> InstanceRow:
    uploads = tuple(Upload(f"pi_1_7_{instance_id}_r{n}", 4, "0" * 32) for n in positions)
    more: dict[str, Any] = dict.fromkeys(
        ("host_id", "app_version_id", "sent_at", "due_at", "reported_at", "est_runtime_s", "elapsed_s", "exit_status")
    )
    more |= {"reason": "", "due_terms": None, "stderr": ""}
    return InstanceRow(InstanceId(instance_id), JobId(7), state, 0, tight=False, uploads=uploads, **more)


def a_job(state: JobState, *instances: InstanceRow, canonical: int | None = None, failure: str = "") -> JobRow:
    found = None if canonical is None else InstanceId(canonical)
    return JobRow(JobId(7), BatchId(1), JobClassId(3), state, "", failure, found, (), instances)


class StoredJobs:
    """Jobs of one class."""

    def __init__(self, *jobs: JobRow) -> None:
        self._jobs = jobs
        self.pages: list[int] = []

    async def job(self, job_id: JobId) -> JobRow:
        return self._jobs[0]

    async def jobs(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[JobRow]:
        self.pages.append(limit)
        return [replace(one, instances=()) for one in self._jobs if one.job_id > (after or 0)][:limit]

    async def returned(self, batch_id: BatchId, instances: Sequence[InstanceId]) -> Mapping[InstanceId, Returned]:
        found = (instance for job in self._jobs for instance in job.instances)
        return {one.instance_id: Returned(uploads=one.uploads) for one in found if one.instance_id in instances}

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        return {one: a_job_class(job_class_id=one, outputs=OUTPUTS) for one in ids}


def results_of(known: StoredJobs, folder: Path) -> Results:
    store = cast(Any, known)  # stands for both parts of the store
    return Results(store, store, ProjectFiles(folder))


async def result_of(job: JobRow, folder: Path) -> tuple[Results, Result]:
    results = results_of(StoredJobs(job), folder)
    return results, await results.of(JobId(7))


def bring(folder: Path, name: str, content: bytes = b"3.14") -> Path:
    path = UploadFolder(folder / "upload").path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


async def test_result_has_outputs_of_the_canonical_instance(tmp_path: Path) -> None:
    wrong = an_instance(11, InstanceState.INVALID, 0, 1, 2)
    right = an_instance(12, InstanceState.VALID, 0, 2)
    path = bring(tmp_path, "pi_1_7_12_r2")
    bring(tmp_path, "pi_1_7_12_r0", b"cut")

    results, result = await result_of(a_job(JobState.VALID, wrong, right, canonical=12), tmp_path)

    assert [(one.name, one.upload and one.upload.name, one.state) for one in result.outputs] == [
        ("out", "pi_1_7_12_r0", OutputState.GONE),
        ("log", None, OutputState.NOT_BROUGHT),
        ("plot.png", "pi_1_7_12_r2", OutputState.HERE),
    ]
    assert results.file(result, "plot.png").path == path
    for name, facts in (
        ("out", ("no file pi_1_7_12_r0", "4 bytes")),
        ("log", ("no output 'log'", "job 7:", "optional")),
        ("../out", ("no output '../out'", "job 7:", "out, log, plot.png")),
        ("pi_1_7_12_r2", ("no output 'pi_1_7_12_r2'", "job 7")),
    ):
        with states(NotFoundError, *facts):
            results.file(result, name)


@pytest.mark.parametrize(
    ("job", "facts"),
    [
        (a_job(JobState.CANCELLED), ("batch was aborted",)),
        (a_job(JobState.FAILED, failure="too many errors"), ("failed: too many errors",)),
        (
            a_job(JobState.OPEN, an_instance(1, InstanceState.REPORTED, 0), an_instance(2, InstanceState.UNSENT)),
            ("open", "1 reported", "1 unsent"),
        ),
    ],
)
async def test_job_without_result_gives_the_reason(job: JobRow, facts: tuple[str, ...], tmp_path: Path) -> None:
    results, result = await result_of(job, tmp_path)

    assert (missing(result.because or "", *facts), result.outputs) == ([], ())
    with pytest.raises(NotFoundError, match=f"^no result of job 7: {result.because}$"):
        results.file(result, "out")


@pytest.mark.parametrize(
    ("role", "own", "sees"),
    [
        (Role.SUBMITTER, 1, True),
        (Role.SUBMITTER, 2, False),
        (Role.SUBMITTER, None, False),
        (Role.VIEWER, None, True),
        (Role.OPERATOR, None, True),
    ],
)
def test_submitters_see_only_their_own_results(role: Role, own: int | None, sees: bool) -> None:
    submitter = None if own is None else SubmitterId(own)
    person = Person("sue", role, frozenset({Right.READ}), submitter_id=submitter)

    assert sees_results(person, SubmitterId(1)) is sees


def test_file_name_is_escaped_in_the_header() -> None:
    value = file_headers('a"; x=\r\n😀')["Content-Disposition"]

    assert value.isascii() and value.isprintable()
    assert value.count('"') == 2


# ---------------------------------------------------------------- a batch in a folder


class FakeSource:
    """Jobs with their files. `broken` files are sent truncated, `gone` are missing; archives are cut off if `torn`."""

    def __init__(self, jobs: Mapping[int, Mapping[str, bytes] | None], *, archives: bool = False) -> None:
        self.held = jobs
        self.archives = archives
        self.archived: list[tuple[int, int]] = []
        self.torn = False
        self.broken: set[int] = set()
        self.gone: set[int] = set()
        self.fetched: list[tuple[int, str]] = []
        self.forgotten = 0

    async def batch(self, batch_id: int) -> Mapping[str, Any]:
        return {"jobs_total": len(self.held) + self.forgotten, "jobs_validated": len(self.held)}

    async def results(self, batch_id: int, *, after: int, limit: int) -> Sequence[Mapping[str, Any]]:
        return [self.result(one) for one in self.page(after, limit)]

    def page(self, after: int, limit: int) -> list[int]:
        return sorted(one for one in self.held if one > after)[:limit]

    def result(self, job_id: int) -> Mapping[str, Any]:
        files = self.held[job_id]
        return {
            "job_id": job_id,
            "command_line": f"--part {job_id}",
            "inputs": ["in_0123.txt"],
            "state": "open" if files is None else "valid",
            "because": "it is open" if files is None else None,
            "outputs": [
                {
                    "name": name,
                    "file_name": f"pi_1_{job_id}_1_r0",
                    "nbytes": len(text),
                    "md5": hashlib.md5(text).hexdigest(),
                    "state": "gone" if job_id in self.gone else "here",
                }
                for name, text in (files or {}).items()
            ],
        }

    async def fetch_archive(self, batch_id: int, to: Path, *, after: int, limit: int) -> bool:
        if not self.archives:
            return False
        self.archived.append((after, limit))
        with tarfile.open(to, "w") as tar:
            for job_id in self.page(after, limit):
                for name, text in (self.held[job_id] or {}).items():
                    info = tarfile.TarInfo(f"{job_id}/{name}")
                    sent = text[:-1] if job_id in self.broken else text
                    info.size = len(sent)
                    tar.addfile(info, BytesIO(sent))
        return not self.torn

    async def fetch(self, job_id: int, name: str, to: Path) -> None:
        self.fetched.append((job_id, name))
        text = (self.held[job_id] or {})[name]
        to.write_bytes(text[:-1] if job_id in self.broken else text)


def silent(done: int, total: int) -> None:
    pass


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files of jobs."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*/*") if one.is_file()}


async def test_second_run_fetches_only_new_files(tmp_path: Path) -> None:
    source = FakeSource({7: {"out": b"a", "log": b"bb"}, 8: None, 9: {"out": b"ccc"}})
    await collect(source, 1, tmp_path, progress=silent)
    source.held = {**source.held, 8: {"out": b"late"}}
    source.fetched.clear()
    (tmp_path / "2/out").write_bytes(b"cca")  # same size, other content

    reported: list[tuple[int, int]] = []
    done = await collect(source, 1, tmp_path, progress=lambda *counts: reported.append(counts))

    assert files_in(tmp_path) == {"0/out": b"a", "0/log": b"bb", "1/out": b"late", "2/out": b"ccc"}
    assert sorted(source.fetched) == [(8, "out"), (9, "out")]
    assert (done.fetched, done.present, done.nbytes, done.valid) == (2, 2, 10, 3)
    assert reported == [(3, 3)]


async def test_jobs_beyond_a_page_are_collected(tmp_path: Path) -> None:
    source = FakeSource({one: {"out": b"x"} if one in (1, 2400) else {} for one in range(1, 2501)})
    done = await collect(source, 1, tmp_path, progress=silent)

    assert (done.valid, done.listed) == (2500, 2500)
    assert files_in(tmp_path) == {"0000/out": b"x", "2399/out": b"x"}


async def test_index_has_a_row_per_job_and_replaces_the_last(tmp_path: Path) -> None:
    source = FakeSource({7: {"out/a.nc": b"a", "log": b"b"}, 9: None})
    await collect(source, 1, tmp_path, progress=silent)
    source.gone.add(7)
    source.held = {**source.held, 9: {"log": b"late"}}
    await collect(source, 1, tmp_path, progress=silent)

    with (tmp_path / "index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["i"], row["job_id"], row["command_line"], row["files"]) for row in rows] == [
        ("0", "7", "'--part 7", ""),
        ("1", "9", "'--part 9", "1/log"),
    ]
    assert (tmp_path / "0/out/a.nc").read_bytes() == b"a"
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["index.csv"]


async def test_differing_file_is_reported_and_removed(tmp_path: Path) -> None:
    source = FakeSource({7: {"out": b"aaaa"}, 8: {"out": b"bbbb"}, 9: None})
    source.broken.add(7)
    source.gone.add(8)
    source.forgotten = 2

    done = (await collect(source, 1, tmp_path, progress=silent)).as_json()

    assert files_in(tmp_path) == {}
    [broken, gone] = cast(list[Any], done["missing"])
    assert broken["job_id"] == 7 and "has 3 bytes" in broken["because"] and "4 bytes with MD5" in broken["because"]
    assert (gone["job_id"], gone["name"]) == (8, "out")
    assert not missing(gone["because"], "no file pi_1_8_1_r0 of 4 bytes", "missing", "another size")
    assert source.fetched == [(7, "out")]
    assert done["without_result"] == [{"job_id": 9, "state": "open", "because": "it is open"}]
    assert (done["files"], done["jobs_forgotten"]) == (0, 2)


# ---------------------------------------------------------------- by archives


def many(count: int = 8) -> FakeSource:
    return FakeSource(
        {one: {"out": b"%d" % one, "long name é" * 20: b"l"} for one in range(1, count + 1)}, archives=True
    )


def as_held(source: FakeSource, *left_out: int) -> dict[str, bytes]:
    return {
        f"{job_id - 1}/{name}": text
        for job_id, files in source.held.items()
        for name, text in (files or {}).items()
        if job_id not in left_out
    }


async def test_many_files_come_in_one_archive(tmp_path: Path) -> None:
    source = many()
    done = await collect(source, 1, tmp_path, progress=silent)

    assert files_in(tmp_path) == as_held(source)
    assert (done.fetched, done.nbytes, source.archived, source.fetched) == (16, 16, [(0, 8)], [])


async def test_few_missing_files_come_one_by_one(tmp_path: Path) -> None:
    source = many()
    await collect(source, 1, tmp_path, progress=silent)
    source.archived.clear()
    (tmp_path / "2/out").unlink()
    done = await collect(source, 1, tmp_path, progress=silent)

    assert files_in(tmp_path) == as_held(source)
    assert (done.fetched, done.present, source.archived, source.fetched) == (1, 15, [], [(3, "out")])


async def test_wrong_archive_members_are_fetched_singly(tmp_path: Path) -> None:
    source = many()
    source.broken.add(2)
    done = await collect(source, 1, tmp_path, progress=silent)

    assert files_in(tmp_path) == as_held(source, 2)
    assert [one["job_id"] for one in done.missing] == [2, 2]
    assert {job_id for job_id, _ in source.fetched} == {2}


async def test_truncated_archive_falls_back_to_single_files(tmp_path: Path) -> None:
    source = many()
    source.torn = True
    done = await collect(source, 1, tmp_path, progress=silent)

    assert files_in(tmp_path) == as_held(source)
    assert (done.fetched, done.missing, len(source.fetched)) == (16, [], 16)


async def test_tar_has_every_file_and_lists_missing_ones(tmp_path: Path) -> None:
    jobs = [
        a_job(JobState.VALID, an_instance(12, InstanceState.VALID, 0, 2), canonical=12),
        replace(a_job(JobState.VALID, an_instance(13, InstanceState.VALID, 0), canonical=13), job_id=JobId(8)),
        replace(a_job(JobState.FAILED, failure="too many errors"), job_id=JobId(9)),
    ]
    bring(tmp_path, "pi_1_7_12_r0")
    bring(tmp_path, "pi_1_7_12_r2", b"plot")
    known = StoredJobs(*jobs)
    results = results_of(known, tmp_path)

    tar = b"".join([piece async for piece in tar_of(results, BatchId(1))])
    part = b"".join([piece async for piece in tar_of(results, BatchId(1), after=JobId(7), limit=1)])

    assert members_of(tar).keys() == {"7/out", "7/plot.png", "missing.jsonl"}
    assert (members_of(tar)["7/out"], members_of(tar)["7/plot.png"]) == (b"3.14", b"plot")
    [gone, failed] = [json.loads(line) for line in members_of(tar)["missing.jsonl"].splitlines()]
    assert (gone["job_id"], gone["name"], gone["because"][:23]) == (8, "out", "pi_1_7_13_r0 of 4 bytes")
    assert failed == {"job_id": 9, "state": "failed", "because": "it failed: too many errors"}
    assert members_of(part) == {"missing.jsonl": json.dumps(gone, separators=(",", ":")).encode() + b"\n"}
    assert not len(tar) % tarfile.BLOCKSIZE


async def test_tar_is_read_page_by_page(tmp_path: Path) -> None:
    known = StoredJobs(*(replace(a_job(JobState.CANCELLED), job_id=JobId(one)) for one in range(1, 2502)))
    tar = b"".join([piece async for piece in tar_of(results_of(known, tmp_path), BatchId(1))])

    assert members_of(tar)["missing.jsonl"].count(b"\n") == 2501
    assert known.pages == [1000, 1000, 1000]


async def test_file_truncated_meanwhile_ends_the_tar(tmp_path: Path) -> None:
    path = bring(tmp_path, "pi_1_7_12_r0", bytes(3 * CHUNK_BYTES))
    brought = (Upload("pi_1_7_12_r0", 3 * CHUNK_BYTES, "0" * 32),)
    instance = replace(an_instance(12, InstanceState.VALID), uploads=brought)
    known = StoredJobs(a_job(JobState.VALID, instance, canonical=12))
    pieces = tar_of(results_of(known, tmp_path), BatchId(1))
    await anext(pieces)
    path.write_bytes(bytes(2 * CHUNK_BYTES))

    with states(CutFileError, "7/out:", f"expected {3 * CHUNK_BYTES} bytes", f"last {CHUNK_BYTES} are missing"):
        [piece async for piece in pieces]


def members_of(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=BytesIO(tar)) as opened:
        return {one.name: cast(IO[bytes], opened.extractfile(one)).read() for one in opened}


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", ".bashrc", ""])
async def test_output_name_outside_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    with states(InvalidInputError, "outputs.name:", "file name"):
        await collect(FakeSource({7: {name: b"x"}}), 1, tmp_path / "to", progress=silent)

    assert files_in(tmp_path) == {}


# ---------------------------------------------------------------- through a server


@asynccontextmanager
async def served(*answers: web.Response) -> AsyncIterator[Client]:
    """Yield a client of a server that returns these responses in turn."""
    left = iter(answers)

    async def answer(request: web.Request) -> web.Response:
        return next(left)

    application = web.Application()
    application.router.add_get("/{tail:.*}", answer)
    async with TestServer(application) as server, Client(str(server.make_url("/")), "t") as client:
        yield client


def too_often() -> web.Response:
    return web.Response(status=429, text="too many requests", headers={"Retry-After": "7"})


async def test_rate_limited_request_is_retried(tmp_path: Path) -> None:
    clock = ForwardClock()
    whole = web.Response(body=b"3.14")

    page = web.json_response({"results": [], "next_cursor": None})

    async with served(too_often(), too_often(), page, too_often(), whole) as client:
        results = PatientResults(client, clock)
        assert await results.results(1, after=0, limit=1000) == []
        await results.fetch(7, "out", tmp_path / "out")

    assert clock.monotonic() == 21.0
    assert (tmp_path / "out").read_bytes() == b"3.14"


async def test_other_errors_are_raised_at_once(tmp_path: Path) -> None:
    forbidden = web.json_response({"detail": "not yours"}, status=403)
    gone = web.json_response({"detail": "no file pi_1_7_12_r0"}, status=404)

    async with served(forbidden, gone) as client:
        results = PatientResults(client, ForwardClock())
        with pytest.raises(ApiError, match=r"^not yours$"):
            await results.results(1, after=0, limit=1000)
        with pytest.raises(NotFoundError, match=r"^no file pi_1_7_12_r0$"):
            await results.fetch(7, "out", tmp_path / "out")


async def test_truncated_download_is_removed(tmp_path: Path) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"3.14")
        assert request.transport is not None
        request.transport.close()
        return response

    application = web.Application()
    application.router.add_get("/{tail:.*}", cut)
    async with TestServer(application) as server, Client(str(server.make_url("/")), "t") as client:
        with pytest.raises(UnreachableError):
            await client.fetch_output(7, "out", tmp_path / "out")

    assert files_in(tmp_path) == {}


def test_table_of_results_has_no_formulas(tmp_path: Path) -> None:
    path = tmp_path / "index.csv"
    with new_index(path) as index:
        index.writerow(row_of(JOB, "07"))
        index.writerow(row_of({**JOB, "command_line": "\t=1", "because": "\r=1"}, "=08"))
    with path.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert [first[name] for name in ("because", "command_line", "inputs")] == [
        "'@SUM(A1)",
        "'=cmd|' /C calc'!A0",
        "'+1 b",
    ]
    assert [first[name] for name in ("i", "job_id", "exit_status", "elapsed_s")] == ["07", "7", "-5", ""]
    assert [second[name] for name in ("command_line", "because", "files")] == ["'\t=1", "'\r=1", "'=08/out"]
