"""`muster batch results`: download a batch's outputs to a directory."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.context import Run, bar_of, command, patiently
from domain.clock import Clock
from domain.errors import NotFoundError

if TYPE_CHECKING:
    from administration.collecting import Document
    from muster_client import Client


SHOWN = 20  # maximum number of missing files listed individually
NAMED = 5  # maximum number of jobs listed per reason


@click.command("results")
@click.argument("batch_id", type=click.IntRange(1, 2**62))
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for the outputs, created if missing; each job has a subfolder with its number in the batch.",
)
@command
async def results(run: Run, batch_id: int, folder: Path) -> None:
    """Download the outputs of a batch's valid jobs to FOLDER/I/OUTPUT, and list all jobs in FOLDER/index.csv.

    I is the job's number in its batch, from 0: `{i}` in the batch file.

    Skips files that already have the recorded size and MD5. Exit code 1 if an uploaded file is missing on the
    server.
    """
    from administration.collecting import collect

    async with run.client() as client:
        with bar_of("results") as progress:
            done = (await collect(PatientResults(client, run.clock), batch_id, folder, progress=progress)).as_json()
    run.show(done, in_words(done))
    if done["missing"]:
        sys.exit(1)


class PatientResults:
    """Reads results through the API, within the server's rate limits."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def batch(self, batch_id: int) -> Document:
        return await patiently(self._clock, lambda: self._client.batch(batch_id))

    async def results(self, batch_id: int, *, after: int, limit: int) -> Sequence[Document]:
        return await patiently(self._clock, lambda: self._client.batch_results(batch_id, after=after, limit=limit))

    async def fetch(self, job_id: int, name: str, to: Path) -> None:
        from muster_client import ApiError

        try:
            await patiently(self._clock, lambda: self._client.fetch_output(job_id, name, to))
        except ApiError as error:
            if error.status != 404:
                raise
            raise NotFoundError("file", str(error).removeprefix("no file ")) from None

    async def fetch_archive(self, batch_id: int, to: Path, *, after: int, limit: int) -> bool:
        from muster_client import UnreachableError

        try:
            await patiently(self._clock, lambda: self._client.fetch_outputs(batch_id, to, after=after, limit=limit))
        except UnreachableError:
            return False  # request files one by one, to learn what is wrong with each
        return True


def in_words(done: Mapping[str, Any]) -> str:  # Any: a JSON document
    """Format missing files, followed by a line with the totals and the jobs without a result.

    >>> one = {"batch_id": 1, "to": "out", "files": 3, "nbytes": 90, "fetched": 1, "present": 2, "missing": []}
    >>> two = {"jobs_validated": 2, "jobs_forgotten": 0, "without_result": [{"job_id": 4, "because": "it is open"}]}
    >>> in_words({**one, **two})
    'batch 1: 3 files of 2 jobs in out, 1 fetched, 2 already present; 1 job without a result: it is open (job 4)'
    """
    missing = [f"job {one['job_id']}, output {one['name']}: {one['because']}" for one in done["missing"]]
    if len(missing) > SHOWN:
        missing[SHOWN:] = [f"and {len(missing) - SHOWN} more"]
    there = f"{_count(done['files'], 'file')} of {_count(done['jobs_validated'], 'job')} in {done['to']}"
    line = f"batch {done['batch_id']}: {there}, {done['fetched']} fetched, {done['present']} already present"
    if done["missing"]:
        line += f", {len(done['missing'])} MISSING"
    if done["jobs_forgotten"]:
        line += f"; {_count(done['jobs_forgotten'], 'job')} forgotten (muster purge)"
    if done["without_result"]:
        line += f"; {_count(len(done['without_result']), 'job')} without a result: {_reasons(done['without_result'])}"
    return "\n".join([*missing, line])


def _reasons(jobs: Sequence[Mapping[str, Any]]) -> str:  # Any: a JSON document
    by_reason: dict[str, list[int]] = defaultdict(list)
    for job in jobs:
        by_reason[job["because"]].append(job["job_id"])
    return ", ".join(f"{because} ({_named(ids)})" for because, ids in by_reason.items())


def _named(ids: Sequence[int]) -> str:
    """Format job ids or, if there are many, their number and the first ids.

    >>> _named([4]), _named([4, 7]), _named([1, 2, 3, 4, 5, 6])
    ('job 4', 'jobs 4, 7', '6 jobs: 1, 2, 3, 4, 5, …')
    """
    first = ", ".join(map(str, ids[:NAMED]))
    if len(ids) > NAMED:
        return f"{len(ids)} jobs: {first}, …"
    return f"{'job' if len(ids) == 1 else 'jobs'} {first}"


def _count(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"
