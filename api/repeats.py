"""A submission that is sent again, because the answer was lost: known by its Idempotency-Key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec
from aiohttp import web

from administration.access.who import Person
from api.reading import check_text
from domain.errors import InvalidInputError
from domain.submission import SubmissionKey

MOST_CHARS = 200


def submission_key(request: web.Request, person: Person, values: Mapping[str, object]) -> SubmissionKey | None:
    """The key of a submission, None without one. Raises InvalidInputError.

    Keys of different people are different. Bodies are the same when they say the same, however they are written.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 1 <= len(key) <= MOST_CHARS or not key.isprintable():
        raise InvalidInputError("Idempotency-Key", f"1 to {MOST_CHARS} printable characters", key)
    check_text(key, "Idempotency-Key")
    said = hashlib.sha256(msgspec.json.encode(values, order="sorted")).digest()
    return SubmissionKey(person.name, key, said)
