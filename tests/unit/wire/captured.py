"""Captured requests and replies of the stock client."""

from __future__ import annotations

import re
from pathlib import Path

from domain.units import Instant

CAPTURES = Path(__file__).parents[2] / "captures"


NOW = re.compile(rb"<now>[0-9.]+</now>")


def request(number: int) -> bytes:
    """Return the body of a captured request."""
    return _only(f"{number:02d}-*.request.xml").read_bytes()


def request_at(number: int, now: Instant) -> bytes:
    """Return a captured request with the client clock set to `now`."""
    body, count = NOW.subn(f"<now>{now:.6f}</now>".encode(), request(number))
    assert count == 1
    return body


def reply(number: int) -> bytes:
    """Return the body of a captured reply."""
    return _only(f"{number:02d}-*.reply.xml").read_bytes()


def numbers_of_requests_with(opening: bytes) -> list[int]:
    """Return the numbers of the captures whose request begins with `opening`."""
    paths = sorted(CAPTURES.glob("*.request.xml"))
    return [int(path.name[:2]) for path in paths if path.read_bytes().startswith(opening)]


def _only(pattern: str) -> Path:
    [path] = CAPTURES.glob(pattern)
    return path
