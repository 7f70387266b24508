"""Finds elements in a request that may not be well-formed. Pure.

Each part of a request is described once, by the elements that the stock client writes, in its order. The description is
compiled to one pattern that reads the whole part. A part that differs (other order, unknown elements, escapes, unusual
numbers) is read element by element; both ways return the same values.

Every pattern is a sequence of literals and possessive repetitions, and every search passes over the bytes a bounded
number of times, so the time is linear in the length of any input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import assert_never

from wire import text
from wire.messages import ProtocolError

MAX_TEXT_CHARS = 4000  # of a description (CPU model, OS version); the rest is truncated
MAX_BLOCK_CHARS = 4000  # of a key
MAX_NAMES = 1000  # of one list of names


class Kind(StrEnum):
    """The kind of an element's content, which determines its valid forms."""

    WHOLE = "whole"  # an integer of at most 64 bits
    NUMBER = "number"  # a finite number
    NAME = "name"  # one line of at most 255 characters
    TEXT = "text"  # one line, truncated to MAX_TEXT_CHARS
    BLOCK = "block"  # several lines
    NAMES = "names"  # any number of these elements, each with a <name>; see `names_in`
    UNUSED = "unused"  # in the pattern, but not returned


_BLANK = rb"[^<]*+"  # only blanks occur between elements; this is the fastest way to skip them

# The plain forms: all matches are valid, so `float` and `int` cannot fail and text needs no cleaning.
_PLAIN_FORM = {
    Kind.WHOLE: rb"(-?+[0-9]{1,18}+)",
    Kind.NUMBER: rb"(-?+[0-9]{1,300}+(?:\.[0-9]{1,20}+)?+)",
    Kind.NAME: rb"([!-%'-;=-~]{1,255}+)",
    Kind.TEXT: rb"([ -%'-;=-~]{0,4000}+)",
    Kind.BLOCK: rb"([ -%'-;=-~\n]{0,4000}+)",
    Kind.NAMES: rb"[^<]*+<name>[^<]*+</name>[^<]*+",
    Kind.UNUSED: rb"[^<]*+",
}


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a part. `default` is its value if it is absent; None: the element is required.

    The stock client does not always write `optional` elements; they are found only in stock order, all other elements
    in any order.
    """

    tag: str
    kind: Kind = Kind.UNUSED
    default: bytes | None = b""
    optional: bool = False

    def pattern(self) -> bytes:
        tag = self.tag.encode()
        element = _BLANK + rb"<" + tag + rb">" + _PLAIN_FORM[self.kind] + rb"</" + tag + rb">"
        if self.kind is Kind.UNUSED:
            return rb"(?:" + element + rb")*+"
        if self.kind is Kind.NAMES:
            return rb"((?:" + element + rb")*+)"
        return rb"(?:" + element + rb")?+" if self.optional else element


class Tag:
    """The open and close tags of an element, as bytes."""

    __slots__ = ("close", "name", "open")

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = f"<{name}>".encode()
        self.close = f"</{name}>".encode()


class Part(Tag):
    """A part of a request: its name (for errors and as the enclosing tag) and its elements in stock order.

    `then` is a pattern that must follow for the fast path to be valid. It is needed if the last elements are optional,
    because an unknown element before them would hide them. With `begins_inside`, the part has other, undescribed
    elements before these. `until` ends the part if its close tag does not.
    """

    __slots__ = ("_begins_with", "_items", "_pattern", "_wanted")

    def __init__(
        self, name: str, *elements: Element, then: bytes = b"", begins_inside: bool = False, until: bytes = b""
    ) -> None:
        super().__init__(name)
        self.close = until or self.close
        self._begins_with = f"<{elements[0].tag}>".encode() if begins_inside else b""
        self._wanted = [(element, Tag(element.tag)) for element in elements if element.kind is not Kind.UNUSED]
        inside = b"".join(element.pattern() for element in elements)
        self._pattern = re.compile(inside + then)
        self._items = re.compile(self.open + inside + _BLANK + self.close)

    def read(self, body: bytes, start: int, end: int) -> tuple[bytes, ...]:
        """Return the values of the described elements between two positions, in the order of the description.

        Numbers are valid for `int` or `float`; text is clean UTF-8. Raises ProtocolError naming the wrong element.
        """
        match = self._pattern.match(body, start, end)
        return match.groups(b"") if match is not None else self._read_one_by_one(body, start, end)

    def read_next(self, body: bytes, start: int, end: int, at: int) -> tuple[tuple[bytes, ...], int]:
        """Find and read this part, searching from `at` on. Also return where to search for the next part.

        If there is no such part between `start` and `end`, all values are defaults.
        """
        opened = body.find(self.open, at, end)
        if opened < 0:
            opened = body.rfind(self.open, start, at)
        if opened < 0:
            return self._read_one_by_one(body, at, at), at
        opened += len(self.open)
        first = self._first_element(body, opened, end) if self._begins_with else opened
        match = self._pattern.match(body, first, end)
        if match is not None:
            return match.groups(b""), match.end()
        closed = body.find(self.close, opened, end)
        return self._read_one_by_one(body, opened, closed if closed >= 0 else end), opened

    def _first_element(self, body: bytes, opened: int, end: int) -> int:
        """Return where the described elements begin, or `opened` if that cannot be found."""
        closed = body.find(self.close, opened, end)
        return max(opened, body.find(self._begins_with, opened, closed if closed >= 0 else end))

    def read_all(self, body: bytes, start: int, end: int, *, at_most: int) -> list[tuple[bytes, ...]]:
        """Return the values of all elements of this name between two positions. Raises ProtocolError if more than
        `at_most`.
        """
        count = body.count(self.open, start, end)
        if count == 0:
            return []
        if count > at_most:
            raise ProtocolError(f"{self.name}: expected at most {at_most} elements, got {count}")
        plain: list[tuple[bytes, ...]] = self._items.findall(body, start, end)
        if len(plain) == count:
            return plain
        return [self._read_one_by_one(body, *span) for span in spans(body, self, start, end)]

    def _read_one_by_one(self, body: bytes, start: int, end: int) -> tuple[bytes, ...]:
        return tuple(
            _clean(_raw(body, element.kind, tag, start, end), element, self.name) for element, tag in self._wanted
        )


def value_of(body: bytes, open_tag: bytes, start: int, end: int) -> bytes | None:
    """Return the text between the first `open_tag` and the next tag, None if there is no such element."""
    at = body.find(open_tag, start, end)
    if at < 0:
        return None
    at += len(open_tag)
    stop = body.find(b"<", at, end)
    return body[at : stop if stop >= 0 else end]


def span_of(body: bytes, tag: Tag, start: int, end: int) -> tuple[int, int] | None:
    """Return the bounds of the content of the last element with a name, None if it is absent or not closed."""
    opened = body.rfind(tag.open, start, end)  # a backward search is the fastest way to find out that there is none
    if opened < 0:
        return None
    opened += len(tag.open)
    closed = body.find(tag.close, opened, end)
    return None if closed < 0 else (opened, closed)


def spans(body: bytes, tag: Tag, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the contents of all elements with one name; an unclosed element ends the search."""
    at = body.find(tag.open, start, end)
    while at >= 0:
        at += len(tag.open)
        closed = body.find(tag.close, at, end)
        if closed < 0:
            return
        yield at, closed
        at = body.find(tag.open, closed, end)


_NAME = Tag("name")


def names_in(raw: bytes, field: str, *, at_most: int) -> list[str]:
    """Return at most `at_most` of the names in a value of kind NAMES.

    >>> names_in(b"<alt><name>a</name></alt><alt><name>b</name></alt>", "alt", at_most=9)
    ['a', 'b']
    """
    found = islice(spans(raw, _NAME, 0, len(raw)), at_most)
    return [text.name(raw[start:end], field) for start, end in found]


def _raw(body: bytes, kind: Kind, tag: Tag, start: int, end: int) -> bytes | None:
    if kind is not Kind.NAMES:
        return value_of(body, tag.open, start, end)
    return b"".join(body[opened:closed] for opened, closed in islice(spans(body, tag, start, end), MAX_NAMES))


def _clean(raw: bytes | None, element: Element, part: str) -> bytes:
    """Return an element's value in the form guaranteed by `Part.read`."""
    if raw is None:
        if element.default is None:
            raise text.missing(element.tag, part)
        return element.default
    kind = element.kind
    if kind is Kind.WHOLE:
        return b"%d" % text.whole(raw, element.tag)
    if kind is Kind.NUMBER:
        text.number(raw, element.tag)
        return raw
    if kind is Kind.NAME:
        return _required(text.name(raw, element.tag).encode(), element, part)
    if kind is Kind.TEXT:
        return text.line(raw)[:MAX_TEXT_CHARS].encode()
    if kind is Kind.BLOCK:
        return text.plain(raw)[:MAX_BLOCK_CHARS].encode()
    if kind is Kind.NAMES:
        return raw
    if kind is Kind.UNUSED:
        return b""
    assert_never(kind)


def _required(value: bytes, element: Element, part: str) -> bytes:
    if not value and element.default is None:
        raise text.missing(element.tag, part)
    return value
