"""The captured exchanges of the stock client."""

from __future__ import annotations

from pathlib import Path

CAPTURES = Path(__file__).parents[2] / "captures"


def request(number: int) -> bytes:
    """The body of a captured request."""
    return _only(f"{number:02d}-*.request.xml").read_bytes()


def reply(number: int) -> bytes:
    """The body of a captured reply."""
    return _only(f"{number:02d}-*.reply.xml").read_bytes()


def numbers_of_requests_with(opening: bytes) -> list[int]:
    """The captures whose request begins with `opening`."""
    paths = sorted(CAPTURES.glob("*.request.xml"))
    return [int(path.name[:2]) for path in paths if path.read_bytes().startswith(opening)]


def _only(pattern: str) -> Path:
    [path] = CAPTURES.glob(pattern)
    return path
