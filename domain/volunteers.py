"""What is stored of a volunteer besides the preferences. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from domain.apps import Volunteer


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is stored of a volunteer's secrets: never the account key, never the password."""

    authenticator_nonce: bytes
    authenticator_hash: bytes  # SHA-256 of the account key
    password_salt: bytes | None = None
    password_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class VolunteerRecord:
    """A volunteer with what is only for the owner and for checking who asks."""

    volunteer: Volunteer
    email: str
    credentials: Credentials
