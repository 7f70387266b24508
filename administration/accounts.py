"""Volunteers' account keys and passwords.

A client's account key (authenticator) is derived from the project's account secret and a random nonce. The database
stores neither keys nor passwords, so a copy of the database gives no access.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from domain.errors import InvalidInputError
from domain.units import Instant, VolunteerId
from domain.volunteers import Credentials, VolunteerRecord
from store.people import PostgresVolunteers

SCRYPT_COST = 2**14
EMAIL = re.compile(r"[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,189}")
ACCOUNT_KEY = re.compile(r"[0-9a-f]{32}")
NAME = re.compile(r"[^\x00-\x1f\x7f]{0,254}")


@dataclass(frozen=True, slots=True)
class CreatedAccount:
    """A new volunteer, with the account key, which is not stored."""

    volunteer_id: VolunteerId
    authenticator: str


class AccountKeys:
    """Derives account keys from the project's account secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def authenticator(self, nonce: bytes) -> str:
        """Return the account key for a nonce, as 32 hexadecimal digits."""
        return hmac.new(self._secret, b"account key:" + nonce, hashlib.sha256).hexdigest()[:32]

    def api_token(self) -> str:
        """Return the operators' token for the API."""
        return hmac.new(self._secret, b"api token", hashlib.sha256).hexdigest()

    def webhook_secret(self, subscription_id: int, serial: int) -> str:
        """Return the secret that signs a webhook's messages; each serial number has its own."""
        text = f"webhook:{subscription_id}:{serial}".encode()
        return f"whsec_{hmac.new(self._secret, text, hashlib.sha256).hexdigest()}"

    def subscription_code(self, subscription_id: int, address: str) -> str:
        """Return the code in links that confirm or end the subscription of an e-mail address."""
        text = f"subscription:{subscription_id}:{address}".encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:32]

    def new_credentials(self, password_hash: str | None) -> Credentials:
        """Return new secrets for a volunteer; `password_hash` is the client's hash of the password."""
        nonce = secrets.token_bytes(16)
        salt, kept = (None, None) if password_hash is None else password_kept(password_hash)
        return Credentials(
            authenticator_nonce=nonce,
            authenticator_hash=authenticator_hash(self.authenticator(nonce)),
            password_salt=salt,
            password_hash=kept,
        )


def authenticator_hash(authenticator: str) -> bytes:
    """Return the hash that is stored for an account key.

    >>> len(authenticator_hash("0123456789abcdef0123456789abcdef"))
    32
    """
    return hashlib.sha256(authenticator.encode()).digest()


def password_kept(password_hash: str) -> tuple[bytes, bytes]:
    """Return a new salt and the hash to store for the client's password hash; takes tens of milliseconds."""
    salt = secrets.token_bytes(16)
    return salt, _stretched(password_hash, salt)


def is_account_key(record: VolunteerRecord, given: str) -> bool:
    """Return whether `given` is the volunteer's account key."""
    if not ACCOUNT_KEY.fullmatch(given):
        return False
    return hmac.compare_digest(record.credentials.authenticator_hash, authenticator_hash(given))


def password_matches(record: VolunteerRecord, password_hash: str) -> bool:
    """Return whether the client's password hash matches. The time taken does not depend on the result."""
    stored, salt = record.credentials.password_hash, record.credentials.password_salt
    if stored is None or salt is None:
        return False
    return hmac.compare_digest(stored, _stretched(password_hash, salt))


def checked_email(email: str) -> str:
    """Return the e-mail address in lower case if it is valid. Raises InvalidInputError.

    >>> checked_email("Ada@Example.org")
    'ada@example.org'
    """
    if not EMAIL.fullmatch(email):
        raise InvalidInputError("email", "an e-mail address", email)
    return email.lower()


async def add_volunteer(
    volunteers: PostgresVolunteers, keys: AccountKeys, email: str, *, name: str, password_hash: str | None, now: Instant
) -> CreatedAccount:
    """Register a volunteer. Raises InvalidInputError, AlreadyExistsError."""
    email = checked_email(email)
    if not NAME.fullmatch(name):
        raise InvalidInputError("name", "at most 254 characters, no control characters", name)
    credentials = await asyncio.to_thread(keys.new_credentials, password_hash)  # scrypt takes tens of milliseconds
    volunteer_id = await volunteers.add_volunteer(
        email,
        name=name or email.partition("@")[0],
        credentials=credentials,
        cross_project_id=hashlib.md5(
            keys.authenticator(credentials.authenticator_nonce).encode() + email.encode(), usedforsecurity=False
        ).hexdigest(),
        beta=False,
        now=now,
    )
    return CreatedAccount(volunteer_id, keys.authenticator(credentials.authenticator_nonce))


def _stretched(password_hash: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password_hash.encode(), salt=salt, n=SCRYPT_COST, r=8, p=1, dklen=32)
