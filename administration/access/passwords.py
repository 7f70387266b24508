"""Passwords as they are kept: stretched with scrypt, each with a salt and the costs it was made with."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from domain.access import Stretched
from domain.errors import InvalidInputError

MOST_CHARS = 200


@dataclass(frozen=True, slots=True)
class Cost:
    """What a guess costs: 128·n·r bytes, and time in proportion to n·r·p."""

    n: int = 2**15
    r: int = 8
    p: int = 2

    @property
    def nbytes(self) -> int:
        return 128 * self.n * self.r + 128 * self.r * self.p


COST = Cost()


def stretched(password: str, cost: Cost = COST) -> Stretched:
    """`password` with a new salt."""
    salt = secrets.token_bytes(16)
    return Stretched(_scrypt(password, salt, cost), salt, cost.n, cost.r, cost.p)


def matches(kept: Stretched, password: str) -> bool:
    """Whether it is that password; as long in coming whichever it is."""
    return hmac.compare_digest(kept.hash, _scrypt(password, kept.salt, Cost(kept.n, kept.r, kept.p)))


def is_of(kept: Stretched, cost: Cost) -> bool:
    """Whether it was made with these costs; else it is made anew when the password is next given."""
    return (kept.n, kept.r, kept.p) == (cost.n, cost.r, cost.p)


def one_time_password() -> str:
    """A password for somebody else to begin with: 80 bits, in letters and digits nobody mistakes for others."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(4))


def checked_password(password: str, *, least: int, name: str) -> str:
    """A password somebody chose. Raises InvalidInputError, which does not repeat it.

    >>> checked_password("correct horse", least=10, name="ada")
    'correct horse'
    """
    if not least <= len(password) <= MOST_CHARS:
        raise InvalidInputError("password", f"{least} to {MOST_CHARS} characters", f"{len(password)} of them")
    if password.casefold() == name.casefold() or len(set(password)) < 3:
        raise InvalidInputError("password", "something that is harder to guess", "that")
    return password


def _scrypt(password: str, salt: bytes, cost: Cost) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=cost.n,
        r=cost.r,
        p=cost.p,
        dklen=32,
        maxmem=2 * cost.nbytes,
    )
