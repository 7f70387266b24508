"""Mutates real messages with knowledge of the grammar, as a hostile client might. Pure.

Every mutation takes the bytes, a seeded Random and the other messages of the corpus.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence

Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes]

MOST_BYTES = 64 * 1024
NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"NaN",
    b"-inf",
    b"1e308",
    b"-1e308",
    b"1e999",
    b"5e-324",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"4294967296",
    b"2147483648",
    b"0x10",
    b"1_000",
    b"1,5",
    b"+7",
    b" 7 ",
    b"007",
    b"1e",
    b"\xd9\xa3",
    b"9" * 400,
    b"0." + b"0" * 300 + b"1",
)
TEXTS = (
    b"",
    b" ",
    b"\x00",
    b"..",
    b"../../etc/passwd",
    b"/etc/passwd",
    b"..%2f..%2f",
    b"a\\..\\b",
    b"&lol;",
    b"&#0;",
    b"&#x110000;",
    b"&#55296;",
    b"&#" + b"9" * 50 + b";",
    b"&amp;" * 500,
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"<!DOCTYPE a [<!ENTITY b '" + b"b" * 50 + b"'>]>",
    b"<?xml version='1.0' encoding='UTF-16'?>",
    b"\xff\xfe<\x00",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xf4\x90\x80\x80",
    b"\xe2\x80\xae",
    "é".encode(),
    "\u0130\u0131\ufb03".encode(),
    b"'; DROP TABLE host; --",
    b"%s%n{0}",
    b"\r\n\r\nGET / HTTP/1.1\r\n",
    b"A" * 256,
    b"A" * 5000,
    b"pi_1_1_1_r0",
    b"pi_" + b"9" * 30 + b"_1",
)
JSON_VALUES: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**62 + 1,
    2**63,
    -(2**63) - 1,
    10**400,
    0.5,
    -0.0,
    1e308,
    5e-324,
    float("inf"),
    float("nan"),
    "",
    "\x00",
    "\ud800",
    "a" * 300,
    "../../etc/passwd",
    "\u202e",
    "1",
    "NaN",
    "muster",
    [],
    {},
    [[]],
    {"": None},
)

_ELEMENT = re.compile(rb"<(\w{1,60})>([^<]{0,4000})</\1>")
_TAG = re.compile(rb"</?\w{1,60}>")
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")


def mutate(raw: bytes, draw: random.Random, corpus: Sequence[bytes], *, most: int = MOST_BYTES) -> bytes:
    """Make one to four changes of random kinds."""
    kinds = JSON_KINDS if b"{" in raw[:2000] and b"<" not in raw[:1] else XML_KINDS
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        raw = draw.choice(kinds)(raw, draw, corpus)[:most]
    return raw


# ------------------------------------------------------------------ of any bytes


def flip(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Change a byte."""
    if not raw:
        return bytes((draw.randrange(256),))
    at = draw.randrange(len(raw))
    return raw[:at] + bytes((draw.randrange(256),)) + raw[at + 1 :]


def cut(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Cut off the end."""
    return raw[: draw.randrange(len(raw) + 1)]


def insert(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Insert a hostile text or number."""
    at = draw.randrange(len(raw) + 1)
    return raw[:at] + draw.choice(draw.choice((NUMBERS, TEXTS))) + raw[at:]


def repeat(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Repeat a piece many times."""
    start = draw.randrange(len(raw) + 1)
    piece = raw[start : start + draw.choice((1, 10, 100, 1000))]
    return raw[:start] + piece * draw.choice((2, 10, 100)) + raw[start:]


def splice(raw: bytes, draw: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Continue with another message."""
    other = draw.choice(corpus) if corpus else raw
    return raw[: draw.randrange(len(raw) + 1)] + other[draw.randrange(len(other) + 1) :]


# ------------------------------------------------------------------ of elements


def other_value(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Replace an element's value."""
    found = _ELEMENT.findall(raw)
    if not found:
        return raw
    tag, value = draw.choice(found)
    table = NUMBERS if _NUMBER.fullmatch(value) and draw.random() < 0.7 else TEXTS
    old = b"<" + tag + b">" + value + b"</" + tag + b">"
    return raw.replace(old, b"<" + tag + b">" + draw.choice(table) + b"</" + tag + b">", draw.choice((1, -1)))


def without_element(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Remove an element, or its tags."""
    found = list(_ELEMENT.finditer(raw))
    if not found:
        return raw
    match = draw.choice(found)
    return raw[: match.start()] + draw.choice((b"", match[2])) + raw[match.end() :]


def many_elements(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Repeat an element many times, possibly nested."""
    found = list(_ELEMENT.finditer(raw))
    if not found:
        return raw
    match, times = draw.choice(found), draw.choice((2, 20, 500))
    tag = match[1]
    inside = (
        match[0] * times
        if draw.random() < 0.5
        else b"<" + tag + b">" + (b"<" + tag + b">") * times + match[2] + (b"</" + tag + b">") * times
    )
    return raw[: match.start()] + inside + raw[match.end() :]


def other_tag(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Replace a tag by another one of the message, or remove it."""
    found = list(_TAG.finditer(raw))
    if not found:
        return raw
    match, other = draw.choice(found), draw.choice(found)
    return raw[: match.start()] + draw.choice((b"", other[0], match[0].upper(), b"<", b"</")) + raw[match.end() :]


def exchange(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Exchange two pieces between tags."""
    found = list(_TAG.finditer(raw))
    if len(found) < 4:
        return raw
    a, b, c, d = sorted(draw.sample(range(len(found)), 4))
    first, second = (found[a].start(), found[b].end()), (found[c].start(), found[d].end())
    return (
        raw[: first[0]]
        + raw[second[0] : second[1]]
        + raw[first[1] : second[0]]
        + raw[first[0] : first[1]]
        + raw[second[1] :]
    )


# ------------------------------------------------------------------ of JSON and addresses


def other_number(raw: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Replace a number."""
    found = list(_NUMBER.finditer(raw))
    if not found:
        return raw
    match = draw.choice(found)
    return raw[: match.start()] + draw.choice(NUMBERS) + raw[match.end() :]


def other_json(raw: bytes, draw: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Replace one value of a JSON document, nested or not."""
    head, newline, body = raw.partition(b"\n")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return insert(raw, draw, corpus)
    value: object = draw.choice(JSON_VALUES)
    for _ in range(draw.choice((0, 0, 0, 1, 50))):
        value = [value] if draw.random() < 0.5 else {"jobs": value}
    return head + newline + json.dumps(_with(document, value, draw)).encode("utf-8", "replace")


def _with(document: object, value: object, draw: random.Random) -> object:
    """Return the document with `value` at a random position."""
    if isinstance(document, dict) and document and draw.random() < 0.85:
        key = draw.choice(sorted(document))
        kind = draw.random()
        if kind < 0.1:
            return {name: one for name, one in document.items() if name != key}
        if kind < 0.2:
            return {**document, draw.choice(("", "\x00", "unknown", key + key)): value}
        return {**document, key: _with(document[key], value, draw)}
    if isinstance(document, list) and document and draw.random() < 0.85:
        at = draw.randrange(len(document))
        return [*document[:at], _with(document[at], value, draw), *document[at + 1 :]]
    return value


_ANY: tuple[Mutation, ...] = (flip, cut, insert, repeat, splice)
XML_KINDS: tuple[Mutation, ...] = (
    *_ANY,
    *(other_value, other_value, other_value, without_element, many_elements, other_tag, exchange, other_number),
)
JSON_KINDS: tuple[Mutation, ...] = (*_ANY, other_json, other_json, other_json, other_json, other_number)
