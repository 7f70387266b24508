"""What every page of a volunteer works with, and what these pages have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from administration.access.who import volunteer_of
from administration.accounts import AccountKeys
from administration.ports import Views, Volunteers
from administration.volunteers import offered
from domain.apps import App
from domain.catalogue import Catalogue
from domain.units import HostId
from portal.ports import Belongings
from web.desk import PageDesk
from web.rendering import Look

SECTIONS = (
    ("computers", "My computers", "What they do, and why one has no work"),
    ("results", "My results", "In progress, valid, failed"),
    ("preferences", "Preferences", "Which work, on which processors, and how much of it"),
    ("account", "Account", "Your password, and how to add a computer"),
)
SAID = {
    "joined": "Welcome! Now add the project in your BOINC client, as below.",
    "preferences": "Saved. Each of your computers takes it over when it calls next; what it has already it still does.",
    "password": "Your password is changed. Your computers stay attached; other browsers are signed out.",
}
LOOK = Look("portal", "site.html", ("computers", "My computers"), True, SECTIONS, SAID, volunteer_of)


class HostExplanations(Protocol):
    async def host(self, host_id: HostId) -> Mapping[str, Any]:  # Any: a JSON document
        """What the host would be given if it called now, and why not more."""
        ...


@dataclass(frozen=True, slots=True)
class SiteDesk(PageDesk):
    """What the volunteers' pages work with: their part of the store, dry runs, and the account keys too."""

    belongings: Belongings
    volunteers: Volunteers
    views: Views
    explain: HostExplanations
    keys: AccountKeys


def apps_offered(catalogue: Catalogue) -> list[App]:
    """Applications that volunteers may choose from, in the order of a list."""
    return sorted(offered(catalogue), key=lambda app: (app.beta, title_of(app).lower()))


def title_of(app: App) -> str:
    """What people call an application."""
    return app.user_friendly_name or app.name


def titles_of(catalogue: Catalogue) -> dict[str, str]:
    """The same by the application's name."""
    return {app.name: title_of(app) for app in catalogue.apps.values()}
