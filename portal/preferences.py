"""Shows and saves a volunteer's preferences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from aiohttp import web

from administration.access.who import the_volunteer
from administration.volunteers import MOST, choice_of, preferring
from domain.errors import ConflictError, InvalidInputError, MusterError
from domain.units import AppId, Instant
from domain.volunteers import Volunteer
from portal.services import PortalServices, apps_offered, title_of, told
from web.handlers import LARGEST_INT, Fields, Pages, get, number_of, post, whole_number
from web.rendering import RenderedPage

NEVER = "never"


def wishes_of(fields: Fields, chosen: Sequence[str], offered: Collection[AppId]) -> dict[str, Any]:
    """Parse the form for `preferring`. Raises InvalidInputError.

    >>> wishes_of({"which": "some", "cpu": "on", "gpu": "on"}, ["2"], {1, 2})["apps"]
    (2,)
    >>> wishes_of({"which": "all", "cpu": "on", "max_jobs": "3"}, [], {1, 2})
    {'beta': False, 'no_cpu': False, 'no_gpu': True, 'max_jobs': 3, 'max_cpus': 0, 'apps': ()}
    """
    apps: tuple[AppId, ...] = ()
    if fields.get("which") == "some":
        apps = tuple(AppId(whole_number(one, "app", 1, LARGEST_INT)) for one in chosen)
        if not apps:
            raise InvalidInputError("apps", "at least one application, or all of them", "none")
    return {
        "beta": "beta" in fields,
        "no_cpu": "cpu" not in fields,
        "no_gpu": "gpu" not in fields,
        "max_jobs": _whole(fields, "max_jobs"),
        "max_cpus": _whole(fields, "max_cpus"),
        "apps": choice_of(apps, offered),
    }


def _whole(fields: Fields, name: str) -> int:
    """Parse an integer; an empty field means 0, no limit."""
    value = number_of(fields, name, low=0, high=MOST) or 0.0
    if value != int(value):
        raise InvalidInputError(name, f"a whole number from 0 to {MOST}", fields[name])
    return int(value)


def known_at_of(fields: Fields) -> Instant | None:
    """Return the time of the latest change that the user had seen."""
    text = fields.get("known_at", NEVER)
    try:
        return None if text == NEVER else Instant(float(text))
    except ValueError:
        raise InvalidInputError("known_at", "the hidden field's original value", text) from None


class PreferencePages(Pages[PortalServices]):
    """Pages for preferences: applications, processors and limits."""

    @get("/preferences", "preferences")
    async def ask(self, request: web.Request) -> RenderedPage:
        return self._form(the_volunteer(request).volunteer, None)

    @post("/preferences", "preferences_post", edits=True)
    async def save(self, request: web.Request) -> RenderedPage | web.Response:
        """Save the form, unless the preferences changed after it was loaded."""
        services, volunteer = self._services, the_volunteer(request).volunteer
        sent = await request.post()
        fields = {name: value for name, value in sent.items() if isinstance(value, str)}
        chosen = [value for value in sent.getall("app", []) if isinstance(value, str)]
        try:
            if known_at_of(fields) != volunteer.preferred_at:
                raise ConflictError(CHANGED)
            wishes = wishes_of(fields, chosen, {app.app_id for app in apps_offered(services.catalogue)})
            wanted = preferring(volunteer, now=services.clock.now(), known=services.catalogue.apps, **wishes)
            if wanted is not volunteer:
                await services.store.volunteers.set_volunteer(wanted, instead_of=volunteer)
        except (InvalidInputError, ConflictError) as error:
            return self._form(volunteer, error)
        return services.go("preferences", "preferences")

    def _form(self, volunteer: Volunteer, wrong: MusterError | None) -> RenderedPage:
        offered = apps_offered(self._services.catalogue)
        values: dict[str, object] = {
            "volunteer": volunteer,
            "apps": [(app, title_of(app), not volunteer.apps or app.app_id in volunteer.apps) for app in offered],
            "known_at": NEVER if volunteer.preferred_at is None else repr(volunteer.preferred_at),
            "most": MOST,
            "wrong": told(wrong),
        }
        status = 200 if wrong is None else 409 if isinstance(wrong, ConflictError) else 422
        return RenderedPage("preferences.html", "Preferences", "preferences", values=values, status=status)


CHANGED = "your preferences were changed elsewhere in the meantime; the current ones are shown below"
