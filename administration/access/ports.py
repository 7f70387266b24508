"""Database protocols for signing in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from domain.access import Act, Guess, PersonRecord, Right, Role, Session, SignedIn, Stretched, Token
from domain.units import Instant, PersonId, Seconds, SubmitterId, TokenId, VolunteerId


class SignInPeople(Protocol):
    """People who sign in. Names are unique: AlreadyExistsError, NotFoundError."""

    async def add_person(
        self,
        name: str,
        *,
        role: Role,
        submitter_id: SubmitterId | None,
        password: Stretched,
        one_time_until: Instant | None,
        now: Instant,
    ) -> PersonRecord: ...

    async def person(self, name: str) -> PersonRecord: ...

    async def people(self, *, limit: int, after: PersonId | None = None) -> Sequence[PersonRecord]: ...

    async def set_person(
        self, person_id: PersonId, *, role: Role, submitter_id: SubmitterId | None, active: bool
    ) -> PersonRecord: ...

    async def set_password(
        self, person_id: PersonId, password: Stretched, *, one_time_until: Instant | None
    ) -> None: ...


class Sessions(Protocol):
    """Sessions of browsers."""

    async def add_session(self, session: Session) -> None:
        """Also deletes expired sessions."""
        ...

    async def session_of_person(self, session_hash: bytes, *, now: Instant) -> SignedIn | None:
        """None if the session ended, belongs to a volunteer, or the person is no longer active."""
        ...

    async def session_of_volunteer(self, session_hash: bytes, *, now: Instant) -> SignedIn | None: ...

    async def sessions(self, person_id: PersonId, *, now: Instant, limit: int) -> Sequence[Session]:
        """The most recently used first."""
        ...

    async def renew_session(self, session: Session) -> None:
        """Store `seen_at` and `expires_at`; no effect on a session that has ended."""
        ...

    async def end_session(self, session_hash: bytes) -> None: ...

    async def end_sessions_of_person(self, person_id: PersonId, *, but: bytes = b"") -> int:
        """Return how many ended; the session with the hash `but` stays open."""
        ...

    async def end_sessions_of_volunteer(self, volunteer_id: VolunteerId, *, but: bytes = b"") -> int: ...


class Tokens(Protocol):
    """API tokens."""

    async def add_token(
        self,
        token_hash: bytes,
        *,
        name: str,
        person_id: PersonId,
        rights: frozenset[Right],
        expires_at: Instant | None,
        now: Instant,
    ) -> Token: ...

    async def token(self, token_hash: bytes) -> tuple[Token, PersonRecord] | None:
        """Return a token of an active person; the caller checks whether it is still valid."""
        ...

    async def tokens(
        self, *, person_id: PersonId | None = None, limit: int, after: TokenId | None = None
    ) -> Sequence[Token]: ...

    async def note_token_use(self, token_id: TokenId, *, now: Instant) -> None: ...

    async def revoke_token(self, token_id: TokenId, *, now: Instant) -> Token:
        """Raises NotFoundError. No effect on a revoked token."""
        ...


class AccessStore(SignInPeople, Sessions, Tokens, Protocol):
    async def begin_attempt(self, guess: Guess, *, now: Instant) -> Seconds:
        """Return how long to wait before trying a password, 0 = now. The attempt is counted as a failure for every
        limit in advance, so that parallel attempts count; `end_attempt` takes it back.
        """
        ...

    async def end_attempt(self, guess: Guess, *, now: Instant) -> None:
        """The password was right: clear the failures of this name from this network, and mark the network as known."""
        ...

    async def note_act(self, act: Act) -> None: ...

    async def acts(self, *, limit: int, before: int | None = None) -> Sequence[Act]:
        """Newest first; `before` is an act_id that continues a listing."""
        ...
