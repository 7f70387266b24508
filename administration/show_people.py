"""Who signs in, volunteers, tokens and the audit trail as JSON, the same in the API and on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from administration.access.people import Invited, NewToken
from administration.access.ports import SignInPeople
from domain.access import Act, PersonRecord, Token
from domain.apps import App
from domain.units import PersonId
from domain.volunteers import VolunteerRecord

MOST = 10_000
Names = Mapping[PersonId, str]


async def names_of(people: SignInPeople) -> Names:
    """Who signs in, by id."""
    return {one.person_id: one.name for one in await people.people(limit=MOST)}


def person_as_json(person: PersonRecord) -> dict[str, object]:
    return {
        "name": person.name,
        "role": person.role.value,
        "submitter_id": person.submitter_id,
        "active": person.active,
        "created_at": person.created_at,
        "one_time_until": person.one_time_until,
    }


def invited_as_json(invited: Invited) -> dict[str, object]:
    """Somebody with the one-time password, which is shown only now."""
    return {"person": person_as_json(invited.person), "password": invited.password, "until": invited.until}


def token_as_json(token: Token, person: str) -> dict[str, object]:
    """A token of `person`, without the token itself."""
    return {
        "token_id": token.token_id,
        "name": token.name,
        "person_id": token.person_id,
        "person": person,
        "scopes": sorted(token.rights),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }


def new_token_as_json(made: NewToken, person: str) -> dict[str, object]:
    """A token of `person`, which is shown only now."""
    return {"value": made.value, "token": token_as_json(made.token, person), "waits_because": made.waits_because}


def act_as_json(act: Act) -> dict[str, object]:
    return {
        "acted_at": act.acted_at,
        "who": act.who,
        "what": act.what,
        "target": act.target,
        "detail": dict(act.detail),
        "address": act.address,
    }


def volunteer_as_json(record: VolunteerRecord, apps: Iterable[App]) -> dict[str, object]:
    """A volunteer without anything secret. `apps`, all there are, are told by name where there is a choice of them."""
    volunteer = record.volunteer
    return {
        "volunteer_id": volunteer.volunteer_id,
        "email": record.email,
        "name": volunteer.name,
        "created_at": volunteer.created_at,
        "beta": volunteer.beta,
        "no_cpu": volunteer.no_cpu,
        "no_gpu": volunteer.no_gpu,
        "max_jobs": volunteer.max_jobs,
        "max_cpus": volunteer.max_cpus,
        "apps": sorted(app.name for app in apps if app.app_id in volunteer.apps),
    }
