"""Problem details (RFC 9457), used for the API's replies and for `--json`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from administration.access.who import NotAllowedError, NotSignedInError, TooManyAttemptsError, WrongPasswordError
from domain.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    MusterError,
    NotFoundError,
    UnavailableError,
)

TYPES = "urn:muster:problem:"
GOT_CHARS = 200
BUSY_S = 5

PLAIN: tuple[tuple[type[MusterError], int, str], ...] = (  # the first match applies
    (NotSignedInError, 401, "not signed in"),
    (NotFoundError, 404, "not found"),
    (AlreadyExistsError, 409, "already exists"),
    (ConflictError, 409, "conflict"),
    (WrongPasswordError, 403, "wrong password"),
    (NotAllowedError, 403, "not allowed"),
    (MusterError, 400, "refused"),
)


class BusyError(MusterError):
    """Too many of these operations are running; retry in a few seconds."""


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Problem details (RFC 9457), with `field`, `expected` and `got` for invalid input."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    expected: str | None = None
    got: str | None = None
    retry_s: float | None = None


def problem(status: int, title: str, detail: str) -> Problem:
    """Return a problem whose type is derived from its title.

    >>> problem(404, "not found", "no batch 7").type
    'urn:muster:problem:not-found'
    """
    return Problem(type=TYPES + title.replace(" ", "-"), title=title, status=status, detail=detail)


def problem_of(error: MusterError) -> Problem:
    """Return the problem for one of the project's errors.

    >>> found = problem_of(InvalidInputError("limit", "a whole number", "x"))
    >>> found.status, found.field, found.got
    (422, 'limit', 'x')
    """
    match error:
        case InvalidInputError():
            made = problem(422, "invalid input", str(error))
            shown = error.got if isinstance(error.got, str) else repr(error.got)
            made.field, made.expected, made.got = error.field, error.expected, shown[:GOT_CHARS]
        case TooManyAttemptsError():
            made = problem(429, "too many attempts", str(error))
            made.retry_s = error.wait_s
        case BusyError() | UnavailableError():
            made = problem(503, "busy" if isinstance(error, BusyError) else "unavailable", str(error))
            made.retry_s = BUSY_S
        case _:
            status, title = next((status, title) for kind, status, title in PLAIN if isinstance(error, kind))
            made = problem(status, title, str(error))
    return made


def problem_from(status: int, document: Mapping[str, object]) -> Problem:
    """Parse a problem received from a server; missing members get defaults.

    >>> problem_from(502, {"title": "bad gateway"}).detail
    'bad gateway'
    """
    title = str(document.get("title") or "refused")
    made = problem(status, title, str(document.get("detail") or title))
    for name in ("field", "expected", "got"):
        if isinstance(said := document.get(name), str):
            setattr(made, name, said)
    return made
