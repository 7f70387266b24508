"""Says who asks: what handlers know of the caller, how they refuse, and the reasons for a refusal."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from aiohttp import web

from domain.access import PersonRecord, Right, Role, Session
from domain.errors import MusterError
from domain.formatting import in_words
from domain.units import PersonId, Seconds, SubmitterId
from domain.volunteers import VolunteerRecord


class NotSignedInError(MusterError):
    """Nobody is signed in: sign in, or send a token as `Authorization: Bearer …`."""


class WrongPasswordError(MusterError):
    """Name and password do not belong together."""


class TooManyAttemptsError(MusterError):
    """Signing in, or something else that is limited, was tried too often."""

    def __init__(self, wait_s: Seconds, what: str = "signing in was tried") -> None:
        self.wait_s = wait_s
        super().__init__(f"{what} too often: try again in {in_words(max(1, round(wait_s)))}")


class NotAllowedError(MusterError):
    """That is for others to do."""


class RoleNeededError(NotAllowedError):
    """Only people with a certain role may do that."""

    def __init__(self, role: Role, name: str) -> None:
        self.role = role
        article = "an" if role is Role.OPERATOR else "a"
        super().__init__(f"only {article} {role.value} or what stands above may do that, and {name} may not")


class PasswordToChangeError(NotAllowedError):
    """The password was given by another: choose one of your own first."""


class ForgedError(NotAllowedError):
    """The form does not belong to this session: load the page again and send it from there."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks, and what this request may do: a token may do less than the person whose it is.

    `person_id` is None for the holder of the project's own token. `submitter_id` says whose batches are the
    person's own.
    """

    name: str
    role: Role
    rights: frozenset[Right]
    person_id: PersonId | None = None
    submitter_id: SubmitterId | None = None
    must_change_password: bool = False
    session: Session | None = None  # None: a token was sent

    def may(self, role: Role) -> bool:
        """Whether the request may do what people of that role do."""
        return role.right in self.rights

    def owns(self, submitter_id: SubmitterId) -> bool:
        """Whether batches of that submitter are the person's own, or all are."""
        return self.may(Role.OPERATOR) or (self.submitter_id is not None and self.submitter_id == submitter_id)


def person_with(
    record: PersonRecord, *, session: Session | None = None, rights: frozenset[Right] | None = None
) -> Person:
    """The person; of a token, with those of the `rights` it has that the person has too."""
    allowed = record.role.rights if rights is None else record.role.rights & rights
    return Person(
        record.name,
        record.role,
        allowed,
        record.person_id,
        record.submitter_id,
        must_change_password=record.one_time_until is not None,
        session=session,
    )


PERSON = web.RequestKey("person", Person)
VOLUNTEER = web.RequestKey("volunteer", VolunteerRecord)
FORGED = web.RequestKey("forged", bool)  # a session's cookie came with a form that is not of one of our pages
COOKIE_VALUE = web.RequestKey("cookie_value", str)


def person_of(request: web.Request) -> Person | None:
    """Who is signed in, or whose token was sent; None: nobody. Needs `AccessDoor.middleware`."""
    return request.get(PERSON)


def volunteer_of(request: web.Request) -> VolunteerRecord | None:
    """The volunteer who is signed in, or None. Needs `AccessDoor.volunteers`."""
    return request.get(VOLUNTEER)


def the_volunteer(request: web.Request) -> VolunteerRecord:
    """The volunteer who asks. Raises NotSignedInError, and ForgedError as `present`."""
    volunteer = volunteer_of(request)
    if volunteer is None:
        raise ForgedError if request.get(FORGED) else NotSignedInError
    return volunteer


def present(request: web.Request) -> Person:
    """Whoever asks. Raises NotSignedInError, and ForgedError where another site's page made the browser ask."""
    person = person_of(request)
    if person is None:
        raise ForgedError if request.get(FORGED) else NotSignedInError
    return person


def admit(request: web.Request, role: Role) -> Person:
    """The person who asks, who may do what people of that role do.

    Raises NotSignedInError, RoleNeededError, and PasswordToChangeError before the first password was changed.
    """
    person = present(request)
    if person.must_change_password:
        raise PasswordToChangeError
    if not person.may(role):
        raise RoleNeededError(role, person.name)
    return person


def admit_owner(request: web.Request, submitter_id: SubmitterId) -> Person:
    """The person who asks, who may change the batches of that submitter. Raises as `admit`, and NotAllowedError."""
    person = admit(request, Role.SUBMITTER)
    if not person.owns(submitter_id):
        raise NotAllowedError(f"that is another submitter's, and {person.name} is no operator")
    return person


def csrf_of(request: web.Request) -> str:
    """What every form that changes something sends back in its field `csrf` (a script: in `X-CSRF-Token`).

    It belongs to the session: another site cannot know it. Without a session it is empty.
    """
    value = request.get(COOKIE_VALUE)
    return csrf_of_cookie(value) if value else ""


def csrf_of_cookie(value: str) -> str:
    """What belongs to the session of a cookie."""
    return hmac.new(value.encode(), b"form", hashlib.sha256).hexdigest()
