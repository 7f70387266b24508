"""Signs users and volunteers in, using stored passwords, sessions and client addresses.

Passwords are hashed with scrypt, with a separate salt and cost for each. Attempts are rate-limited per name and per
address. Behind a trusted reverse proxy, the client's address is read from a header.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from administration.access.who import TooManyAttemptsError, WrongPasswordError
from administration.accounts import is_account_key, password_kept, password_matches
from domain.access import AccessSettings, Act, Guess, PersonRecord, Session, Stretched
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.units import PersonId, VolunteerId
from domain.volunteers import VolunteerRecord
from store.people import PostgresAccess, PostgresVolunteers
from wire.attach import password_hash

MOST_CHARS = 200


@dataclass(frozen=True, slots=True)
class Cost:
    """The scrypt cost of one guess: 128·n·r bytes of memory, and time proportional to n·r·p."""

    n: int = 2**15
    r: int = 8
    p: int = 2

    @property
    def nbytes(self) -> int:
        return 128 * self.n * self.r + 128 * self.r * self.p


COST = Cost()


def stretched(password: str, cost: Cost = COST) -> Stretched:
    """Return the hash of `password` with a new salt."""
    salt = secrets.token_bytes(16)
    return Stretched(_scrypt(password, salt, cost), salt, cost.n, cost.r, cost.p)


def matches(kept: Stretched, password: str) -> bool:
    """Return whether the password matches. The check takes the same time in both cases."""
    return hmac.compare_digest(kept.hash, _scrypt(password, kept.salt, Cost(kept.n, kept.r, kept.p)))


def is_of(kept: Stretched, cost: Cost) -> bool:
    """Return whether the hash was made at this cost. If not, it is replaced at the next sign-in."""
    return (kept.n, kept.r, kept.p) == (cost.n, cost.r, cost.p)


def one_time_password() -> str:
    """Return a one-time password: 80 bits, without easily confused characters."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(4))


def checked_password(password: str, *, least: int, name: str) -> str:
    """Return the password if it is acceptable. Raises InvalidInputError, which does not contain the password.

    >>> checked_password("correct horse", least=10, name="ada")
    'correct horse'
    """
    if not least <= len(password) <= MOST_CHARS:
        raise InvalidInputError("password", f"{least} to {MOST_CHARS} characters", f"{len(password)} characters")
    if password.casefold() == name.casefold() or len(set(password)) < 3:
        raise InvalidInputError(
            "password", "a password that is harder to guess", "the account's name or too few distinct characters"
        )
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


MOST_ADDRESS_CHARS = 100
REMEMBERED = 10_000  # number of addresses in the parsing cache
FORWARDED = "X-Forwarded-For"
LOOPBACK = "127.0.0.0/8, ::1"
ADDRESS = web.RequestKey("address", str)
ASKED_FROM: ContextVar[str] = ContextVar("ASKED_FROM", default="")  # the address, for code without the request

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

log = structlog.get_logger()


class Networks:
    """The networks listed in a setting; by default, proxies whose X-Forwarded-For header is trusted."""

    def __init__(self, listed: str = LOOPBACK, *, setting: str = "server.trusted_proxies") -> None:
        self._setting = setting
        self._listed = ""
        self._has: Callable[[str], bool] = partial(_within, ())
        self.follow(listed)

    def follow(self, listed: str) -> None:
        """Replace the list. Invalid entries are logged and ignored."""
        if listed != self._listed:
            self._listed = listed
            self._has = lru_cache(REMEMBERED)(partial(_within, tuple(_networks(listed, self._setting))))

    def has(self, address: str) -> bool:
        """Return whether the address is in one of the networks.

        >>> Networks("10.0.0.0/8").has("10.1.2.3"), Networks("10.0.0.0/8").has("192.0.2.7")
        (True, False)
        """
        return self._has(address)


def address_of(request: web.Request, proxies: Networks | None = None) -> str:
    """Return the client's address: the peer, or the forwarded address if the peer is a trusted proxy.

    X-Forwarded-For is read from its end, because clients can forge all entries before the first address that is not a
    trusted proxy. An address already stored on the request by the rate limiter is reused.
    """
    if ADDRESS in request:
        return request[ADDRESS]
    proxies = proxies or _FROM_HERE
    address = request.remote or ""
    if FORWARDED not in request.headers:
        return address[:MOST_ADDRESS_CHARS]
    forwarded = [one.strip() for one in ",".join(request.headers.getall(FORWARDED)).split(",")]
    while forwarded and (not address or proxies.has(address)):
        before = forwarded.pop()
        if not before:
            break
        address = before
    return address[:MOST_ADDRESS_CHARS]


def _networks(listed: str, setting: str) -> Iterator[Network]:
    for text in filter(None, (one.strip() for one in listed.split(","))):
        try:
            yield ipaddress.ip_network(text, strict=False)
        except ValueError:
            log.warning("not a network, ignored", setting=setting, got=text)


def _within(networks: tuple[Network, ...], address: str) -> bool:
    found = _parsed(address)
    return found is not None and any(found in network for network in networks)


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the parsed address. An IPv4 client on an IPv6 socket (::ffff:192.0.2.7) counts as its IPv4 address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


@lru_cache(REMEMBERED)
def network_of(address: str) -> str:
    """Return the network that a single client controls: an IPv4 address, or an IPv6 /64.

    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("::ffff:192.0.2.7"), network_of("?")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7', '?')
    """
    found = _parsed(address)
    if found is None:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def from_elsewhere(request: web.Request, master_url: str) -> bool:
    """Return whether a page of another site made the browser send this request. Programs send no such headers.

    Browsers send Sec-Fetch-Site over https and to localhost, and Origin with every POST.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("Origin")
    if origin is None:
        return False
    return urlsplit(origin).netloc not in (request.host, urlsplit(master_url).netloc)


_FROM_HERE = Networks()


AT_ONCE = 2  # concurrent hashes, each 0.1 s and 32 MiB; further ones wait
MOST_NAME_CHARS = 254
MOST_PASSWORD_CHARS = 200
AGENT_CHARS = 200
PASSWORD_HASH = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session with its cookie value, which is not stored."""

    value: str
    session: Session


def hash_of(value: str) -> bytes:
    """Return the hash that is stored for a session or token.

    >>> len(hash_of("anything"))
    32
    """
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()


class SignIn:
    """Creates sessions. `address` is the client's address, `agent` its User-Agent."""

    def __init__(
        self,
        store: PostgresAccess,
        volunteers: PostgresVolunteers,
        settings: Callable[[], AccessSettings],
        clock: Clock,
        *,
        cost: Cost = COST,
    ) -> None:
        self._store = store
        self._volunteers = volunteers
        self._settings = settings
        self._clock = clock
        self._cost = cost
        self._stretching = asyncio.Semaphore(AT_ONCE)

    async def person(self, name: str, password: str, *, address: str, agent: str) -> NewSession:
        """Sign a user in. Raises TooManyAttemptsError, and WrongPasswordError also for unknown names."""
        guess = await self._begin("person", name, address)
        record = await self._person(name)
        right = await self._matches(record, password)
        if record is None or not right or not record.active or self._too_old(record):
            log.warning("sign-in refused", name=name[:MOST_NAME_CHARS], address=address)
            raise WrongPasswordError
        await self._store.end_attempt(guess, now=self._clock.now())
        if not is_of(record.password, self._cost):
            kept = await self._stretched(password)
            await self._store.set_password(record.person_id, kept, one_time_until=record.one_time_until)
        await self._store.note_act(Act(self._clock.now(), record.name, "sign_in", address=address))
        return await self._new_session(address, agent, person_id=record.person_id)

    async def volunteer(self, email: str, password: str, *, address: str, agent: str) -> NewSession:
        """Sign a volunteer in. Raises the same errors as `person`."""
        record = await self.check_volunteer(email, password, address=address)
        return await self._new_session(address, agent, volunteer_id=record.volunteer.volunteer_id)

    async def check_volunteer(self, email: str, password: str, *, address: str) -> VolunteerRecord:
        """Return the volunteer after checking the account password or account key.

        Raises the same errors as `person`. Account keys cannot be guessed, so they are not rate-limited.
        """
        record = await self._volunteer(email)
        if record is not None and is_account_key(record, password):
            return record
        hashed = password_hash(password, email.lower()) if len(password) <= MOST_PASSWORD_CHARS else ""
        return await self._checked(email, record, hashed, address)

    async def check_client(self, email: str, hashed: str, *, address: str) -> VolunteerRecord:
        """Return the volunteer after checking the password hash that a client sends when it attaches.

        Raises the same errors as `person`, and NotFoundError for an unknown volunteer: the attach protocol reports it.
        """
        record = await self._volunteer(email)
        try:
            return await self._checked(email, record, hashed, address)
        except WrongPasswordError:
            if record is None:
                raise NotFoundError("account", email) from None
            raise

    async def _checked(self, email: str, record: VolunteerRecord | None, hashed: str, address: str) -> VolunteerRecord:
        guess = await self._begin("volunteer", email.lower(), address)
        right = await self._is_volunteers(record, hashed)
        if record is None or not right:
            log.warning("sign-in of a volunteer refused", address=address)
            raise WrongPasswordError
        await self._store.end_attempt(guess, now=self._clock.now())
        return record

    async def _volunteer(self, email: str) -> VolunteerRecord | None:
        known = len(email) <= MOST_NAME_CHARS and "\x00" not in email
        return await self._volunteers.volunteer_by_email(email) if known else None

    async def change_volunteer_password(
        self, record: VolunteerRecord, password: str, *, least: int, but: bytes = b""
    ) -> None:
        """Set a volunteer's password. Clients stay attached; sessions except `but` end. Raises InvalidInputError."""
        checked_password(password, least=least, name=record.email)
        salt, kept = await self.kept(password_hash(password, record.email))
        volunteer_id = record.volunteer.volunteer_id
        await self._volunteers.set_volunteer_password(volunteer_id, salt=salt, password_hash=kept)
        await self._store.end_sessions_of_volunteer(volunteer_id, but=but)

    async def kept(self, hashed: str) -> tuple[bytes, bytes]:
        """Return a salt and the hash to store for a client's hash of a password."""
        async with self._stretching:
            return await asyncio.to_thread(password_kept, hashed)

    async def set_client_hash(self, record: VolunteerRecord, hashed: str, *, email: str) -> None:
        """Set the password, given the hash that clients make of it and this address. Raises AlreadyExistsError."""
        salt, kept = await self.kept(hashed)
        await self._volunteers.set_email(record.volunteer.volunteer_id, email, salt=salt, password_hash=kept)

    async def check_password(self, name: str, password: str, *, address: str) -> PersonRecord:
        """Return the user after checking the password again. Raises the same errors as `person`."""
        guess = await self._begin("person", name, address)
        record = await self._person(name)
        if record is None or not await self._matches(record, password):
            raise WrongPasswordError
        await self._store.end_attempt(guess, now=self._clock.now())
        return record

    async def change_password(
        self, record: PersonRecord, password: str, *, but: bytes = b"", address: str = ""
    ) -> None:
        """Set a user's own password. Sessions other than `but` end. Raises InvalidInputError for a weak password."""
        checked_password(password, least=self._settings().min_password_length, name=record.name)
        kept = await self._stretched(password)
        await self._store.set_password(record.person_id, kept, one_time_until=None)
        await self._store.end_sessions_of_person(record.person_id, but=but)
        await self._store.note_act(Act(self._clock.now(), record.name, "change_password", address=address))

    async def _begin(self, kind: str, name: str, address: str) -> Guess:
        guess = Guess(f"{kind} {name[:MOST_NAME_CHARS]}".replace("\x00", "?"), network_of(address))
        wait_s = await self._store.begin_attempt(guess, now=self._clock.now())
        if wait_s:
            raise TooManyAttemptsError(wait_s)
        return guess

    async def _person(self, name: str) -> PersonRecord | None:
        if "\x00" in name or len(name) > MOST_NAME_CHARS:
            return None
        try:
            return await self._store.person(name)
        except NotFoundError:
            return None

    def _too_old(self, record: PersonRecord) -> bool:
        return record.one_time_until is not None and self._clock.now() >= record.one_time_until

    async def _matches(self, record: PersonRecord | None, password: str) -> bool:
        """Return whether the password matches. An unknown name takes the same time."""
        async with self._stretching:
            if record is None or len(password) > MOST_PASSWORD_CHARS:
                await asyncio.to_thread(stretched, "unknown", self._cost)
                return False
            return await asyncio.to_thread(matches, record.password, password)

    async def _is_volunteers(self, record: VolunteerRecord | None, hashed: str) -> bool:
        """Return whether the hash matches. An unknown volunteer or a missing password takes the same time."""
        if record is None or record.credentials.password_hash is None or not PASSWORD_HASH.fullmatch(hashed):
            return await self._matches(None, hashed)
        async with self._stretching:
            return await asyncio.to_thread(password_matches, record, hashed)

    async def _stretched(self, password: str) -> Stretched:
        async with self._stretching:
            return await asyncio.to_thread(stretched, password, self._cost)

    async def _new_session(
        self, address: str, agent: str, *, person_id: PersonId | None = None, volunteer_id: VolunteerId | None = None
    ) -> NewSession:
        now = self._clock.now()
        value = secrets.token_urlsafe(32)
        shown = "".join(one if one.isprintable() else "?" for one in agent[:AGENT_CHARS])
        session = Session(hash_of(value), now, now, now, address, shown, person_id, volunteer_id)
        session = session.renewed(now, self._settings())
        await self._store.add_session(session)
        return NewSession(value, session)
