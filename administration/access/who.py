"""Identifies the caller of a request, and refuses requests without the required role."""

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
    """Not signed in: sign in, or send a token as `Authorization: Bearer …`."""


class WrongPasswordError(MusterError):
    """Wrong name or password."""


class TooManyAttemptsError(MusterError):
    """Too many attempts to sign in, or at another limited action."""

    def __init__(self, wait_s: Seconds, what: str = "sign-in was attempted") -> None:
        self.wait_s = wait_s
        super().__init__(f"{what} too often: try again in {in_words(max(1, round(wait_s)))}")


class NotAllowedError(MusterError):
    """Not permitted for this user."""


class RoleNeededError(NotAllowedError):
    """The action requires a role."""

    def __init__(self, role: Role, name: str) -> None:
        self.role = role
        super().__init__(f"this requires the role {role.value} or higher; {name} does not have it")


class PasswordToChangeError(NotAllowedError):
    """The password is a one-time password: choose your own first."""


class ForgedError(NotAllowedError):
    """The form does not belong to this sign-in: reload the page and send it again."""


@dataclass(frozen=True, slots=True)
class Person:
    """The caller of a request and its rights: a token may have fewer rights than its owner.

    `person_id` is None for the project's own token. `submitter_id` is the submitter whose batches the person owns.
    """

    name: str
    role: Role
    rights: frozenset[Right]
    person_id: PersonId | None = None
    submitter_id: SubmitterId | None = None
    must_change_password: bool = False
    session: Session | None = None  # None: a token was sent

    def may(self, role: Role) -> bool:
        """Return whether the request has the rights of that role."""
        return role.right in self.rights

    def owns(self, submitter_id: SubmitterId) -> bool:
        """Return whether the person may manage batches of that submitter."""
        return self.may(Role.OPERATOR) or (self.submitter_id is not None and self.submitter_id == submitter_id)


def person_with(
    record: PersonRecord, *, session: Session | None = None, rights: frozenset[Right] | None = None
) -> Person:
    """Return the person; with a token, limited to the `rights` that both have."""
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
FORGED = web.RequestKey("forged", bool)  # a session's cookie came with a form from elsewhere
COOKIE_VALUE = web.RequestKey("cookie_value", str)


def person_of(request: web.Request) -> Person | None:
    """Return the signed-in person or the token's owner, or None. Needs `Authenticator.middleware`."""
    return request.get(PERSON)


def volunteer_of(request: web.Request) -> VolunteerRecord | None:
    """Return the signed-in volunteer, or None. Needs `Authenticator.volunteers`."""
    return request.get(VOLUNTEER)


def the_volunteer(request: web.Request) -> VolunteerRecord:
    """Return the signed-in volunteer. Raises NotSignedInError, and ForgedError like `present`."""
    volunteer = volunteer_of(request)
    if volunteer is None:
        raise ForgedError if request.get(FORGED) else NotSignedInError
    return volunteer


def present(request: web.Request) -> Person:
    """Return the caller. Raises NotSignedInError, and ForgedError if another site's page sent the request."""
    person = person_of(request)
    if person is None:
        raise ForgedError if request.get(FORGED) else NotSignedInError
    return person


def admit(request: web.Request, role: Role) -> Person:
    """Return the caller. Raises NotSignedInError, PasswordToChangeError (one-time password), RoleNeededError."""
    person = present(request)
    if person.must_change_password:
        raise PasswordToChangeError
    if not person.may(role):
        raise RoleNeededError(role, person.name)
    return person


def admit_owner(request: web.Request, submitter_id: SubmitterId) -> Person:
    """Return the caller if it may change that submitter's batches. Raises the errors of `admit`, NotAllowedError."""
    person = admit(request, Role.SUBMITTER)
    if not person.owns(submitter_id):
        raise NotAllowedError(f"it belongs to another submitter, and {person.name} is not an operator")
    return person


def csrf_of(request: web.Request) -> str:
    """Return the `csrf` value that every changing form sends back (scripts: in `X-CSRF-Token`).

    It is derived from the session, so other sites do not know it. Empty without a session.
    """
    value = request.get(COOKIE_VALUE)
    return csrf_of_cookie(value) if value else ""


def csrf_of_cookie(value: str) -> str:
    """Return the CSRF value of a session cookie."""
    return hmac.new(value.encode(), b"form", hashlib.sha256).hexdigest()
