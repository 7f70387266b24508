"""What callers of the API send, and how it is read."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

import msgspec
from aiohttp import web

from domain.errors import InvalidInputError
from domain.units import BatchId, JobId

MAX_BODY_BYTES = 256 * 1024 * 1024  # a batch of a million unlike jobs

T = TypeVar("T")
_NAMED = re.compile(r"Object (?P<kind>missing required|contains unknown) field `(?P<field>.*)`", re.DOTALL)
_WANTED = re.compile(r"Expected (?P<expected>.*?)(?:, got (?P<got>.*))?", re.DOTALL)


class NewAccountBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    parent: str | None = None
    shares: float = 1.0


class NewSubmitterBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    account: str = "default"
    shares: float = 1.0


class NewVolunteerBody(msgspec.Struct, forbid_unknown_fields=True):
    email: str
    name: str = ""
    password: str | None = None


class NewAppBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    user_friendly_name: str = ""
    beta: bool = False
    adaptive_copies: Annotated[int, msgspec.Meta(ge=0, le=10)] = 0


class SettingBody(msgspec.Struct, forbid_unknown_fields=True):
    value: object
    why: str = ""


class ThresholdsBody(msgspec.Struct, forbid_unknown_fields=True):
    values: dict[str, object]
    why: str
    by: str = "api"


async def read_body(request: web.Request, kind: type[T]) -> T:
    """The JSON body as `kind`. Raises InvalidInputError naming the field."""
    raw = await request.read()
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise invalid_field(str(error)) from None
    except msgspec.DecodeError as error:
        raise InvalidInputError("body", "JSON", str(error)) from None


def invalid_field(text: str) -> InvalidInputError:
    """What msgspec says of a JSON document, in the project's words.

    >>> str(invalid_field("Expected `float`, got `str` - at `$.shares`"))
    "shares: expected float, got 'str'"
    >>> str(invalid_field("Object missing required field `name`"))
    "name: expected a value, got 'nothing'"
    """
    what, _, where = text.partition(" - at `$")
    where = where.strip(".`")
    if named := _NAMED.fullmatch(what):
        field = f"{where}.{named['field']}".lstrip(".")
        if named["kind"] == "missing required":
            return InvalidInputError(field, "a value", "nothing")
        return InvalidInputError(field, "no field of that name", named["field"])
    if wanted := _WANTED.fullmatch(what.replace("`", "")):
        return InvalidInputError(where or "body", wanted["expected"], wanted["got"] or "something else")
    return InvalidInputError(where or "body", "a valid value", what)


def limit_of(request: web.Request, *, default: int = 100, most: int = 1000) -> int:
    """The `limit` of a listing. Raises InvalidInputError."""
    return whole_number(request.query.get("limit", str(default)), "limit", 1, most)


def flag_of(request: web.Request, name: str) -> bool:
    """Whether `name` in the address says true; it is false when it is not there. Raises InvalidInputError."""
    text = request.query.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidInputError(name, "true or false", text)
    return text == "true"


def whole_number(text: str, field: str, low: int, high: int) -> int:
    """A whole number in a range. Raises InvalidInputError.

    >>> whole_number("7", "limit", 1, 10)
    7
    """
    if text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high:
        return int(text)
    raise InvalidInputError(field, f"a whole number from {low} to {high}", text)


def batch_id_of(request: web.Request) -> BatchId:
    return BatchId(whole_number(request.match_info["batch_id"], "batch_id", 1, 2**62))


def job_id_of(request: web.Request) -> JobId:
    return JobId(whole_number(request.match_info["job_id"], "job_id", 1, 2**62))
