"""Who signs in, with what, and what they may do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.bounds import knob
from domain.units import DAY_S, HOUR_S, Instant, PersonId, Seconds, SubmitterId, TokenId, VolunteerId, elapsed_s
from domain.volunteers import VolunteerRecord


class Right(StrEnum):
    """What a request may do: every one of them is asked for by the routes that need it."""

    READ = "read"  # look at everything
    SUBMIT = "submit"  # submit batches, and change one's own
    OPERATE = "operate"  # change anything


class Role(StrEnum):
    """What a person is; each may do what those before it may."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"

    @property
    def right(self) -> Right:
        """What only this role and those above it may do.

        >>> Role.SUBMITTER.right.value
        'submit'
        """
        return list(Right)[list(Role).index(self)]

    @property
    def rights(self) -> frozenset[Right]:
        """All that it may do.

        >>> sorted(Role.SUBMITTER.rights)
        [<Right.READ: 'read'>, <Right.SUBMIT: 'submit'>]
        """
        return frozenset(list(Right)[: list(Role).index(self) + 1])


@dataclass(frozen=True, slots=True)
class AccessSettings:
    session_s: Seconds = knob(Seconds(12 * HOUR_S), "idle time after which a session ends", low=60)
    session_most_s: Seconds = knob(Seconds(30 * DAY_S), "maximum age of a session", low=60)
    one_time_s: Seconds = knob(Seconds(7 * DAY_S), "validity of a one-time password", low=60)
    min_password_length: int = knob(10, "minimum length of operators' passwords, characters", low=8, high=64)
    submission_key_s: Seconds = knob(Seconds(7 * DAY_S), "time an Idempotency-Key is remembered", low=3600)
    event_streams: int = knob(200, "maximum concurrent progress streams per worker", low=0, high=100_000)


@dataclass(frozen=True, slots=True)
class Stretched:
    """A password as it is kept: scrypt(password, salt) with the costs it was made with."""

    hash: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    n: int
    r: int
    p: int


@dataclass(frozen=True, slots=True)
class PersonRecord:
    """Somebody who may sign in. `one_time_until`: the password was given by another, and must be changed."""

    person_id: PersonId
    name: str
    role: Role
    password: Stretched
    created_at: Instant
    submitter_id: SubmitterId | None = None  # whose batches are the person's own
    one_time_until: Instant | None = None
    active: bool = True


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody signed in with a browser. The hash is of what the browser holds, which is not kept."""

    session_hash: bytes = field(repr=False)
    created_at: Instant
    seen_at: Instant
    expires_at: Instant
    address: str = ""
    agent: str = ""
    person_id: PersonId | None = None  # one of the two
    volunteer_id: VolunteerId | None = None

    def renewed(self, now: Instant, settings: AccessSettings) -> Session:
        """The same session, used at `now`: it lasts on, but not for ever. Pure."""
        last = min(now + settings.session_s, self.created_at + settings.session_most_s)
        return Session(
            self.session_hash,
            self.created_at,
            now,
            Instant(last),
            self.address,
            self.agent,
            self.person_id,
            self.volunteer_id,
        )


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session and whose it is."""

    session: Session
    person: PersonRecord | None = None
    volunteer: VolunteerRecord | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the API: its person's, with some of the person's rights. The token itself is not kept."""

    token_id: TokenId
    token_hash: bytes = field(repr=False)
    name: str
    person_id: PersonId
    rights: frozenset[Right]
    created_at: Instant
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    revoked_at: Instant | None = None

    def serves(self, now: Instant) -> bool:
        """Whether it may be used at `now`."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody did, for the audit trail."""

    acted_at: Instant
    who: str
    what: str  # the route's or the form's name, such as abort_batch
    target: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)
    address: str = ""
    act_id: int = 0


# ---------------------------------------------------------------- how fast may be guessed

FREE_FAILURES = 5  # of a name from one address, that cost nothing
FREE_OF_MANY = 20  # of one address with any names, or of one name from any addresses
FORGOTTEN_AFTER_S = HOUR_S
MOST_WAIT_S = 900.0
KNOWN_FOR_S = Seconds(90 * DAY_S)  # after a success


@dataclass(frozen=True, slots=True)
class Guess:
    """A password that is tried: `who` is the kind of account and its name, `network` where it comes from."""

    who: str
    network: str

    def limits(self, *, known: bool) -> Mapping[str, int]:
        """What is counted, each with the failures that cost nothing.

        Failures from other addresses do not count where the name has signed in from before (`known`): guessing at an
        account does not keep its owner out.

        >>> sorted(Guess("person ada", "192.0.2.7").limits(known=True))
        ['address 192.0.2.7', 'person ada from 192.0.2.7']
        """
        limits = {self.own: FREE_FAILURES, f"address {self.network}": FREE_OF_MANY}
        return limits if known else {**limits, self.who: FREE_OF_MANY}

    @property
    def own(self) -> str:
        """The key of this name from this address."""
        return f"{self.who} from {self.network}"


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a password was tried without success."""

    failures: int
    at: Instant  # the last time

    def wait_s(self, now: Instant, free: int = FREE_FAILURES) -> Seconds:
        """How long until it may be tried again; 0 = now. Beyond the `free` failures it doubles, from 1 s to 15 min.

        >>> [Attempts(n, Instant(100.0)).wait_s(Instant(101.0)) for n in (1, 5, 6, 8, 40)]
        [0.0, 0.0, 0.0, 3.0, 899.0]
        """
        if self.failures <= free:
            return Seconds(0.0)
        wait_s = min(MOST_WAIT_S, 2.0 ** min(self.failures - free - 1, 20))
        return Seconds(max(0.0, wait_s - max(0.0, elapsed_s(self.at, now))))

    def more(self, now: Instant) -> Attempts:
        """One more failure; those of an hour ago are forgotten.

        >>> Attempts(9, Instant(0.0)).more(Instant(4000.0)).failures
        1
        """
        forgotten = elapsed_s(self.at, now) >= FORGOTTEN_AFTER_S
        return Attempts(1 if forgotten else self.failures + 1, now)

    def less(self) -> Attempts:
        """One failure less: what was counted before the password was found right."""
        return Attempts(max(0, self.failures - 1), self.at)
