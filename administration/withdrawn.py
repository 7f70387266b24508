"""Finds apps without a version for new work, and who withdrew the last one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from administration.access.trail import trail_page
from domain.access import Act, ActChoice
from domain.apps import AppVersion, VersionState
from domain.catalogue import Catalogue
from domain.formatting import roughly
from domain.units import AppId, Instant
from store.people import PostgresAccess

ACTION = "set_app_version"  # in the audit trail
MOST_ACTS = 200  # latest changes of versions that are read
DONE = {VersionState.DEPRECATED: "deprecated"}  # the other states are withdrawals


@dataclass(frozen=True, slots=True)
class LostVersion:
    """An app without a version for new work: its last version, None if it never had one, and the entry of the audit
    trail about that version, None if there is none.
    """

    app: str
    version: AppVersion | None
    act: Act | None = None

    @property
    def link(self) -> str:
        """Return the page of the console that offers the version again, below the console's root."""
        return f"apps/{self.app}" + (f"/versions/{self.version.app_version_id}" if self.version else "")

    @property
    def title(self) -> str:
        return f"{self.app} {self.version.title}" if self.version else self.app

    def words(self, now: Instant) -> str:
        """Return which version was withdrawn, by whom, when and why, as a clause."""
        start = f"no version of {self.app} gets jobs"
        if self.version is None:
            return start
        if self.act is None:
            return f"{start}: {self.version.title} is {DONE.get(self.version.state, 'withdrawn')}"
        why = self.act.detail.get("why")
        done = DONE.get(self.version.state, "withdrew")
        ago = f"{roughly(max(0.0, now - self.act.acted_at))} ago"
        return f"{start}: {self.act.who} {done} {self.version.title} {ago}{f' ({why})' if why else ''}"


async def lost_versions(
    trail: PostgresAccess, catalogue: Catalogue, app_ids: Iterable[AppId]
) -> Mapping[AppId, LostVersion]:
    """Return those of the apps that have no version for new work."""
    lost = [one for one in app_ids if one in catalogue.apps and not catalogue.current.get(one)]
    if not lost:
        return {}
    acts = (await trail_page(trail, ActChoice(what=ACTION), before=None, limit=MOST_ACTS)).acts
    return {app_id: _lost(app_id, catalogue, acts) for app_id in lost}


def _lost(app_id: AppId, catalogue: Catalogue, acts: Iterable[Act]) -> LostVersion:
    name = catalogue.apps[app_id].name
    own = {f"app version {number}": one for number, one in catalogue.versions.items() if one.app_id == app_id}
    act = next((one for one in acts if one.target in own and one.detail.get("state") != VersionState.OFFERED), None)
    if act is not None:
        return LostVersion(name, own[act.target], act)
    return LostVersion(name, max(own.values(), key=lambda one: one.app_version_id, default=None))
