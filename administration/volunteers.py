"""Changes a volunteer as operators do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from administration.accounts import checked_email
from administration.ports import Applications, Volunteers
from administration.preferences import choice_of, offered, preferring
from administration.show_people import volunteer_as_json
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError, NotFoundError
from domain.units import AppId, Instant


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a volunteer is to take and how much of it; what is None stays. `apps` by their names; none of them: all."""

    beta: bool | None = None
    cpu: bool | None = None
    gpu: bool | None = None
    max_jobs: int | None = None
    max_cpus: int | None = None
    apps: Sequence[str] | None = None

    def changes(self, catalogue: Catalogue) -> dict[str, Any]:
        """As `preferring` takes them. Raises InvalidInputError."""
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
    volunteers: Volunteers, applications: Applications, email: str, wishes: Wishes, *, now: Instant
) -> dict[str, object]:
    """Change what a volunteer takes and how much of it; how it stands then.

    Raises InvalidInputError, NotFoundError, and ConflictError when the volunteer changed it meanwhile.
    """
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
