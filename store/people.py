"""Stores accounts, submitters and volunteers in PostgreSQL, and sign-ins, sessions, permissions and the audit trail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import asyncpg

from domain.access import (
    FORGOTTEN_AFTER_S,
    KNOWN_FOR_S,
    Act,
    ActChoice,
    Attempts,
    Guess,
    PersonRecord,
    Right,
    Role,
    Session,
    SignedIn,
    Stretched,
    Token,
)
from domain.batches import Account, Submitter, TreeKind, TreeRow
from domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from domain.ordered_work import Permission
from domain.units import AccountId, Instant, PersonId, Seconds, SubmitterId, TokenId, VolunteerId, later
from domain.volunteers import Credentials, MailCode, NewAddress, Volunteer, VolunteerRecord
from store import rows
from store.pool import Connection, OnDatabase
from store.queries import load
from store.rows import mapper, values_of

_credential_values = values_of("authenticator_nonce authenticator_hash password_salt password_hash")
_volunteer_values = values_of("volunteer_id name beta no_gpu max_jobs apps no_cpu max_cpus preferred_at")


_new_address = mapper(NewAddress)
_tree_row = mapper(TreeRow, kind=lambda row: TreeKind(row["kind"]), permissions=lambda row: tuple(row["permissions"]))
Kind = Literal["account", "submitter"]
RENAME: Mapping[Kind, str] = {"account": "rename_account", "submitter": "rename_submitter"}  # queries
DROP: Mapping[Kind, str] = {"account": "drop_account", "submitter": "drop_submitter"}
WHAT_STAYS = defaultdict(lambda: "something that belongs to it") | {  # by table
    "account": "accounts below it: move or delete them first",
    "submitter": "submitters: delete them first",
    "membership": "submitters of other accounts may use it: delete them first",
    "batch": "batches: they leave with `muster purge` once they have ended",
    "person": "an operator account: see `muster operator set`",
}


class PostgresPeople(OnDatabase):
    """Stores accounts and submitters. Names are unique; methods raise AlreadyExistsError and NotFoundError."""

    async def add_account(self, name: str, *, parent: str | None, shares: float) -> Account:
        parent_id = None if parent is None else (await self._account(parent)).account_id
        try:
            row = await self._database.fetch_first("insert_account", name, parent_id, shares)
        except asyncpg.UniqueViolationError as error:
            raise AlreadyExistsError("account", name) from error
        return rows.account(row)

    async def accounts(self) -> Sequence[Account]:
        return [rows.account(row) for row in await self._database.fetch("list_accounts")]

    async def set_account(self, name: str, *, shares: float) -> Account:
        return rows.account(await self._database.fetch_known("update_account_shares", name, shares, kind="account"))

    async def move_account(self, name: str, *, parent: str | None) -> None:
        """Move an account with its subtree below another, or to the top level. Raises ConflictError for a cycle."""

        async def write(connection: Connection) -> None:
            found = [rows.account(row) for row in await connection.fetch(load("lock_accounts"))]
            by_name, by_id = {one.name: one for one in found}, {one.account_id: one for one in found}
            for wanted in (name, *([] if parent is None else [parent])):
                if wanted not in by_name:
                    raise NotFoundError("account", wanted)
            above = None if parent is None else by_name[parent]
            parent_id = None if above is None else above.account_id
            while above is not None:
                if above.name == name:
                    raise ConflictError(f"account {name} would be below itself")
                above = None if above.parent_id is None else by_id[above.parent_id]
            await connection.execute(load("move_account"), name, parent_id)

        await self._database.in_transaction(write)

    async def tree(self) -> Sequence[TreeRow]:
        """Return accounts (parents first), then submitters, then memberships, each in order of name."""
        return [_tree_row(row) for row in await self._database.fetch("account_tree")]

    async def load_tree(
        self, plan: Callable[[Sequence[TreeRow]], Sequence[TreeRow]], *, now: Instant
    ) -> Sequence[TreeRow]:
        """Add or change the rows that `plan` returns for the current tree, in one transaction. Return them."""

        async def write(connection: Connection) -> Sequence[TreeRow]:
            await connection.execute(load("lock_accounts"))
            planned = plan([_tree_row(row) for row in await connection.fetch(load("account_tree"))])
            for one in planned:
                values = (one.name, one.parent or None, one.shares)
                if one.kind is TreeKind.ACCOUNT:
                    await connection.execute(load("put_account"), *values, list(one.permissions))
                elif one.kind is TreeKind.SUBMITTER:
                    await connection.execute(load("put_submitter"), *values, list(one.permissions), now)
                else:
                    await connection.execute(load("put_membership_by_name"), *values)
            return planned

        return await self._database.in_transaction(write)

    async def rename(self, kind: Kind, name: str, new_name: str) -> None:
        """Rename an account or a submitter, including in limits."""

        async def write(connection: Connection) -> None:
            if await connection.fetchval(load(RENAME[kind]), name, new_name) is None:
                raise NotFoundError(kind, name)
            await connection.execute(load("rename_limits"), kind, name, new_name)

        try:
            await self._database.in_transaction(write)
        except asyncpg.UniqueViolationError as error:
            raise AlreadyExistsError(kind, new_name) from error

    async def drop(self, kind: Kind, name: str) -> None:
        """Delete an account or a submitter and its usage. Raises ConflictError if anything else belongs to it."""
        try:
            await self._database.fetch_known(DROP[kind], name, kind=kind)
        except asyncpg.ForeignKeyViolationError as error:
            raise ConflictError(f"{kind} {name} still has {WHAT_STAYS[error.table_name or '']}") from error

    async def add_submitter(self, name: str, *, account: str, shares: float, now: Instant) -> Submitter:
        account_id = (await self._account(account)).account_id
        try:
            row = await self._database.fetch_first("insert_submitter", name, account_id, shares, now)
        except asyncpg.UniqueViolationError as error:
            raise AlreadyExistsError("submitter", name) from error
        return rows.submitter(row)

    async def submitters(self) -> Sequence[Submitter]:
        return [rows.submitter(row) for row in await self._database.fetch("list_submitters")]

    async def submitter(self, name: str) -> Submitter:
        return rows.submitter(await self._database.fetch_known("submitter_by_name", name, kind="submitter"))

    async def set_submitter(self, name: str, *, shares: float) -> Submitter:
        return rows.submitter(
            await self._database.fetch_known("update_submitter_shares", name, shares, kind="submitter")
        )

    async def memberships(self, submitter_id: SubmitterId) -> Mapping[AccountId, float]:
        """Return the submitter's shares in accounts other than its own."""
        found = await self._database.fetch("memberships_of", submitter_id)
        return {row["account_id"]: row["shares"] for row in found}

    async def put_membership(self, submitter: str, *, account: str, shares: float) -> None:
        """Allow a submitter to submit in another account, with the given shares."""
        who, where = await self.submitter(submitter), await self._account(account)
        await self._database.fetch("put_membership", who.submitter_id, where.account_id, shares)

    async def permit_account(self, name: str, permissions: Sequence[Permission]) -> None:
        """Replace the permissions of everyone who submits in or below the account."""
        await self._database.fetch_known("permit_account", name, sorted(permissions), kind="account")

    async def permit_submitter(self, name: str, permissions: Sequence[Permission]) -> None:
        await self._database.fetch_known("permit_submitter", name, sorted(permissions), kind="submitter")

    async def _account(self, name: str) -> Account:
        return rows.account(await self._database.fetch_known("account_by_name", name, kind="account"))


class PostgresVolunteers(OnDatabase):
    """Stores volunteers, identified by e-mail address in lower case."""

    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId:
        """Raises AlreadyExistsError if the e-mail address (in lower case) already exists."""
        row = await self._database.fetch_one(
            "insert_volunteer",
            email.lower(),
            name,
            *_credential_values(credentials),
            cross_project_id,
            beta,
            now,
        )
        if row is None:
            raise AlreadyExistsError("volunteer", email.lower())
        return VolunteerId(row["volunteer_id"])

    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None:
        row = await self._database.fetch_one("volunteer_by_email", email.lower())
        return None if row is None else rows.volunteer_record(row)

    async def volunteer(self, volunteer_id: VolunteerId | None, *, key_hash: bytes | None = None) -> VolunteerRecord:
        """Return the volunteer with this id, or with this hash of the account key. Raises NotFoundError."""
        row = await self._database.fetch_known("volunteer_by_id", volunteer_id, key_hash, kind="volunteer")
        return rows.volunteer_record(row)

    async def rename(self, volunteer_id: VolunteerId, name: str) -> None:
        """Raises NotFoundError."""
        await self._database.fetch_known("rename_volunteer", volunteer_id, name, kind="volunteer")

    async def set_email(self, volunteer_id: VolunteerId, email: str, *, salt: bytes, password_hash: bytes) -> None:
        """Change the e-mail address and the password's hash. Raises AlreadyExistsError, NotFoundError."""
        try:
            await self._database.fetch_known(
                "set_volunteer_email", volunteer_id, email, salt, password_hash, kind="volunteer"
            )
        except asyncpg.UniqueViolationError as error:
            raise AlreadyExistsError("volunteer", email) from error

    async def add_mail_code(
        self,
        code_hash: bytes,
        volunteer_id: VolunteerId,
        *,
        expires_at: Instant,
        now: Instant,
        new: NewAddress | None = None,
    ) -> None:
        """Store a code for a new password, or for the address `new`, replacing the volunteer's previous code."""
        values = (None, None, None) if new is None else (new.email, new.password_salt, new.password_hash)
        await self._database.fetch("add_mail_code", code_hash, volunteer_id, expires_at, now, *values)

    async def take_mail_code(self, code_hash: bytes, *, now: Instant, is_address: bool = False) -> MailCode | None:
        """Consume a code for a new password (or address), None if it is unknown or expired."""
        row = await self._database.fetch_one("take_mail_code", code_hash, now, is_address)
        return None if row is None else MailCode(row["volunteer_id"], _new_address(row) if is_address else None)

    async def volunteers(
        self, *, limit: int | None = None, after: VolunteerId | None = None
    ) -> Sequence[VolunteerRecord]:
        """Return the volunteers in order of id, all of them without a limit."""
        return [rows.volunteer_record(row) for row in await self._database.fetch("list_volunteers", limit, after or 0)]

    async def set_volunteer(self, volunteer: Volunteer, *, instead_of: Volunteer | None = None) -> None:
        """Raises NotFoundError, and ConflictError if it changed since `instead_of` was read."""
        row = await self._database.fetch_one(
            "update_volunteer",
            *_volunteer_values(volunteer),
            instead_of is not None,
            None if instead_of is None else instead_of.preferred_at,
        )
        if row is None and instead_of is not None:
            raise ConflictError("these preferences were changed elsewhere in the meantime")
        if row is None:
            raise NotFoundError("volunteer", volunteer.volunteer_id)

    async def set_volunteer_password(self, volunteer_id: VolunteerId, *, salt: bytes, password_hash: bytes) -> None:
        """The account key does not change. Raises NotFoundError."""
        await self._database.fetch_known(
            "update_volunteer_password", volunteer_id, salt, password_hash, kind="volunteer"
        )


FORGET_AT_ONCE = 1000  # number of expired rows
LAST_ID = 2**62
ALL_ACTS = ActChoice()


class PostgresAccess(OnDatabase):
    """Stores people who sign in (with unique names), their sessions and tokens, and the audit trail."""

    # ------------------------------------------------------------------ people

    async def add_person(
        self,
        name: str,
        *,
        role: Role,
        submitter_id: SubmitterId | None,
        password: Stretched,
        one_time_until: Instant | None,
        now: Instant,
    ) -> PersonRecord:
        row = await self._database.fetch_one(
            "insert_person", name, role, submitter_id, *_password_values(password), one_time_until, now
        )
        if row is None:
            raise AlreadyExistsError("person", name)
        return person(row)

    async def person(self, name: str) -> PersonRecord:
        return person(await self._database.fetch_known("person_by_name", name, kind="person"))

    async def people(self, *, limit: int, after: PersonId | None = None) -> Sequence[PersonRecord]:
        return [person(row) for row in await self._database.fetch("list_people", limit, after or 0)]

    async def people_named(self, names: Iterable[str]) -> Sequence[PersonRecord]:
        """Return the people with these names, by id, without missing ones."""
        return [person(row) for row in await self._database.fetch("people_named", sorted(set(names)))]

    async def person_names(self, person_ids: Iterable[PersonId]) -> Mapping[PersonId, str]:
        found = await self._database.fetch("person_names", sorted(set(person_ids)))
        return {row["person_id"]: row["name"] for row in found}

    async def set_person(
        self, person_id: PersonId, *, role: Role, submitter_id: SubmitterId | None, active: bool
    ) -> PersonRecord:
        row = await self._database.fetch_known("update_person", person_id, role, submitter_id, active, kind="person")
        return person(row)

    async def set_password(self, person_id: PersonId, password: Stretched, *, one_time_until: Instant | None) -> None:
        await self._database.fetch_known(
            "update_password", person_id, *_password_values(password), one_time_until, kind="person"
        )

    # ------------------------------------------------------------------ sessions

    async def add_session(self, session: Session) -> None:
        """Add a session, and delete expired sessions."""
        await self._database.fetch("drop_ended_sessions", session.created_at, FORGET_AT_ONCE)
        await self._database.fetch("insert_web_session", *_session_values(session))

    async def session_of_person(self, session_hash: bytes, *, now: Instant) -> SignedIn | None:
        """Return None if the session ended or belongs to a volunteer, or the person is no longer active."""
        row = await self._database.fetch_one("session_of_person", session_hash, now)
        return None if row is None else SignedIn(_session(row), person=person(row))

    async def session_of_volunteer(self, session_hash: bytes, *, now: Instant) -> SignedIn | None:
        row = await self._database.fetch_one("session_of_volunteer", session_hash, now)
        return None if row is None else SignedIn(_session(row), volunteer=rows.volunteer_record(row))

    async def sessions(self, person_id: PersonId, *, now: Instant, limit: int) -> Sequence[Session]:
        """Return the sessions, the most recently used first."""
        return [_session(row) for row in await self._database.fetch("list_web_sessions", person_id, now, limit)]

    async def renew_session(self, session: Session) -> None:
        """Store `seen_at` and `expires_at`. No effect if the session has ended."""
        await self._database.fetch("renew_web_session", session.session_hash, session.seen_at, session.expires_at)

    async def end_session(self, session_hash: bytes) -> None:
        await self._database.fetch("end_web_session", session_hash)

    async def end_sessions_of_person(self, person_id: PersonId, *, but: bytes = b"") -> int:
        """End the person's sessions except the one with the hash `but`. Return how many were ended."""
        return len(await self._database.fetch("end_sessions_of_person", person_id, but))

    async def end_sessions_of_volunteer(self, volunteer_id: VolunteerId, *, but: bytes = b"") -> int:
        return len(await self._database.fetch("end_sessions_of_volunteer", volunteer_id, but))

    # ------------------------------------------------------------------ tokens

    async def add_token(
        self,
        token_hash: bytes,
        *,
        name: str,
        person_id: PersonId,
        rights: frozenset[Right],
        expires_at: Instant | None,
        now: Instant,
    ) -> Token:
        told = (token_hash, name, person_id, sorted(rights), now, expires_at)
        return _token(await self._database.fetch_first("insert_api_token", *told))

    async def token(self, token_hash: bytes) -> tuple[Token, PersonRecord] | None:
        """Return a token of an active person. The caller must check whether it is still valid."""
        row = await self._database.fetch_one("token_by_hash", token_hash)
        if row is None:
            return None
        return _token(row), person(row)

    async def tokens(
        self, *, person_id: PersonId | None = None, limit: int, after: TokenId | None = None
    ) -> Sequence[Token]:
        return [_token(row) for row in await self._database.fetch("list_api_tokens", person_id, limit, after or 0)]

    async def note_token_use(self, token_id: TokenId, *, now: Instant) -> None:
        await self._database.fetch("note_token_use", token_id, now)

    async def revoke_token(self, token_id: TokenId, *, now: Instant) -> Token:
        """Raises NotFoundError. No effect on a revoked token."""
        return _token(await self._database.fetch_known("revoke_api_token", token_id, now, kind="token"))

    # ------------------------------------------------------------------ attempts

    async def begin_attempt(self, guess: Guess, *, now: Instant) -> Seconds:
        """Return how long to wait before trying a password. If this is 0, a failure is counted in advance for all
        limits, so that parallel attempts count, too; `end_attempt` takes it back.
        """
        await self._database.fetch("drop_old_attempts", later(now, -FORGOTTEN_AFTER_S), FORGET_AT_ONCE)
        await self._database.fetch("drop_known_networks", later(now, -KNOWN_FOR_S), FORGET_AT_ONCE)
        known = await self._database.fetch_one("known_network", guess.who, guess.network) is not None
        limits = guess.limits(known=known)

        async def look(connection: Connection) -> Seconds:
            found = await _locked_attempts(connection, limits, now)
            wait_s = max(one.wait_s(now, limits[key]) for key, one in found.items())
            if not wait_s:
                await _write_attempts(connection, {key: one.more(now) for key, one in found.items()})
            return wait_s

        return await self._database.in_transaction(look)

    async def end_attempt(self, guess: Guess, *, now: Instant) -> None:
        """After the correct password, clear the failures of this name and network, and mark the network as known."""

        async def take_back(connection: Connection) -> None:
            found = await _locked_attempts(connection, guess.limits(known=False), now)
            fewer = {key: Attempts(0, now) if key == guess.own else one.less() for key, one in found.items()}
            await _write_attempts(connection, fewer)
            await connection.execute(load("note_known_network"), guess.who, guess.network, now)

        await self._database.in_transaction(take_back)

    # ------------------------------------------------------------------ audit

    async def note_act(self, act: Act) -> None:
        await self._database.fetch(
            "insert_act", act.acted_at, act.who, act.what, act.target, rows.encoded(act.detail), act.address
        )

    async def acts(
        self, choice: ActChoice = ALL_ACTS, *, limit: int, before: int | None = None, first: int = 0
    ) -> Sequence[Act]:
        """Return acts by who, what and subject, newest first, with act_ids from `first` to below `before`."""
        asked = (limit, LAST_ID if before is None else before, first, choice.what, choice.targets)
        query = ("list_acts_of", *asked, choice.who) if choice.who else ("list_acts", *asked)
        return [_act(row) for row in await self._database.fetch(*query)]

    async def first_act(self, who: str, *, before: int, among: int) -> int:
        """Return the lowest act_id `among` so many acts of a user before an act_id; 0 if there are fewer."""
        row = await self._database.fetch_one("act_before", who, before, among - 1)
        return 0 if row is None else int(row["act_id"])

    async def latest_actions(self, among: int) -> Sequence[str]:
        """Return the kinds of actions among the latest entries."""
        return [row["what"] for row in await self._database.fetch("latest_actions", among)]

    async def act_range(self, choice: ActChoice) -> tuple[int, int]:
        """Return the first act_id of the chosen time, and the first one after it."""
        row = await self._database.fetch_first("act_range", choice.since, choice.until)
        return row["first_id"], row["end_id"]


_attempts = mapper(Attempts)
_act = mapper(Act, detail=lambda row: rows.decoded_object(row["detail"]))
person = mapper(
    PersonRecord,
    password=mapper(Stretched, hash="password_hash", salt="password_salt", n="scrypt_n", r="scrypt_r", p="scrypt_p"),
)
_session = mapper(Session, created_at="session_created_at")
_token = mapper(
    Token,
    name="token_name",
    rights=lambda row: frozenset(Right(one) for one in row["rights"]),
    created_at="token_created_at",
)


_password_values = values_of("hash salt n r p")
_session_values = values_of("session_hash person_id volunteer_id created_at seen_at expires_at address agent")


async def _locked_attempts(connection: Connection, keys: Iterable[str], now: Instant) -> dict[str, Attempts]:
    """Return the counts for each key, locked in key order to avoid deadlocks."""
    found: dict[str, Attempts] = {}
    for key in sorted(keys):
        row = await connection.fetchrow(load("lock_attempt"), key, now)
        assert row is not None
        found[key] = _attempts(row)
    return found


async def _write_attempts(connection: Connection, found: Mapping[str, Attempts]) -> None:
    for key, one in found.items():
        await connection.execute(load("write_attempt"), key, one.failures, one.at)
