"""Accounts, volunteers, sign-in and the audit trail, in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import store.memory.applications
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
from domain.batches import Account, TreeKind, TreeRow
from domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from domain.forecasting import began_in_pause
from domain.hosts import Host
from domain.jobs import InstanceState
from domain.ordered_work import Permission
from domain.participation import Participation
from domain.restrictions import Restricted, Restriction
from domain.units import AccountId, Instant, PersonId, Seconds, SubmitterId, TokenId, VolunteerId, elapsed_s
from domain.volunteers import ListedVolunteer, Volunteer, VolunteerRecord
from store.memory.ordering import OrderBook
from store.memory.registry import Registry
from store.memory.work import OnTables, Work
from store.people import ALL_ACTS, Kind
from store.restrictions import BANNED


def _chosen(act: Act, choice: ActChoice) -> bool:
    targets = choice.targets
    return (
        choice.who in ("", act.who)
        and choice.what in ("", act.what, act.action)
        and (targets is None or act.target in targets or not {*act.target.split(", ")}.isdisjoint(targets))
    )


class MemoryPeople(store.memory.applications.MemoryPeople):
    def __init__(self, registry: Registry, work: Work, book: OrderBook) -> None:
        super().__init__(registry, work)
        self._batches, self._book = work.batches, book

    async def add_account(self, name: str, *, parent: str | None, shares: float) -> Account:
        registry = self._registry
        parent_id = None if parent is None else registry.account(parent).account_id
        if name in registry.account_ids:
            raise AlreadyExistsError("account", name)
        account = Account(AccountId(max(registry.accounts, default=0) + 1), name, parent_id, shares)
        registry.accounts[account.account_id] = account
        registry.account_ids[name] = account.account_id
        return account

    async def set_account(self, name: str, *, shares: float) -> Account:
        account = replace(self._registry.account(name), shares=shares)
        self._registry.accounts[account.account_id] = account
        return account

    async def move_account(self, name: str, *, parent: str | None) -> None:
        registry = self._registry
        account = registry.account(name)
        above = None if parent is None else registry.account(parent)
        parent_id = None if above is None else above.account_id
        while above is not None:
            if above.name == name:
                raise ConflictError(f"account {name} would be below itself")
            above = None if above.parent_id is None else registry.accounts[above.parent_id]
        registry.accounts[account.account_id] = replace(account, parent_id=parent_id)

    async def rename(self, kind: Kind, name: str, new_name: str) -> None:
        registry = self._registry
        ids: dict[str, Any] = registry.account_ids if kind == "account" else registry.submitter_ids
        known: dict[Any, Any] = registry.accounts if kind == "account" else registry.submitters
        if name not in ids:
            raise NotFoundError(kind, name)
        if new_name in ids and new_name != name:
            raise AlreadyExistsError(kind, new_name)
        number = ids.pop(name)
        ids[new_name] = number
        known[number] = replace(known[number], name=new_name)
        for key, limit in list(self._book.limits.items()):
            if limit.scope == kind and limit.name == name:
                del self._book.limits[key]
                renamed = replace(limit, name=new_name)
                self._book.limits[key[0], key[1], new_name] = renamed

    async def drop(self, kind: Kind, name: str) -> None:
        registry = self._registry
        number: int = registry.account(name).account_id if kind == "account" else registry.submitter(name).submitter_id
        if kind == "account":
            inside: list[int | None] = [one.parent_id for one in registry.accounts.values()]
            inside += [one.account_id for one in registry.submitters.values()]
            inside += [account_id for further in registry.memberships.values() for account_id in further]
            inside += [batch.new.account_id for batch in self._batches.values()]
        else:
            inside = [batch.new.submitter_id for batch in self._batches.values()]
        if number in inside:
            raise ConflictError(f"something belongs to {kind} {name}")
        place = 1 if kind == "account" else 0
        for leaf in [leaf for leaf in self._book.usage if leaf[place] == number]:
            del self._book.usage[leaf]
        if kind == "account":
            del registry.accounts[registry.account_ids.pop(name)]
        else:
            submitter_id = registry.submitter_ids.pop(name)
            del registry.submitters[submitter_id]
            registry.memberships.pop(submitter_id, None)

    async def tree(self) -> Sequence[TreeRow]:
        registry = self._registry
        names: dict[AccountId | None, str] = {one.account_id: one.name for one in registry.accounts.values()}
        depth: dict[AccountId | None, int] = {None: -1}
        left = list(registry.accounts.values())
        while left:
            for one in [one for one in left if one.parent_id in depth]:
                depth[one.account_id] = depth[one.parent_id] + 1
                left.remove(one)
        accounts = sorted(registry.accounts.values(), key=lambda one: (depth[one.account_id], one.name))
        submitters = sorted(registry.submitters.values(), key=lambda one: one.name)
        return [
            *(
                TreeRow(TreeKind.ACCOUNT, one.name, names.get(one.parent_id, ""), one.shares, one.permissions)
                for one in accounts
            ),
            *(
                TreeRow(TreeKind.SUBMITTER, one.name, names[one.account_id], one.shares, one.permissions)
                for one in submitters
            ),
            *(
                TreeRow(TreeKind.MEMBERSHIP, one.name, names[account_id], shares)
                for one in submitters
                for account_id, shares in sorted(
                    registry.memberships.get(one.submitter_id, {}).items(), key=lambda further: names[further[0]]
                )
            ),
        ]

    async def load_tree(
        self, plan: Callable[[Sequence[TreeRow]], Sequence[TreeRow]], *, now: Instant
    ) -> Sequence[TreeRow]:
        registry, planned = self._registry, plan(await self.tree())
        for one in planned:
            if one.kind is TreeKind.ACCOUNT:
                if one.name not in registry.account_ids:
                    await self.add_account(one.name, parent=None, shares=1.0)
                parent_id = registry.account(one.parent).account_id if one.parent else None
                changed = replace(
                    registry.account(one.name), parent_id=parent_id, shares=one.shares, permissions=one.permissions
                )
                registry.accounts[changed.account_id] = changed
            elif one.kind is TreeKind.SUBMITTER:
                if one.name not in registry.submitter_ids:
                    await self.add_submitter(one.name, account=one.parent, shares=1.0, now=now)
                account_id = registry.account(one.parent).account_id
                submitter = replace(
                    registry.submitter(one.name), account_id=account_id, shares=one.shares, permissions=one.permissions
                )
                registry.submitters[submitter.submitter_id] = submitter
            else:
                await self.put_membership(one.name, account=one.parent, shares=one.shares)
        return planned

    async def put_membership(self, submitter: str, *, account: str, shares: float) -> None:
        registry = self._registry
        submitter_id, account_id = registry.submitter(submitter).submitter_id, registry.account(account).account_id
        registry.memberships.setdefault(submitter_id, {})[account_id] = shares

    async def permit_account(self, name: str, permissions: Sequence[Permission]) -> None:
        account = self._registry.account(name)
        changed = replace(account, permissions=tuple(sorted(permissions)))
        self._registry.accounts[account.account_id] = changed

    async def permit_submitter(self, name: str, permissions: Sequence[Permission]) -> None:
        submitter = self._registry.submitter(name)
        changed = replace(submitter, permissions=tuple(sorted(permissions)))
        self._registry.submitters[submitter.submitter_id] = changed


class MemoryVolunteers(store.memory.applications.MemoryVolunteers):
    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None:
        volunteer_id = self._registry.volunteer_ids_by_email.get(email.lower())
        return None if volunteer_id is None else self._registry.volunteers[volunteer_id]

    async def volunteers(
        self, *, limit: int | None = None, after: VolunteerId | None = None
    ) -> Sequence[VolunteerRecord]:
        found = self._registry.volunteers.values()
        return [one for one in found if one.volunteer.volunteer_id > (after or 0)][:limit]

    async def set_volunteer(self, volunteer: Volunteer, *, instead_of: Volunteer | None = None) -> None:
        record = self._registry.volunteers.get(volunteer.volunteer_id)
        if instead_of is not None and (record is None or record.volunteer.preferred_at != instead_of.preferred_at):
            raise ConflictError("these preferences were changed elsewhere in the meantime")
        if record is None:
            raise NotFoundError("volunteer", volunteer.volunteer_id)
        changed = replace(
            record.volunteer,
            name=volunteer.name,
            beta=volunteer.beta,
            no_gpu=volunteer.no_gpu,
            max_jobs=volunteer.max_jobs,
            apps=volunteer.apps,
            no_cpu=volunteer.no_cpu,
            max_cpus=volunteer.max_cpus,
            preferred_at=volunteer.preferred_at,
        )
        self._registry.volunteers[volunteer.volunteer_id] = replace(record, volunteer=changed)

    async def set_volunteer_password(self, volunteer_id: VolunteerId, *, salt: bytes, password_hash: bytes) -> None:
        record = self._registry.volunteers.get(volunteer_id)
        if record is None:
            raise NotFoundError("volunteer", volunteer_id)
        kept = replace(record.credentials, password_salt=salt, password_hash=password_hash)
        self._registry.volunteers[volunteer_id] = replace(record, credentials=kept)


class MemoryParticipation:
    def __init__(self) -> None:
        self._chosen: dict[VolunteerId, Participation] = {}

    async def participation(self, volunteer_id: VolunteerId) -> Participation:
        return self._chosen.get(volunteer_id, Participation())

    async def set_export_consent(self, volunteer_id: VolunteerId, consent_at: Instant | None) -> None:
        known = self._chosen.get(volunteer_id, Participation())
        kept = None if consent_at is None else known.export_consent_at or consent_at
        self._chosen[volunteer_id] = replace(known, export_consent_at=kept)


class MemoryRestrictions(OnTables):
    async def restrictions(self) -> Sequence[Restriction]:
        found = self._restrictions().values()
        return sorted(sorted(found, key=lambda one: (one.kind, one.name)), key=lambda one: one.set_at, reverse=True)

    async def put(self, restriction: Restriction) -> Restriction:
        known = self._registry.restrictions.get((restriction.kind, restriction.name))
        if known is not None and known.max_jobs == restriction.max_jobs:
            restriction = replace(restriction, set_at=known.set_at)
        self._registry.restrictions[restriction.kind, restriction.name] = restriction
        return restriction

    async def batches_stopped(self, kind: Restricted, name: str) -> int:
        return sum(self._work.has_fresh(one) for one in self._work.of_work(kind, name))

    async def lift(self, kind: Restricted, name: str, *, now: Instant) -> None:
        lifted = self._registry.restrictions.pop((kind, name), None)
        if lifted is None:
            raise NotFoundError("restriction", f"{kind} {name}")
        if kind.is_work:
            self._work.note_resumed(now, began_in_pause(lifted.set_at, now), kind, name)

    async def abort_jobs(self, kind: Restricted, name: str) -> int:
        stored = self._work.hosts.values()
        hosts = [
            one for one in stored if name == str(one.host.host_id if kind is Restricted.HOST else one.host.volunteer_id)
        ]
        ended = [row for one in hosts for row in list(one.held.values())]
        for row in ended:
            self._work.step(row, InstanceState.ABORTED)
            row.reason = BANNED
        self._work.mark({row.job.job_id for row in ended})
        return len(ended)

    async def volunteers(self, text: str, *, before: VolunteerId | None, limit: int) -> Sequence[ListedVolunteer]:
        text, found = text.lower(), []
        for one in self._registry.volunteers.values():
            hosts = self._hosts_of(one.volunteer.volunteer_id)
            said = (one.email, one.volunteer.name, *(host.domain_name for host in hosts))
            if any(text in word.lower() for word in said):
                found.append(one.volunteer.volunteer_id)
        return await self.listed([one for one in sorted(found, reverse=True) if before is None or one < before][:limit])

    async def listed(self, volunteer_ids: Sequence[VolunteerId]) -> Sequence[ListedVolunteer]:
        known = self._registry.volunteers
        return [self._listed(known[one]) for one in sorted(volunteer_ids, reverse=True) if one in known]

    def _hosts_of(self, volunteer_id: VolunteerId) -> list[Host]:
        return [one.host for one in self._work.hosts.values() if one.host.volunteer_id == volunteer_id]

    def _listed(self, record: VolunteerRecord) -> ListedVolunteer:
        one = record.volunteer
        hosts = self._hosts_of(one.volunteer_id)
        last_at = max((host.last_rpc_at for host in hosts), default=None)
        return ListedVolunteer(one.volunteer_id, record.email, one.name, one.created_at, len(hosts), last_at, 0.0)


class MemoryAccess:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._people: dict[PersonId, PersonRecord] = {}
        self._sessions: dict[bytes, Session] = {}
        self._tokens: dict[TokenId, Token] = {}
        self._attempts: dict[str, Attempts] = {}
        self._known_at: dict[Guess, Instant] = {}
        self._acts: list[Act] = []

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
        if any(one.name == name for one in self._people.values()):
            raise AlreadyExistsError("person", name)
        person_id = PersonId(len(self._people) + 1)
        self._people[person_id] = PersonRecord(person_id, name, role, password, now, submitter_id, one_time_until)
        return self._people[person_id]

    async def person(self, name: str) -> PersonRecord:
        for one in self._people.values():
            if one.name == name:
                return one
        raise NotFoundError("person", name)

    async def people(self, *, limit: int, after: PersonId | None = None) -> Sequence[PersonRecord]:
        return [one for one in self._people.values() if one.person_id > (after or 0)][:limit]

    async def people_named(self, names: Iterable[str]) -> Sequence[PersonRecord]:
        return [one for one in self._people.values() if one.name in set(names)]

    async def person_names(self, person_ids: Iterable[PersonId]) -> Mapping[PersonId, str]:
        return {one.person_id: one.name for one in self._people.values() if one.person_id in set(person_ids)}

    async def set_person(
        self, person_id: PersonId, *, role: Role, submitter_id: SubmitterId | None, active: bool
    ) -> PersonRecord:
        changed = replace(self._known(person_id), role=role, submitter_id=submitter_id, active=active)
        self._people[person_id] = changed
        return changed

    async def set_password(self, person_id: PersonId, password: Stretched, *, one_time_until: Instant | None) -> None:
        self._people[person_id] = replace(self._known(person_id), password=password, one_time_until=one_time_until)

    def _known(self, person_id: PersonId) -> PersonRecord:
        if person_id not in self._people:
            raise NotFoundError("person", person_id)
        return self._people[person_id]

    # ------------------------------------------------------------------ sessions

    async def add_session(self, session: Session) -> None:
        self._end(lambda one: one.expires_at <= session.created_at)
        self._sessions[session.session_hash] = session

    async def session_of_person(self, session_hash: bytes, *, now: Instant) -> SignedIn | None:
        session = self._sessions.get(session_hash)
        if session is None or session.person_id is None or session.expires_at <= now:
            return None
        person = self._people[session.person_id]
        return SignedIn(session, person=person) if person.active else None

    async def session_of_volunteer(self, session_hash: bytes, *, now: Instant) -> SignedIn | None:
        session = self._sessions.get(session_hash)
        if session is None or session.volunteer_id is None or session.expires_at <= now:
            return None
        return SignedIn(session, volunteer=self._registry.volunteers[session.volunteer_id])

    async def sessions(self, person_id: PersonId, *, now: Instant, limit: int) -> Sequence[Session]:
        found = [one for one in self._sessions.values() if one.person_id == person_id and one.expires_at > now]
        return sorted(found, key=lambda one: -one.seen_at)[:limit]

    async def renew_session(self, session: Session) -> None:
        if known := self._sessions.get(session.session_hash):
            renewed = replace(known, seen_at=session.seen_at, expires_at=session.expires_at)
            self._sessions[session.session_hash] = renewed

    async def end_session(self, session_hash: bytes) -> None:
        self._sessions.pop(session_hash, None)

    async def end_sessions_of_person(self, person_id: PersonId, *, but: bytes = b"") -> int:
        return self._end(lambda one: one.person_id == person_id and one.session_hash != but)

    async def end_sessions_of_volunteer(self, volunteer_id: VolunteerId, *, but: bytes = b"") -> int:
        return self._end(lambda one: one.volunteer_id == volunteer_id and one.session_hash != but)

    def _end(self, whether: Callable[[Session], bool]) -> int:
        ended = [one.session_hash for one in self._sessions.values() if whether(one)]
        for session_hash in ended:
            del self._sessions[session_hash]
        return len(ended)

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
        token_id = TokenId(len(self._tokens) + 1)
        self._tokens[token_id] = Token(token_id, token_hash, name, person_id, rights, now, expires_at)
        return self._tokens[token_id]

    async def token(self, token_hash: bytes) -> tuple[Token, PersonRecord] | None:
        for one in self._tokens.values():
            person = self._people[one.person_id]
            if one.token_hash == token_hash and person.active:
                return one, person
        return None

    async def tokens(
        self, *, person_id: PersonId | None = None, limit: int, after: TokenId | None = None
    ) -> Sequence[Token]:
        found = (one for one in self._tokens.values() if person_id is None or one.person_id == person_id)
        return [one for one in found if one.token_id > (after or 0)][:limit]

    async def note_token_use(self, token_id: TokenId, *, now: Instant) -> None:
        self._tokens[token_id] = replace(self._tokens[token_id], last_used_at=now)

    async def revoke_token(self, token_id: TokenId, *, now: Instant) -> Token:
        token = self._tokens.get(token_id)
        if token is None:
            raise NotFoundError("token", token_id)
        revoked_at = now if token.revoked_at is None else token.revoked_at
        self._tokens[token_id] = replace(token, revoked_at=revoked_at)
        return self._tokens[token_id]

    # ------------------------------------------------------------------ attempts

    async def begin_attempt(self, guess: Guess, *, now: Instant) -> Seconds:
        for key, one in list(self._attempts.items()):
            if elapsed_s(one.at, now) > FORGOTTEN_AFTER_S:
                del self._attempts[key]
        known_at = self._known_at.get(guess)
        limits = guess.limits(known=known_at is not None and elapsed_s(known_at, now) <= KNOWN_FOR_S)
        found = {key: self._attempts.get(key, Attempts(0, now)) for key in limits}
        wait_s = max(one.wait_s(now, limits[key]) for key, one in found.items())
        if not wait_s:
            self._attempts |= {key: one.more(now) for key, one in found.items()}
        return wait_s

    async def end_attempt(self, guess: Guess, *, now: Instant) -> None:
        self._attempts.pop(guess.own, None)
        for key in guess.limits(known=False):
            if key in self._attempts:
                self._attempts[key] = self._attempts[key].less()
        self._known_at[guess] = now

    # ------------------------------------------------------------------ audit

    async def note_act(self, act: Act) -> None:
        detail = json.loads(json.dumps(act.detail))
        self._acts.append(replace(act, detail=detail, act_id=len(self._acts) + 1))

    async def acts(
        self, choice: ActChoice = ALL_ACTS, *, limit: int, before: int | None = None, first: int = 0
    ) -> Sequence[Act]:
        found = self._acts if before is None else self._acts[: max(0, before - 1)]
        return [one for one in reversed(found) if one.act_id >= first and _chosen(one, choice)][:limit]

    async def first_act(self, who: str, *, before: int, among: int) -> int:
        own = [one.act_id for one in reversed(self._acts) if one.who == who and one.act_id < before]
        return own[among - 1] if len(own) >= among else 0

    async def latest_actions(self, among: int) -> Sequence[str]:
        return sorted({one.what for one in self._acts[-among:]})

    async def act_range(self, choice: ActChoice) -> tuple[int, int]:
        first, end = (sum(one.acted_at < at for one in self._acts) + 1 for at in (choice.since, choice.until))
        return first, end
