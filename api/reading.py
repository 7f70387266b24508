"""Parses a request's path, query, body and idempotency key. Errors name the field.

A client that did not receive the reply to a submission repeats it with the same Idempotency-Key.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
import msgspec.inspect
from aiohttp import web

from administration.access.who import Person
from api.table import File, Route
from domain.errors import InvalidInputError
from domain.submission import SubmissionKey

MAX_BODY_BYTES = 256 * 1024 * 1024  # enough for a batch of a million different jobs

T = TypeVar("T")
_NAMED = re.compile(r"Object (?P<kind>missing required|contains unknown) field `(?P<field>.*)`", re.DOTALL)
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_KIND = re.compile(rf"\b({'|'.join(_WORDS)})\b")
_WANTED = re.compile(r"Expected (?P<expected>.*?)(?:, got (?P<got>.*))?", re.DOTALL)


def read_params(request: web.Request, route: Route[Any, Any]) -> Any:
    """Parse path and query into the route's parameter type. Raises InvalidInputError naming the field."""
    found: dict[str, str] = dict(request.query)
    for name in found:
        if len(values := request.query.getall(name)) > 1:
            raise InvalidInputError(name, "one value", ", ".join(values))
    for name in route.in_path:
        if name in found:
            raise InvalidInputError(name, "a value only in the path", found[name])
    given = {**found, **request.match_info}
    for name, text in given.items():
        check_text(text, name)
    if route.open_params:
        given = {name: text for name, text in given.items() if name in route.params.__struct_fields__}
    try:
        return msgspec.convert(given, route.params, strict=False)
    except msgspec.ValidationError as error:
        raise _in_words(invalid_field(str(error), given), route.params) from None


def _in_words(error: InvalidInputError, params: Any) -> InvalidInputError:
    """Return the error with a plain description of the expected number, boolean or word."""
    match _unwrapped(_kinds_of(params).get(error.field)):
        case msgspec.inspect.IntType(ge=int(low), le=int(high)):
            return InvalidInputError(error.field, f"a whole number from {low} to {high}", error.got)
        case msgspec.inspect.BoolType():
            return InvalidInputError(error.field, "true or false", error.got)
        case msgspec.inspect.EnumType(cls=words):
            return InvalidInputError(error.field, f"one of {', '.join(one.value for one in words)}", error.got)
        case msgspec.inspect.LiteralType(values=words):
            return InvalidInputError(error.field, f"one of {', '.join(map(str, words))}", error.got)
        case _:
            return error


def _unwrapped(kind: msgspec.inspect.Type | None) -> msgspec.inspect.Type | None:
    """Return a parameter's type without its description and without None."""
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            return _unwrapped(inner)
        case msgspec.inspect.UnionType(types=(inner, *_)):
            return _unwrapped(inner)
        case _:
            return kind


@cache
def _kinds_of(params: Any) -> Mapping[str, msgspec.inspect.Type]:
    struct = msgspec.inspect.type_info(params)
    assert isinstance(struct, msgspec.inspect.StructType)
    return {one.name: one.type for one in struct.fields}


async def read_body(request: web.Request, route: Route[Any, Any]) -> Any:
    """Parse the JSON body; None if the route has no body. Raises InvalidInputError naming the field."""
    if route.body is None or isinstance(route.body, File):
        return None
    return decoded(await _whole(request, route.most_bytes), route.body)


async def _whole(request: web.Request, most: int) -> bytes:
    """Return the body. Raises HTTPRequestEntityTooLarge above `most` bytes, early if Content-Length is larger."""
    nbytes, body = request.content_length or 0, bytearray()
    if nbytes <= most:
        async for piece in request.content.iter_any():
            body += piece
            if (nbytes := len(body)) > most:
                break
        else:
            return bytes(body)
    raise web.HTTPRequestEntityTooLarge(max_size=most, actual_size=nbytes)


def decoded(raw: bytes, kind: type[T]) -> T:
    """Decode JSON as `kind`. Raises InvalidInputError naming the field."""
    try:
        if b"\\u0000" in raw and (found := _nul_in(msgspec.json.decode(raw), "")) is not None:
            check_text(found[1], found[0] or "body")
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise invalid_field(str(error)) from None
    except RecursionError:
        raise InvalidInputError("body", "JSON nested at most a few hundred levels deep", "more") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError("body", "JSON", str(error)) from None


def check_text(text: str, field: str) -> None:
    """Raise InvalidInputError for text that PostgreSQL cannot store.

    >>> check_text("a\\x00", "name")
    Traceback (most recent call last):
    domain.errors.InvalidInputError: name: expected text without U+0000 and without unpaired surrogates, got 'a\\x00'
    """
    if "\x00" in text or any("\ud800" <= one <= "\udfff" for one in text):
        raise InvalidInputError(field, "text without U+0000 and without unpaired surrogates", text)


def invalid_field(text: str, given: Mapping[str, object] | None = None) -> InvalidInputError:
    """Translate a msgspec error; `given` are the received values, if available.

    >>> str(invalid_field("Expected `float`, got `str` - at `$.shares`"))
    "shares: expected a number, got 'str'"
    >>> str(invalid_field("Object missing required field `name`"))
    "name: expected a value, got 'nothing'"
    >>> str(invalid_field("Expected `int` >= 1 - at `$.limit`", {"limit": "0"}))
    "limit: expected a whole number >= 1, got '0'"
    """
    what, _, where = text.partition(" - at `$")
    where = where.strip(".`")
    if named := _NAMED.fullmatch(what):
        field = f"{where}.{named['field']}".lstrip(".")
        if named["kind"] == "missing required":
            return InvalidInputError(field, "a value", "nothing")
        return InvalidInputError(field, "a known field", named["field"])
    came = None if given is None else given.get(where)
    if wanted := _WANTED.fullmatch(what.replace("`", "")):
        expected = _KIND.sub(lambda kind: _WORDS[kind[0]], wanted["expected"].replace(" | null", ""))
        return InvalidInputError(where or "body", expected, came or wanted["got"] or "something else")
    return InvalidInputError(where or "body", "a valid value", came or what)


def _nul_in(value: object, where: str) -> tuple[str, str] | None:
    """Return the first field whose text contains U+0000, with the text.

    >>> _nul_in({"jobs": [{"name": "a\\x00"}]}, "")
    ('jobs[0].name', 'a\\x00')
    """
    if isinstance(value, str):
        return (where, value) if "\x00" in value else None
    named: Iterable[tuple[str, object]] = ()
    if isinstance(value, dict):
        named = ((f"{where}.{key}".lstrip("."), one) for key, one in value.items())
    elif isinstance(value, list):
        named = ((f"{where}[{number}]", one) for number, one in enumerate(value))
    for name, one in named:
        if "\x00" in name:
            return (where, name)
        if found := _nul_in(one, name):
            return found
    return None


MOST_CHARS = 200


def submission_key(request: web.Request, person: Person, values: Mapping[str, object]) -> SubmissionKey | None:
    """Return the submission key of a request, or None. Raises InvalidInputError.

    Keys are per user. Bodies with equal values count as equal, regardless of formatting and key order.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 1 <= len(key) <= MOST_CHARS or not key.isprintable():
        raise InvalidInputError("Idempotency-Key", f"1 to {MOST_CHARS} printable characters", key)
    check_text(key, "Idempotency-Key")
    said = hashlib.sha256(msgspec.json.encode(values, order="sorted")).digest()
    return SubmissionKey(person.name, key, said)
