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
        enough = " or ".join(one.value for one in Role if role.rights <= one.rights)
        super().__init__(f"this requires the role {enough}; {name} does not have it")


class PasswordToChangeError(NotAllowedError):
    """The password is a one-time password: choose your own first."""


class ForgedError(NotAllowedError):
    """The form does not belong to this sign-in: reload the page and send it again."""


@dataclass(frozen=True, slots=True)
class Person:
    """The caller of a request, with the caller's rights: a token may have fewer rights than its owner.

    `person_id` is None for the project's own token. The user owns the batches of submitter `submitter_id`.
    """

    name: str
    role: Role
    rights: frozenset[Right]
    person_id: PersonId | None = None
    submitter_id: SubmitterId | None = None
    must_change_password: bool = False
    session: Session | None = None  # None: authenticated by token

    def may(self, role: Role) -> bool:
        """Return whether the request has the rights of `role`."""
        return role.right in self.rights

    def owns(self, submitter_id: SubmitterId) -> bool:
        """Return whether the caller may manage that submitter's batches."""
        return self.may(Role.OPERATOR) or (self.submitter_id is not None and self.submitter_id == submitter_id)


def person_with(
    record: PersonRecord, *, session: Session | None = None, rights: frozenset[Right] | None = None
) -> Person:
    """Return the caller for a user; with a token, limited to the `rights` that both have."""
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
FORGED = web.RequestKey("forged", bool)  # a session cookie was sent with a form from another site
COOKIE_VALUE = web.RequestKey("cookie_value", str)


def person_of(request: web.Request) -> Person | None:
    """Return the signed-in user or the token's owner, or None. Requires `Authenticator.middleware`."""
    return request.get(PERSON)


def volunteer_of(request: web.Request) -> VolunteerRecord | None:
    """Return the signed-in volunteer, or None. Requires `Authenticator.volunteers`."""
    return request.get(VOLUNTEER)


def the_volunteer(request: web.Request) -> VolunteerRecord:
    """Return the signed-in volunteer. Raises NotSignedInError, or ForgedError under the same condition as `present`."""
    volunteer = volunteer_of(request)
    if volunteer is None:
        raise ForgedError if request.get(FORGED) else NotSignedInError
    return volunteer


def present(request: web.Request) -> Person:
    """Return the caller. Raises NotSignedInError, or ForgedError if another site's page sent the request."""
    person = person_of(request)
    if person is None:
        raise ForgedError if request.get(FORGED) else NotSignedInError
    return person


def admit(request: web.Request, role: Role) -> Person:
    """Return the caller. Raises NotSignedInError, PasswordToChangeError (one-time password) or RoleNeededError."""
    person = present(request)
    if person.must_change_password:
        raise PasswordToChangeError
    if not person.may(role):
        raise RoleNeededError(role, person.name)
    return person


def is_operator(request: web.Request) -> bool:
    """Return whether the caller may act as an operator."""
    person = person_of(request)
    return person is not None and person.may(Role.OPERATOR)


def admit_owner(request: web.Request, submitter_id: SubmitterId) -> Person:
    """Return the caller if allowed to change that submitter's batches. Raises NotAllowedError, or as `admit` does."""
    person = admit(request, Role.SUBMITTER)
    if not person.owns(submitter_id):
        raise NotAllowedError(f"it belongs to another submitter, and {person.name} is not an operator")
    return person


def csrf_of(request: web.Request) -> str:
    """Return the `csrf` value that all changing forms must send (scripts: in `X-CSRF-Token`); empty without a session.

    It is derived from the session, so other sites do not know it.
    """
    value = request.get(COOKIE_VALUE)
    return csrf_of_cookie(value) if value else ""


def csrf_of_cookie(value: str) -> str:
    """Return the CSRF value derived from a session cookie."""
    return hmac.new(value.encode(), b"form", hashlib.sha256).hexdigest()
