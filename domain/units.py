"""What numbers mean. Pure.

A name says its unit by its ending: `_at` an instant, `_s` a length of time, `_bytes`, `_flop`,
`_flop_per_s`, `_fraction` (0 to 1).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NewType

Instant = NewType("Instant", float)  # *_at: seconds since the Unix epoch, UTC
Seconds = NewType("Seconds", float)  # *_s: a length of time
Flop = NewType("Flop", float)  # *_flop: floating-point operations
FlopPerSecond = NewType("FlopPerSecond", float)  # *_flop_per_s: speed

AccountId = NewType("AccountId", int)
SubmitterId = NewType("SubmitterId", int)
VolunteerId = NewType("VolunteerId", int)
PersonId = NewType("PersonId", int)
TokenId = NewType("TokenId", int)
HostId = NewType("HostId", int)
AppId = NewType("AppId", int)
AppVersionId = NewType("AppVersionId", int)
BatchId = NewType("BatchId", int)
JobClassId = NewType("JobClassId", int)
JobId = NewType("JobId", int)
InstanceId = NewType("InstanceId", int)

SHARDS = 64  # ordinary work is divided by job_id % SHARDS among the request workers

MINUTE_S = Seconds(60.0)
HOUR_S = Seconds(3600.0)
DAY_S = Seconds(86400.0)


_FIRST_DATE, _LAST_DATE = -62135596800.0, 253402300799.0  # of the years 1 to 9999


def utc(at: float) -> datetime:
    """The instant as a date; one beyond the years 1 to 9999 becomes the first or the last of them.

    >>> f"{utc(1e300):%Y}", f"{utc(0.0):%Y-%m-%d}"
    ('9999', '1970-01-01')
    """
    return datetime.fromtimestamp(min(max(at, _FIRST_DATE), _LAST_DATE), UTC)


def later(start_at: Instant, by_s: float) -> Instant:
    """The instant `by_s` seconds after `start_at`.

    >>> later(Instant(100.0), 20)
    120.0
    """
    return Instant(start_at + by_s)


def elapsed_s(since_at: Instant, now: Instant) -> Seconds:
    """Seconds from `since_at` to `now`; negative when `since_at` lies ahead.

    >>> elapsed_s(Instant(100.0), Instant(130.0))
    30.0
    """
    return Seconds(now - since_at)


def shard_of(job_id: JobId) -> int:
    """The shard a job belongs to, 0 to SHARDS - 1.

    >>> shard_of(JobId(130))
    2
    """
    return job_id % SHARDS
