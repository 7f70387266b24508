"""Who signs in, volunteers, tokens and the audit trail as JSON, the same in the API and on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from administration.access.people import NewToken
from administration.access.ports import SignInPeople
from administration.show import shown
from domain.access import Act, Token
from domain.apps import App
from domain.units import PersonId
from domain.volunteers import VolunteerRecord
from muster_client import shapes

MOST = 10_000
Names = Mapping[PersonId, str]


async def names_of(people: SignInPeople) -> Names:
    """Who signs in, by id."""
    return {one.person_id: one.name for one in await people.people(limit=MOST)}


def token_as_json(token: Token, person: str) -> shapes.TokenShown:
    """A token of `person`, without the token itself."""
    return shown(shapes.TokenShown, token, person=person, scopes=sorted(token.rights))


def new_token_as_json(made: NewToken, person: str) -> shapes.NewTokenShown:
    """A token of `person`, which is shown only now."""
    return {"value": made.value, "token": token_as_json(made.token, person), "waits_because": made.waits_because}


def act_as_json(act: Act) -> shapes.ActShown:
    return shown(shapes.ActShown, act, detail=dict(act.detail))


def volunteer_as_json(record: VolunteerRecord, apps: Iterable[App]) -> shapes.VolunteerShown:
    """A volunteer without anything secret. `apps`, all there are, are told by name where there is a choice of them."""
    chosen = sorted(app.name for app in apps if app.app_id in record.volunteer.apps)
    return shown(shapes.VolunteerShown, record.volunteer, email=record.email, apps=chosen)
