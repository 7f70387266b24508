"""Applications and plan classes as people make and change them, and as JSON."""

from __future__ import annotations

import re
from dataclasses import asdict, replace

from administration.names import checked_app_name, checked_plan_class_name, checked_text
from administration.ports import Applications
from domain.apps import App, OnePerVolunteer, PlanClass, ProcessorType
from domain.bounds import in_bounds
from domain.errors import InvalidInputError
from domain.units import AppId

MOST_COPIES = 10
_BOUNDED = (  # of a plan class
    "gpu_count",
    "min_gpu_ram_bytes",
    "min_driver_version",
    "min_host_ncpus",
    "min_host_ram_bytes",
    "cpu_speed_fraction",
    "gpu_speed_fraction",
)
CHANGEABLE = (
    "user_friendly_name",
    "beta",
    "deprecated",
    "adaptive_copies",
    "one_per_host",
    "one_per_volunteer",
)


def new_app(
    name: str,
    *,
    user_friendly_name: str = "",
    beta: bool = False,
    adaptive_copies: int = 0,
    one_per_host: bool = True,
    one_per_volunteer: OnePerVolunteer = OnePerVolunteer.QUORUM,
) -> App:
    """An app that was not added yet. Raises InvalidInputError."""
    friendly = checked_text(user_friendly_name, "user_friendly_name")
    return App(
        AppId(0),
        checked_app_name(name),
        user_friendly_name=friendly,
        beta=beta,
        adaptive_copies=_checked_copies(adaptive_copies),
        one_per_host=one_per_host,
        one_per_volunteer=one_per_volunteer,
    )


async def change_app(
    applications: Applications,
    name: str,
    *,
    user_friendly_name: str | None = None,
    beta: bool | None = None,
    deprecated: bool | None = None,
    adaptive_copies: int | None = None,
    one_per_host: bool | None = None,
    one_per_volunteer: OnePerVolunteer | None = None,
) -> App:
    """The app as it is then; what is None stays. Running services follow within seconds.

    Raises InvalidInputError, NotFoundError.
    """
    changes: dict[str, object] = {}
    if user_friendly_name is not None:
        changes["user_friendly_name"] = checked_text(user_friendly_name, "user_friendly_name")
    if beta is not None:
        changes["beta"] = beta
    if deprecated is not None:
        changes["deprecated"] = deprecated
    if adaptive_copies is not None:
        changes["adaptive_copies"] = _checked_copies(adaptive_copies)
    if one_per_host is not None:
        changes["one_per_host"] = one_per_host
    if one_per_volunteer is not None:
        changes["one_per_volunteer"] = one_per_volunteer
    if not changes:
        raise InvalidInputError("app", f"a change of {', '.join(CHANGEABLE[:-1])} or {CHANGEABLE[-1]}", "none")
    changed: App = replace(await applications.app(checked_app_name(name)), **changes)  # type: ignore[arg-type]  # by name
    await applications.set_app(changed)
    return changed


def plan_class_of(values: dict[str, object]) -> PlanClass:
    """A plan class of values by the names of its fields, whose types were checked. Raises InvalidInputError.

    >>> plan_class_of({"name": "mt", "ncpus": 4.0}).ncpus
    4.0
    """
    made = PlanClass(**values)  # type: ignore[arg-type]  # by name
    checked_plan_class_name(made.name)
    checked_pattern(made.os_pattern)
    in_bounds("plan_class.ncpus", made.ncpus, field="ncpus")
    for name in _BOUNDED:
        in_bounds(name, getattr(made, name))
    if made.gpu_type is not None:
        checked_text(made.gpu_type, "gpu_type")
    return replace(made, gpu_type=None if made.gpu_type is None else ProcessorType(made.gpu_type))


def plan_class_as_json(one: PlanClass) -> dict[str, object]:
    """What versions with the class use, and need of a host."""
    return asdict(one)


def checked_pattern(pattern: str) -> str:
    """A regular expression that compiles. Raises InvalidInputError.

    >>> checked_pattern("Linux.*Debian")
    'Linux.*Debian'
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidInputError("os_pattern", "a regular expression", f"{pattern}: {error}") from None
    return pattern


def _checked_copies(copies: int) -> int:
    if not 0 <= copies <= MOST_COPIES:
        raise InvalidInputError("adaptive_copies", f"a whole number from 0 to {MOST_COPIES}", copies)
    return copies
