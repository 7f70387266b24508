"""Users of the console and the API, with their credentials and rights. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf

from domain.bounds import knob
from domain.restrictions import Restricted
from domain.units import DAY_S, HOUR_S, Instant, PersonId, Seconds, SubmitterId, TokenId, VolunteerId, elapsed_s
from domain.volunteers import VolunteerRecord


class Right(StrEnum):
    """A permission that a route may require."""

    READ = "read"  # read everything
    SUBMIT = "submit"  # submit batches, and change one's own batches
    OPERATE = "operate"  # change anything


class Role(StrEnum):
    """A user's role. Each role includes the rights of all roles before it in the list."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"

    @property
    def right(self) -> Right:
        """Return the right that this role adds to those of the roles before it.

        >>> Role.SUBMITTER.right.value
        'submit'
        """
        return list(Right)[list(Role).index(self)]

    @property
    def rights(self) -> frozenset[Right]:
        """Return all rights of the role, including inherited ones.

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
    """A stored password: scrypt(password, salt), with the cost parameters that were used."""

    hash: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    n: int
    r: int
    p: int


@dataclass(frozen=True, slots=True)
class PersonRecord:
    """A user who may sign in. With `one_time_until`, another user set the password and the user must change it."""

    person_id: PersonId
    name: str
    role: Role
    password: Stretched
    created_at: Instant
    submitter_id: SubmitterId | None = None  # the submitter whose batches belong to this user
    one_time_until: Instant | None = None
    active: bool = True


@dataclass(frozen=True, slots=True)
class Session:
    """A browser session. The server stores only the hash of the session's secret."""

    session_hash: bytes = field(repr=False)
    created_at: Instant
    seen_at: Instant
    expires_at: Instant
    address: str = ""
    agent: str = ""
    person_id: PersonId | None = None  # exactly one of the two ids is set
    volunteer_id: VolunteerId | None = None

    def renewed(self, now: Instant, settings: AccessSettings) -> Session:
        """Return the session after a use at `now`: the idle timeout restarts, the maximum age does not. Pure."""
        last = min(now + settings.session_s, self.created_at + settings.session_most_s)
        return replace(self, seen_at=now, expires_at=Instant(last))


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session and the user who signed in to it."""

    session: Session
    person: PersonRecord | None = None
    volunteer: VolunteerRecord | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """An API token with some of its owner's rights. The token itself is not stored."""

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
        """Return whether the token is valid at `now`."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


THROUGH = "through"  # in the detail of an Act whose author the request named: the user of the token


@dataclass(frozen=True, slots=True)
class Act:
    """A user's action, recorded in the audit trail."""

    acted_at: Instant
    who: str
    what: str  # name of the route or form, such as abort_batch
    target: str = ""  # kind and name, such as "batch 7"; with several, separated by ", "
    detail: Mapping[str, object] = field(default_factory=dict)
    address: str = ""
    act_id: int = 0

    @property
    def through(self) -> str:
        """Return the user of the token with which a request named its author; "" if it did not."""
        return str(self.detail.get(THROUGH, ""))

    @property
    def action(self) -> str:
        """Return `what`, or the kind of restriction that was set or lifted.

        >>> [Act(Instant(0.0), "ada", "restrict", *of).action for of in (("host 7",), ("host 7", {"max_jobs": 2}))]
        ['ban', 'limit']
        >>> [Act(Instant(0.0), "ada", what, "app pi").action for what in ("restrict", "lift_restriction", "set_app")]
        ['pause', 'resume', 'set_app']
        """
        if self.what not in ACTIONS:
            return self.what
        kind = self.target.partition(" ")[0]
        is_work = kind in list(Restricted) and Restricted(kind).is_work
        if self.what == "lift_restriction":
            return "resume" if is_work else "lift"
        return "pause" if is_work else "limit" if self.detail.get("max_jobs") else "ban"


ACTIONS = {
    "restrict": ("ban", "limit", "pause"),
    "lift_restriction": ("lift", "resume"),
}  # `what` -> values of `action`


@dataclass(frozen=True, slots=True)
class ActChoice:
    """Which entries of the audit trail to return; empty fields match all. `since` is included, `until` is not.

    `what` matches an entry's `what` or its `action`. `also`: further subjects, one of which matches as well.
    """

    who: str = ""
    what: str = ""
    subject: str = ""
    since: Instant = Instant(-inf)
    until: Instant = Instant(inf)
    also: tuple[str, ...] = ()

    @property
    def targets(self) -> list[str] | None:
        """Return the targets that name the subject, None for any. Entries of older releases have the suffix `_id`.

        >>> ActChoice(subject="batch 7").targets, ActChoice(subject="app version 7").targets
        (['batch 7', 'batch_id 7'], ['app version 7', 'app_version_id 7'])
        """
        kind, _, name = self.subject.rpartition(" ")
        return [self.subject, f"{kind.replace(' ', '_')}_id {name}", *self.also] if self.subject else None


# ---------------------------------------------------------------- limits on guessing passwords

FREE_FAILURES = 5  # failures without delay, for one name from one address
FREE_OF_MANY = 20  # for one address with any names, or for one name from any addresses
FORGOTTEN_AFTER_S = HOUR_S
MOST_WAIT_S = 900.0
KNOWN_FOR_S = Seconds(90 * DAY_S)  # after a successful sign-in


@dataclass(frozen=True, slots=True)
class Guess:
    """A sign-in attempt: `who` is the kind and name of the account, `network` is where the attempt comes from."""

    who: str
    network: str

    def limits(self, *, known: bool) -> Mapping[str, int]:
        """Return the counters that a failed attempt increases, each with its number of failures without delay.

        Failures from other addresses do not count if the name has signed in from this address before (`known`): attacks
        on an account do not lock out its owner.

        >>> sorted(Guess("person ada", "192.0.2.7").limits(known=True))
        ['address 192.0.2.7', 'person ada from 192.0.2.7']
        """
        limits = {self.own: FREE_FAILURES, f"address {self.network}": FREE_OF_MANY}
        return limits if known else {**limits, self.who: FREE_OF_MANY}

    @property
    def own(self) -> str:
        """Return the name of the counter for this account from this address."""
        return f"{self.who} from {self.network}"


@dataclass(frozen=True, slots=True)
class Attempts:
    """The number of failed sign-in attempts, and the time of the latest one."""

    failures: int
    at: Instant  # the latest attempt

    def wait_s(self, now: Instant, free: int = FREE_FAILURES) -> Seconds:
        """Return the delay before the next attempt. Beyond `free` failures it doubles each time, from 1 s to 15 min.

        >>> [Attempts(n, Instant(100.0)).wait_s(Instant(101.0)) for n in (1, 5, 6, 8, 40)]
        [0.0, 0.0, 0.0, 3.0, 899.0]
        """
        if self.failures <= free:
            return Seconds(0.0)
        wait_s = min(MOST_WAIT_S, 2.0 ** min(self.failures - free - 1, 20))
        return Seconds(max(0.0, wait_s - max(0.0, elapsed_s(self.at, now))))

    def more(self, now: Instant) -> Attempts:
        """Return the counter with one more failure. Failures older than an hour are discarded.

        >>> Attempts(9, Instant(0.0)).more(Instant(4000.0)).failures
        1
        """
        forgotten = elapsed_s(self.at, now) >= FORGOTTEN_AFTER_S
        return Attempts(1 if forgotten else self.failures + 1, now)

    def less(self) -> Attempts:
        """Return the counter without the failure that was recorded before the password was found to be correct."""
        return Attempts(max(0, self.failures - 1), self.at)
