"""Encodes and decodes text and numbers in elements of the protocol. Pure.

Text: `&`, `<` and `>` are sent as named entities. Only numeric references are known besides the five named entities, so
nothing can expand. The stock client writes one `&#N;` for each *byte* >= 128 of UTF-8 text, so a reference below 256 is
a byte and a larger one a character.

Numbers: finite decimals. Negative and absurd values are accepted; an error names a field that is not a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from wire.messages import ProtocolError

MAX_NAME_CHARS = 255  # of results, files, platforms, plan classes and the account key
MAX_NUMBER_CHARS = 340  # "%f" of the largest double has 316 characters
MAX_NUMBER = 1e300  # prevents overflow in unit conversions
_SHOWN_CHARS = 60

# XML 1.0 forbids control characters other than tab, line feed and carriage return.
CONTROL_BYTES = bytes([*range(9), 11, 12, *range(14, 32), 127])
_LINE_BYTES = b"\t\n\r"

_ESCAPES: dict[int, str | None] = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&#34;"}
_ESCAPES.update(dict.fromkeys(CONTROL_BYTES))
_NEEDS_ESCAPE = re.compile(r'[&<>"\x00-\x08\x0b\x0c\x0e-\x1f\x7f]')

_REFERENCE = re.compile(rb"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7}+)|#[xX]([0-9a-fA-F]{1,6}+));")
_NAMED = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}


def escape(text: str) -> str:
    """Escape text for an element. Control characters forbidden in XML are removed.

    >>> escape("a < b & c")
    'a &lt; b &amp; c'
    """
    return text.translate(_ESCAPES) if _NEEDS_ESCAPE.search(text) else text


def unescape(raw: bytes) -> bytes:
    """Undo `escape`, in bytes. Unknown references are left unchanged.

    >>> unescape(b"th&#195;&#169; &amp; &lol;").decode()
    'thé & &lol;'
    """
    return _REFERENCE.sub(_character, raw) if b"&" in raw else raw


def _character(match: re.Match[bytes]) -> bytes:
    named, decimal, hexadecimal = match.groups()
    if named is not None:
        return _NAMED[named]
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    if code < 256:
        return bytes((code,))
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return match[0]
    return chr(code).encode()


def plain(raw: bytes) -> str:
    """Return an element's text without surrounding blanks and control characters; line breaks are kept.

    Bytes that are not valid UTF-8 become the replacement character.
    """
    return unescape(raw).translate(None, CONTROL_BYTES).decode("utf-8", "replace").strip()


def line(raw: bytes) -> str:
    """Return the text as `plain` does, but on one line: tabs and line breaks are also removed."""
    return unescape(raw).translate(None, CONTROL_BYTES + _LINE_BYTES).decode("utf-8", "replace").strip()


def name(raw: bytes, field: str) -> str:
    """Return a name: one line of at most MAX_NAME_CHARS characters. Raises ProtocolError otherwise."""
    text = line(raw)
    if len(text) > MAX_NAME_CHARS:
        raise unexpected(field, f"at most {MAX_NAME_CHARS} characters", raw)
    return text


def block(raw: bytes) -> str:
    """Return a key or a signature: several lines, ending with one line feed; empty text stays empty.

    >>> block(b"  1024\\n.  ")
    '1024\\n.\\n'
    """
    text = plain(raw)
    return text + "\n" if text else ""


def number(raw: bytes, field: str) -> float:
    """Return a finite number between -MAX_NUMBER and MAX_NUMBER. Raises ProtocolError otherwise.

    >>> number(b"3e9", "rsc_fpops_est")
    3000000000.0
    """
    try:
        value = float(raw) if len(raw) <= MAX_NUMBER_CHARS and b"_" not in raw else math.nan
    except ValueError:
        value = math.nan
    if not abs(value) <= MAX_NUMBER:  # false for NaN too
        raise unexpected(field, "a finite number", raw)
    return value


def whole(raw: bytes, field: str) -> int:
    """Return an integer of at most 64 bits; `1.000000` is valid. Raises ProtocolError otherwise.

    >>> whole(b"-3600", "timezone")
    -3600
    """
    if len(raw) <= 20 and b"_" not in raw:  # the longest 64-bit number has 20 characters
        try:
            value = int(raw)
        except ValueError:
            value = _whole_from_decimal(raw, field)
    else:
        value = _whole_from_decimal(raw, field)
    if not -(2**63) <= value < 2**63:
        raise unexpected(field, "a whole number of at most 64 bits", raw)
    return value


def _whole_from_decimal(raw: bytes, field: str) -> int:
    try:
        value = number(raw, field)
    except ProtocolError:
        raise unexpected(field, "a whole number", raw) from None
    if not value.is_integer():
        raise unexpected(field, "a whole number", raw)
    return int(value)


def unexpected(field: str, expected: str, got: bytes) -> ProtocolError:
    """Return the error for a field with a wrong value, naming the field, the expected and the actual value."""
    shown = got[:_SHOWN_CHARS].decode("ascii", "backslashreplace")
    more = "..." if len(got) > _SHOWN_CHARS else ""
    return ProtocolError(f"{field}: expected {expected}, got '{shown}{more}'")


def missing(field: str, within: str) -> ProtocolError:
    """Return the error for a missing required element."""
    return ProtocolError(f"{field}: expected in {within}, got none")


def numeric_references(text: str) -> str:
    """Encode text in ASCII as the stock client does: each UTF-8 byte >= 128 becomes `&#N;`.

    >>> numeric_references("é")
    '&#195;&#169;'
    """
    if text.isascii():
        return text
    return "".join(_referenced(text.encode("utf-8", "replace")))


def _referenced(encoded: bytes) -> Iterable[str]:
    return (chr(byte) if byte < 128 else f"&#{byte};" for byte in encoded)
