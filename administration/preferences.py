"""What a volunteer wants of the project, changed. Pure."""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import replace
from typing import Any

from domain.apps import App
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.units import AppId, Instant, later
from domain.volunteers import Volunteer

MOST = 1_000_000  # jobs in progress, or CPUs of one job
STEP_S = 1.0  # clients are told when in whole seconds: each change has one of its own


def offered(catalogue: Catalogue) -> list[App]:
    """Applications that volunteers may choose from: those that still get work and have a program."""
    return [app for app in catalogue.apps.values() if not app.deprecated and catalogue.current.get(app.app_id)]


def choice_of(apps: Collection[AppId], among: Collection[AppId]) -> tuple[AppId, ...]:
    """Chosen applications as they are kept. Who chose all that are offered also gets those that are to come.

    >>> choice_of([3, 1, 3], {1, 2, 3}), choice_of([1, 2], {1, 2})
    ((1, 3), ())
    """
    return () if among and set(apps) >= set(among) else tuple(sorted(set(apps)))


def preferring(old: Volunteer, *, now: Instant, known: Container[AppId] | None = None, **changes: Any) -> Volunteer:
    """The volunteer with other preferences, which are then the newest; as it was where nothing changes.

    `changes` are beta, no_gpu, no_cpu, max_jobs, max_cpus and apps; `known` says which apps there are. Raises
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
    strangers = [app_id for app_id in new.apps if known is not None and app_id not in known]
    if strangers:
        raise InvalidInputError("apps", "applications of this project", ", ".join(map(str, strangers)))
    least = now if old.preferred_at is None else later(old.preferred_at, STEP_S)
    return replace(new, preferred_at=max(now, least))
