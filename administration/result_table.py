"""A batch's jobs and results as a CSV table: the API's download, and the index of `muster batch results`."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from administration.results import OutputState, Results, result_as_json
from domain.batches import Batch
from domain.formatting import inert
from domain.units import JobId

PAGE = 1000  # jobs per database read
COLUMNS = [
    "i",
    "job_id",
    "state",
    "because",
    "command_line",
    "inputs",
    "host_id",
    "elapsed_s",
    "cpu_s",
    "exit_status",
    "canonical_instance_id",
    "files",
]

Document = Mapping[str, Any]  # Any: a JSON document


def number_of(index: int, jobs_total: int) -> str:
    """Return a job's number in its batch, with as many digits as that of the last job.

    >>> number_of(7, 1000)
    '007'
    """
    return f"{index:0{len(str(max(1, jobs_total - 1)))}d}"


def row_of(job: Document, number: str) -> Document:
    """Return a job's row, without cells that a spreadsheet would run as formulas.

    >>> job = {"command_line": "--n 7", "inputs": ["a", "b"], "outputs": [{"name": "out", "state": "here"}]}
    >>> [row_of(job, "07")[name] for name in ("i", "command_line", "inputs", "files")]
    ['07', "'--n 7", 'a b', '07/out']
    """
    files = [f"{number}/{one['name']}" for one in job["outputs"] if one["state"] == OutputState.HERE]
    row = {**job, "i": number, "inputs": " ".join(job["inputs"]), "files": " ".join(files)}
    return {name: inert(value) for name, value in row.items()}


async def table_of(results: Results, batch: Batch) -> AsyncGenerator[bytes, None]:
    """Yield the table of a batch of any size in pieces; purged jobs are missing."""
    after, index = JobId(0), 0
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    while True:
        page = await results.of_batch(batch.batch_id, limit=PAGE, after=after)
        for result in page:
            writer.writerow(row_of(result_as_json(result), number_of(index, batch.counts.jobs_total)))
            index += 1
        yield text.getvalue().encode()
        if len(page) < PAGE:
            return
        after = page[-1].job.job_id
        text.seek(0)
        text.truncate()
