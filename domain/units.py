"""Units of measurement. Pure.

The suffix of a name gives its unit: `_at` an instant, `_s` a duration, `_bytes`, `_flop`, `_flop_per_s`, `_fraction` (0
to 1).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NewType

Instant = NewType("Instant", float)  # *_at: seconds since the Unix epoch, UTC
Seconds = NewType("Seconds", float)  # *_s: a duration
Flop = NewType("Flop", float)  # *_flop: floating-point operations
FlopPerSecond = NewType("FlopPerSecond", float)  # *_flop_per_s: speed

AccountId = NewType("AccountId", int)
SubmitterId = NewType("SubmitterId", int)
VolunteerId = NewType("VolunteerId", int)
TeamId = NewType("TeamId", int)
PersonId = NewType("PersonId", int)
TokenId = NewType("TokenId", int)
HostId = NewType("HostId", int)
AppId = NewType("AppId", int)
AppVersionId = NewType("AppVersionId", int)
BatchId = NewType("BatchId", int)
JobClassId = NewType("JobClassId", int)
JobId = NewType("JobId", int)
InstanceId = NewType("InstanceId", int)
SubscriptionId = NewType("SubscriptionId", int)
DeliveryId = NewType("DeliveryId", int)

SHARDS = 64  # ordinary work is divided among request workers by job_id % SHARDS

MINUTE_S = Seconds(60.0)
HOUR_S = Seconds(3600.0)
DAY_S = Seconds(86400.0)


_FIRST_DATE, _LAST_DATE = -62135596800.0, 253402300799.0  # limits of the years 1 to 9999


def utc(at: float) -> datetime:
    """Return the instant as a date, clamped to the years 1 to 9999.

    >>> f"{utc(1e300):%Y}", f"{utc(0.0):%Y-%m-%d}"
    ('9999', '1970-01-01')
    """
    return datetime.fromtimestamp(min(max(at, _FIRST_DATE), _LAST_DATE), UTC)


def later(start_at: Instant, by_s: float) -> Instant:
    """Return the instant `by_s` seconds after `start_at`.

    >>> later(Instant(100.0), 20)
    120.0
    """
    return Instant(start_at + by_s)


def elapsed_s(since_at: Instant, now: Instant) -> Seconds:
    """Return the seconds from `since_at` to `now`; negative if `since_at` is in the future.

    >>> elapsed_s(Instant(100.0), Instant(130.0))
    30.0
    """
    return Seconds(now - since_at)


def shard_of(job_id: JobId) -> int:
    """Return the shard of a job, 0 to SHARDS - 1.

    >>> shard_of(JobId(130))
    2
    """
    return job_id % SHARDS
