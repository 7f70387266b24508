"""Teams of volunteers. Members find, found, join and leave teams; founders change, hand over and delete theirs."""

from __future__ import annotations

import re

from aiohttp import web

from administration.access.who import the_volunteer
from domain.errors import AlreadyExistsError, InvalidInputError, MusterError
from domain.participation import Team
from domain.units import TeamId, VolunteerId
from portal.services import PortalServices, told
from web.handlers import LARGEST_INT, Fields, Pages, fields_of, get, id_of, post, whole_number
from web.rendering import Crumb, RenderedPage
from web.sign_in import status_of

SHOWN = 100  # teams, and members of a team
NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
URL = re.compile(r"(https?://[^\s<>\"'\x00-\x1f]{1,240})?")
MOST_ABOUT = 2000  # characters


def team_of(fields: Fields) -> dict[str, str]:
    """Parse the form that describes a team. Raises InvalidInputError.

    >>> team_of({"name": " Night owls ", "url": "", "description": "We compute at night."})
    {'name': 'Night owls', 'url': '', 'description': 'We compute at night.'}
    """
    name, url = fields.get("name", "").strip(), fields.get("url", "").strip()
    about = fields.get("description", "").replace("\r\n", "\n").strip()
    if not NAME.fullmatch(name):
        raise InvalidInputError("name", "1 to 100 characters, no control characters", name[:100])
    if not URL.fullmatch(url):
        raise InvalidInputError("url", "an http or https address, or nothing", url[:100])
    if len(about) > MOST_ABOUT or "\x00" in about:
        raise InvalidInputError("description", f"at most {MOST_ABOUT} characters", f"{len(about)}")
    return {"name": name, "url": url, "description": about}


class TeamPages(Pages[PortalServices]):
    """The list of teams, the page of one team, and its forms."""

    @get("/teams", "teams", asks=("q",))
    async def teams(self, request: web.Request) -> RenderedPage:
        return await self._teams(request, request.query.get("q", "").strip()[:100], {}, None)

    @post("/teams", "teams_post")
    async def found(self, request: web.Request) -> RenderedPage | web.Response:
        """Found a team."""
        services, volunteer_id, fields = self._services, _who(request), await fields_of(request)
        try:
            wanted = team_of(fields)
            own = await services.store.participation.participation(volunteer_id)
            if own.team_id is not None:
                raise InvalidInputError("team", "that you leave your team first", str(own.team_id))
            team_id = await services.store.participation.add_team(
                wanted.pop("name"), volunteer_id, **wanted, now=services.clock.now()
            )
        except (InvalidInputError, AlreadyExistsError) as error:
            return await self._teams(request, "", fields, error)
        return services.go(f"teams/{team_id}", "founded")

    @get("/teams/{id}", "team")
    async def team(self, request: web.Request) -> RenderedPage:
        return await self._team(request, None)

    @post("/teams/{id}", "team_post")
    async def change(self, request: web.Request) -> RenderedPage | web.Response:
        """Change a team's name, page and description."""
        team_id = TeamId(id_of(request, LARGEST_INT))
        try:
            wanted = team_of(await fields_of(request))
            await self._services.store.participation.change_team(team_id, _who(request), **wanted)
        except (InvalidInputError, AlreadyExistsError) as error:
            return await self._team(request, error)
        return self._services.go(f"teams/{team_id}", "team")

    @post("/teams/{id}/join", "team_join")
    async def join(self, request: web.Request) -> web.Response:
        team_id, now = TeamId(id_of(request, LARGEST_INT)), self._services.clock.now()
        await self._services.store.participation.join_team(_who(request), team_id, now=now)
        return self._services.go(f"teams/{team_id}", "member")

    @post("/teams/{id}/leave", "team_leave")
    async def leave(self, request: web.Request) -> web.Response:
        now = self._services.clock.now()
        await self._services.store.participation.join_team(_who(request), None, now=now)
        return self._services.go("teams", "left")

    @post("/teams/{id}/founder", "team_founder")
    async def hand_over(self, request: web.Request) -> web.Response:
        """Make another member the founder."""
        team_id = TeamId(id_of(request, LARGEST_INT))
        member_id = whole_number((await fields_of(request)).get("member", ""), "member", 1, LARGEST_INT)
        await self._services.store.participation.name_founder(team_id, _who(request), VolunteerId(member_id))
        return self._services.go(f"teams/{team_id}", "team")

    @post("/teams/{id}/delete", "team_delete")
    async def delete(self, request: web.Request) -> web.Response:
        await self._services.store.participation.drop_team(TeamId(id_of(request, LARGEST_INT)), _who(request))
        return self._services.go("teams", "dissolved")

    async def _teams(self, request: web.Request, text: str, fields: Fields, wrong: MusterError | None) -> RenderedPage:
        participation, now = self._services.store.participation, self._services.clock.now()
        own = await participation.participation(_who(request))
        values: dict[str, object] = {
            "teams": await participation.teams(text, now=now, limit=SHOWN),
            "own": None if own.team_id is None else await participation.team(own.team_id),
            "text": text,
            "fields": fields,
            "wrong": _told(wrong),
        }
        return RenderedPage("teams.html", "Teams", "teams", values=values, status=status_of(wrong))

    async def _team(self, request: web.Request, wrong: MusterError | None) -> RenderedPage:
        participation, volunteer_id = self._services.store.participation, _who(request)
        team: Team = await participation.team(TeamId(id_of(request, LARGEST_INT)))
        own = await participation.participation(volunteer_id)
        members = await participation.members(team.team_id, limit=SHOWN)
        is_member = own.team_id == team.team_id
        values: dict[str, object] = {
            "team": team,
            "members": [one for one in members if one.exported or is_member],
            "is_member": is_member,
            "is_founder": team.founder_id == volunteer_id,
            "wrong": _told(wrong),
        }
        crumbs = (Crumb("teams", "Teams"),)
        return RenderedPage("team.html", team.name, "teams", crumbs, values, status=status_of(wrong))


def _who(request: web.Request) -> VolunteerId:
    return the_volunteer(request).volunteer.volunteer_id


def _told(wrong: MusterError | None) -> str | None:
    return "A team with this name exists." if isinstance(wrong, AlreadyExistsError) else told(wrong)
