"""Bans and limits volunteers and hosts, and pauses apps, queues and batches. Submitters may pause their own batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from aiohttp import web

from administration.access.who import NotAllowedError, Person, admit, admit_owner
from administration.names import checked_text
from administration.show import shown
from domain.access import Role
from domain.apps import App
from domain.batches import Batch, BatchState
from domain.errors import ConflictError, InvalidInputError, NotFoundError
from domain.restrictions import Restricted, Restriction, name_of
from domain.units import AppId, BatchId, HostId, Instant, VolunteerId
from muster_client import shapes
from priority.charging import queues
from store.postgres import PostgresStore

MOST_JOBS = 1_000_000
LARGEST = {Restricted.BATCH: 2**62}
LARGEST_ID = 2**31 - 1
MOST_NAMED = 3  # hosts with the same name that a refusal lists


async def admit_restrictor(request: web.Request, store: PostgresStore, kind: Restricted, name: str) -> Person:
    """Return the caller if allowed to set and lift a restriction: an operator, or the submitter of a batch.

    A submitter cannot resume a batch that an operator paused. Raises NotSignedInError, NotAllowedError, NotFoundError.
    """
    if kind is not Restricted.BATCH:
        return admit(request, Role.OPERATOR)
    person = admit(request, Role.SUBMITTER)
    if person.may(Role.OPERATOR):
        return person
    batch = await store.views.batch(BatchId(_id_of(kind, name)))
    admit_owner(request, batch.submitter_id)
    found = {(one.kind, one.name): one for one in await store.restrictions.restrictions()}
    pause = found.get((kind, str(batch.batch_id)))
    if not await may_resume(store, person, batch, pause):
        raise NotAllowedError(f"batch {batch.batch_id} is paused by an operator: only operators can resume it")
    return person


async def may_resume(store: PostgresStore, person: Person, batch: Batch, pause: Restriction | None) -> bool:
    """Return whether a user may pause a batch, or change its pause."""
    return bool(await resumable(store, person, [batch], {} if pause is None else {batch.batch_id: pause}))


async def resumable(
    store: PostgresStore, person: Person, batches: Collection[Batch], pauses: Mapping[BatchId, Restriction]
) -> set[BatchId]:
    """Return those batches that a user may pause, or change the pause of. Pauses by operators belong to operators."""
    if person.may(Role.OPERATOR):
        return {one.batch_id for one in batches}
    own = [one for one in batches if person.may(Role.SUBMITTER) and person.owns(one.submitter_id)]
    set_by = {one.batch_id: pauses[one.batch_id].set_by for one in own if one.batch_id in pauses}
    others = set(set_by.values()) - {person.name}
    known = {one.name: one for one in await store.access.people_named(others)} if others else {}

    def belongs_to_submitter(batch: Batch) -> bool:
        name = set_by.get(batch.batch_id, person.name)
        by = known.get(name)
        return name == person.name or (
            by is not None and by.submitter_id == batch.submitter_id and by.role is not Role.OPERATOR
        )

    return {one.batch_id for one in own if belongs_to_submitter(one)}


async def restrict(
    store: PostgresStore,
    kind: Restricted,
    name: str,
    *,
    max_jobs: int,
    why: str,
    by: str,
    now: Instant,
    abort: bool = False,
) -> shapes.RestrictionShown:
    """Set a restriction, or replace it. `name`: an id, a volunteer's e-mail address, or the name of a host, app, queue.

    `abort`: a ban ends the jobs in progress at once; the hosts are asked to drop them at their next requests.
    Raises InvalidInputError, NotFoundError, and ConflictError for a batch that has ended.
    """
    if not why.strip():
        raise InvalidInputError("why", "a reason, for the audit trail", why)
    most = 0 if kind.is_work else MOST_JOBS
    if not 0 <= max_jobs <= most:
        raise InvalidInputError("max_jobs", f"a whole number from 0 to {most}", max_jobs)
    if abort and (kind.is_work or max_jobs):
        raise InvalidInputError("abort", "false, because only a ban (max_jobs 0) ends jobs in progress", abort)
    key = await key_of(store, kind, name)
    if kind is Restricted.BATCH and (await store.views.batch(BatchId(int(key)))).state is not BatchState.ACTIVE:
        raise ConflictError(f"batch {key} has ended")
    asked = Restriction(kind, key, max_jobs, checked_text(why.strip(), "why"), by, now, abort)
    made = await store.restrictions.put(asked)
    if abort:
        await store.restrictions.abort_jobs(kind, key)
    return restriction_as_json(made, await _apps(store) if kind is Restricted.APP else {})


async def lift(store: PostgresStore, kind: Restricted, name: str, *, now: Instant) -> str:
    """Lift a restriction and return the id of its object, or the name of the app or queue.

    The object need not exist any more. Raises InvalidInputError, NotFoundError.
    """
    if kind is not Restricted.APP:  # the key of an app is its id, which may be another app's name
        with suppress(NotFoundError):
            await store.restrictions.lift(kind, name, now=now)
            return name
    key = await key_of(store, kind, name)
    await store.restrictions.lift(kind, key, now=now)
    return name if kind is Restricted.APP else key


async def listed(store: PostgresStore) -> list[shapes.RestrictionShown]:
    """Return all restrictions, latest first."""
    found = await store.restrictions.restrictions()
    apps = await _apps(store) if any(one.kind is Restricted.APP for one in found) else {}
    return [restriction_as_json(one, apps) for one in found]


async def restriction(store: PostgresStore, kind: Restricted, name: str) -> shapes.RestrictionShown:
    """Return the restriction of an object. Raises InvalidInputError, NotFoundError."""
    named = {(one["kind"], one["name"]): one for one in await listed(store)}
    key = name if kind is Restricted.APP or (kind, name) in named else await key_of(store, kind, name)
    if (kind, key) not in named:
        raise NotFoundError("restriction", f"{kind} {name}")
    return named[kind, key]


async def paused(store: PostgresStore) -> list[shapes.RestrictionShown]:
    """Return the pauses of work, latest first."""
    return [one for one in await listed(store) if Restricted(one["kind"]).is_work]


def restriction_as_json(one: Restriction, apps: Mapping[AppId, App]) -> shapes.RestrictionShown:
    """Return a restriction; apps are named instead of numbered."""
    return shown(shapes.RestrictionShown, one, name=name_of(one, apps))


def in_words(one: Restriction, apps: Mapping[AppId, App]) -> str:
    """Return a restriction as a sentence.

    >>> in_words(Restriction(Restricted.QUEUE, "bonus", 0, "the disk is full", "ada", Instant(0.0)), {})
    'queue bonus is paused by ada: the disk is full'
    """
    what = "paused" if one.kind.is_work else f"limited to {one.max_jobs} jobs" if one.max_jobs else "banned"
    return f"{one.kind} {name_of(one, apps)} is {what} by {one.set_by}: {one.why}"


async def key_of(store: PostgresStore, kind: Restricted, name: str) -> str:
    """Return the key of an existing object. Raises InvalidInputError, NotFoundError."""
    match kind:
        case Restricted.APP:
            return str((await store.applications.app(name)).app_id)
        case Restricted.QUEUE:
            known = queues((await store.applications.load_catalogue()).settings.ordering.queues)
            if name not in known:
                raise InvalidInputError("queue", f"one of {', '.join(known)}", name)
            return name
        case Restricted.VOLUNTEER if "@" in name:
            record = await store.volunteers.volunteer_by_email(name.lower())
            if record is None:
                raise NotFoundError("volunteer", name)
            return str(record.volunteer.volunteer_id)
        case Restricted.HOST if name and not name.isdigit():
            return await _host_named(store, name)
    number = _id_of(kind, name)
    match kind:
        case Restricted.VOLUNTEER:
            if not await store.restrictions.listed([VolunteerId(number)]):
                raise NotFoundError("volunteer", number)
        case Restricted.HOST:
            await store.views.host(HostId(number))
        case _:
            await store.views.batch(BatchId(number))
    return str(number)


async def _host_named(store: PostgresStore, name: str) -> str:
    """Return the number of the only host with this name. Raises InvalidInputError, NotFoundError."""
    numbers = [str(one) for one in await store.host_lists.named(checked_text(name, "host"), limit=MOST_NAMED)]
    if not numbers:
        raise NotFoundError("host", name)
    if len(numbers) > 1:
        raise InvalidInputError("host", f"a number, because hosts have this name: {', '.join(numbers)}", name)
    return numbers[0]


def _id_of(kind: Restricted, name: str) -> int:
    """Parse an id. Raises InvalidInputError."""
    most = LARGEST.get(kind, LARGEST_ID)
    if name.isascii() and name.isdigit() and len(name) < 20 and 1 <= int(name) <= most:
        return int(name)
    also = {Restricted.HOST: " or a host's name", Restricted.VOLUNTEER: " or an e-mail address"}.get(kind, "")
    raise InvalidInputError(str(kind), f"a whole number from 1 to {most}{also}", name)


async def _apps(store: PostgresStore) -> Mapping[AppId, App]:
    return {app.app_id: app for app in await store.applications.apps()}
