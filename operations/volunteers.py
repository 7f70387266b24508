"""Changes a volunteer as operators do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.errors import InvalidInputError, NotFoundError
from domain.units import Instant
from domain.volunteers import VolunteerRecord
from operations.accounts import checked_email
from operations.ports import Volunteers
from operations.preferences import preferring


async def change_volunteer(
    volunteers: Volunteers,
    email: str,
    *,
    now: Instant,
    beta: bool | None = None,
    gpu: bool | None = None,
    max_jobs: int | None = None,
) -> VolunteerRecord:
    """What a volunteer takes and how much of it; what is None stays. How it stands then.

    Raises InvalidInputError, NotFoundError, and ConflictError when the volunteer changed it meanwhile.
    """
    wanted = {"beta": beta, "no_gpu": None if gpu is None else not gpu, "max_jobs": max_jobs}
    changes: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if not changes:
        raise InvalidInputError("volunteer", "a change of beta, gpu or max_jobs", "none")
    record = await volunteers.volunteer_by_email(checked_email(email))
    if record is None:
        raise NotFoundError("volunteer", email)
    changed = preferring(record.volunteer, now=now, **changes)
    await volunteers.set_volunteer(changed, instead_of=record.volunteer)
    return replace(record, volunteer=changed)
