"""The history: jobs of batches that ended long ago, stored by the month in which their batch ended. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from domain.dispatch import Upload
from domain.errors import InvalidInputError
from domain.units import BatchId, InstanceId, Instant, JobId

_MONTH = re.compile(r"(?P<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class JobPlace:
    """A position in the scan of jobs, ordered by batch, then by id."""

    batch_id: BatchId
    job_id: JobId


START = JobPlace(BatchId(0), JobId(0))


@dataclass(frozen=True, slots=True)
class MovedJobs:
    """The result of moving one group of jobs to the history. The next step continues at `after`.

    `more` is False once all batches have been scanned; `after` is then the start.
    """

    jobs: int = 0
    instances: int = 0
    after: JobPlace = START
    more: bool = False


@dataclass(frozen=True, slots=True)
class FinishedMonth:
    """The history of one month. `files` counts uploaded outputs; `table_bytes` is the size of its database tables.

    `purged_at`: when the month was last purged; None: never.
    """

    month: str
    jobs: int = 0
    instances: int = 0
    files: int = 0
    file_bytes: int = 0
    table_bytes: int = 0
    purged_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class OutputPage:
    """A page of outputs; `after` is where the next page starts, None after the last page."""

    uploads: tuple[Upload, ...]
    after: InstanceId | None


def month_of(at: Instant) -> str:
    """Return the month of an instant in UTC, as YYYY-MM.

    >>> month_of(Instant(1_800_000_000.0))
    '2027-01'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m")


def month_bounds(month: str) -> tuple[Instant, Instant]:
    """Return the start of a month and the start of the next one, UTC.

    >>> month_bounds("2026-12")
    (1796083200.0, 1798761600.0)
    """
    year, number = (int(part) for part in month.split("-"))
    following = (year + 1, 1) if number == 12 else (year, number + 1)
    starts, ends = (datetime(*first, 1, tzinfo=UTC).timestamp() for first in ((year, number), following))
    return Instant(starts), Instant(ends)


def checked_month(field: str, text: str) -> str:
    """Return `text` if it is a valid month. Raises InvalidInputError naming `field`.

    >>> checked_month("before", "2026-3")
    Traceback (most recent call last):
    domain.errors.InvalidInputError: before: expected a month like 2026-03, got '2026-3'
    """
    match = _MONTH.fullmatch(text)
    if match is None or not 1970 <= int(match["year"]) <= 9998:
        raise InvalidInputError(field, "a month like 2026-03", text)
    return text
