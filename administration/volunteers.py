"""Changes volunteers' preferences, on behalf of operators and of volunteers themselves."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from administration.accounts import checked_email
from administration.show import shown
from domain.apps import App
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError, NotFoundError
from domain.units import AppId, Instant, later
from domain.volunteers import Volunteer, VolunteerRecord
from muster_client import shapes
from store.applications import PostgresApplications
from store.people import PostgresVolunteers

MOST = 1_000_000  # maximum of jobs in progress, and of CPUs per job
STEP_S = 1.0  # clients receive the time in whole seconds, so each change needs a different second


def offered(catalogue: Catalogue) -> list[App]:
    """Return the applications that volunteers can select: not deprecated, and with a version."""
    return [app for app in catalogue.apps.values() if catalogue.is_sent(app.app_id)]


def choice_of(apps: Collection[AppId], among: Collection[AppId]) -> tuple[AppId, ...]:
    """Return the selected applications as stored. Selecting all applications also includes future ones.

    >>> choice_of([3, 1, 3], {1, 2, 3}), choice_of([1, 2], {1, 2})
    ((1, 3), ())
    """
    return () if among and set(apps) >= set(among) else tuple(sorted(set(apps)))


def preferring(old: Volunteer, *, now: Instant, known: Container[AppId] | None = None, **changes: Any) -> Volunteer:
    """Return the volunteer with changed preferences and change time, or unchanged if nothing differs.

    `changes` are beta, no_gpu, no_cpu, max_jobs, max_cpus and apps; `known` are the existing apps. Raises
    InvalidInputError.

    >>> from domain.units import VolunteerId
    >>> ada = Volunteer(VolunteerId(1), "Ada", Instant(5.0))
    >>> preferring(ada, now=Instant(9.0), max_jobs=2).preferred_at, preferring(ada, now=Instant(9.0), beta=False) is ada
    (9.0, True)
    """
    new = replace(old, **changes)
    if new == old:
        return old
    if new.no_cpu and new.no_gpu:
        raise InvalidInputError("processors", "the CPU, GPUs, or both", "neither")
    for name in ("max_jobs", "max_cpus"):
        if not 0 <= getattr(new, name) <= MOST:
            raise InvalidInputError(name, f"a whole number from 0 to {MOST}", getattr(new, name))
    unknown = [app_id for app_id in new.apps if known is not None and app_id not in known]
    if unknown:
        raise InvalidInputError("apps", "applications of this project", ", ".join(map(str, unknown)))
    least = now if old.preferred_at is None else later(old.preferred_at, STEP_S)
    return replace(new, preferred_at=max(now, least))


class VolunteerBody(msgspec.Struct, forbid_unknown_fields=True):
    """Preferences to change; omitted ones are kept. Maxima per host: `max_jobs` in progress, `max_cpus` per job; 0 = no
    limit.

    `apps`: names of the selected apps; an empty list selects all, including future ones.
    """

    beta: bool | None = None
    cpu: bool | None = None
    gpu: bool | None = None
    max_jobs: int | None = None
    max_cpus: int | None = None
    apps: list[str] | None = None

    def changes(self, catalogue: Catalogue) -> dict[str, Any]:
        """Return the arguments for `preferring`. Raises InvalidInputError."""
        found = {
            "beta": self.beta,
            "no_cpu": None if self.cpu is None else not self.cpu,
            "no_gpu": None if self.gpu is None else not self.gpu,
            "max_jobs": self.max_jobs,
            "max_cpus": self.max_cpus,
            "apps": None if self.apps is None else _chosen(self.apps, catalogue),
        }
        changes = {name: value for name, value in found.items() if value is not None}
        if not changes:
            raise InvalidInputError("volunteer", "a change of beta, cpu, gpu, max_jobs, max_cpus or apps", "none")
        return changes


async def change_volunteer(
    volunteers: PostgresVolunteers,
    applications: PostgresApplications,
    email: str,
    wishes: VolunteerBody,
    *,
    now: Instant,
) -> shapes.VolunteerShown:
    """Change preferences and return the result. Raises InvalidInputError, NotFoundError, ConflictError."""
    catalogue = await applications.load_catalogue()
    changes = wishes.changes(catalogue)
    record = await volunteers.volunteer_by_email(checked_email(email))
    if record is None:
        raise NotFoundError("volunteer", email)
    changed = preferring(record.volunteer, now=now, known=catalogue.apps, **changes)
    if changed is not record.volunteer:
        await volunteers.set_volunteer(changed, instead_of=record.volunteer)
    return volunteer_as_json(replace(record, volunteer=changed), catalogue.apps.values())


def _chosen(names: Sequence[str], catalogue: Catalogue) -> tuple[AppId, ...]:
    by_name = {app.name: app.app_id for app in catalogue.apps.values()}
    for name in names:
        if name not in by_name:
            raise InvalidInputError("apps", "applications of this project: " + (", ".join(by_name) or "none"), name)
    return choice_of([by_name[name] for name in names], {app.app_id for app in offered(catalogue)})


def volunteer_as_json(record: VolunteerRecord, apps: Iterable[App]) -> shapes.VolunteerShown:
    """Return a volunteer without secrets. `apps` are all apps, used to name the selected ones."""
    chosen = sorted(app.name for app in apps if app.app_id in record.volunteer.apps)
    return shown(shapes.VolunteerShown, record.volunteer, email=record.email, apps=chosen)
