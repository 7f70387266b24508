"""Changes the importance of a batch: user priority, service level, queue, account, deadline. Says which of them act."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import msgspec

from administration.access.who import Person
from administration.names import checked_text, chosen
from administration.ordering.places import at_levels, expedite_in_words, position, sent_first, urgent_of
from administration.stopped import NOTHING_STOPPED, Stopped
from domain.access import Role
from domain.batches import Account, Batch, BatchState, QoS, Submitter, is_late
from domain.bounds import FURTHEST_S
from domain.errors import InvalidInputError, NotFoundError
from domain.ordered_work import Permission
from domain.ordering import ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.queue_hosts import hosts_of_queue
from domain.restrictions import pause_of
from domain.units import AccountId, BatchId, Instant, later
from jobs.ordering.admission import check_rights, permissions_of
from jobs.spec import HIGHEST_PRIORITY, LOWEST_PRIORITY
from priority.charging import queues
from priority.policies import LEVEL_TIERS, policy_of
from store.postgres import PostgresStore


class ImportanceBody(msgspec.Struct, forbid_unknown_fields=True):
    """The fields to change; None: unchanged. `release`: no longer wait for other batches.

    `why` is recorded in the audit trail.
    """

    user_priority: int | None = None
    level: str | None = None
    queue: str | None = None
    account: str | None = None
    deadline_at: float | None = None
    release: bool | None = None
    why: str | None = None

    def __post_init__(self) -> None:
        """Drop what changes nothing, so that the audit trail does not record it."""
        self.release = self.release or None
        self.why = (self.why or "").strip() or None

    def given(self) -> dict[str, object]:
        """Return the fields to change."""
        fields = msgspec.structs.asdict(self).items()
        return {name: value for name, value in fields if value is not None and name != "why"}

    def differing(self, batch: Batch) -> ImportanceBody:
        """Return only the fields whose values differ from the batch's; the account always counts as different."""
        same = {name: None for name, value in self.given().items() if value == getattr(batch, name, None)}
        return msgspec.structs.replace(self, **same)

    def noted(self, batch: Batch) -> dict[str, object]:
        """Return what the audit trail records: the changed fields, the batch's former values and the reason."""
        given = self.given()
        was = {name: getattr(batch, name) for name in given if hasattr(batch, name)}
        return {**given, "was": was, **({"why": self.why} if self.why else {})}


@dataclass(frozen=True, slots=True)
class FieldEffect:
    """Whether a field acts on the order under the policy in force, and how, in words."""

    acts: bool
    words: str


STANDBY_LAST = "standby goes after all others, unless it is sent first"


def effects_of(
    ordering: OrderingSettings,
    permissions: Collection[str],
    level: ServiceLevel = ServiceLevel.NORMAL,
    *,
    sent_first: int = 0,
) -> Mapping[str, FieldEffect]:
    """Return the effect of each field on a batch of this level. `permissions`: of its submitter, or of an operator.

    `sent_first`: the number of batches that are sent first.

    >>> found = effects_of(OrderingSettings(), [Permission.EXPEDITE], sent_first=2)
    >>> [name for name, one in found.items() if one.acts], found["level"].words.partition(";")[0]
    (['level'], 'expedite goes before all others but the 2 batches that are sent first')
    """
    policy = policy_of(ordering)
    scheme = policy.schemes[level]
    weighed = scheme.weights().keys()
    none = f"does not change the position under {ordering.policy}"
    points = f"changes the points under {ordering.policy}"
    known = queues(ordering.queues)
    last = _unpaid_last(ordering)
    ranks = {queue.tier if scheme.with_tiers else queue.priority for queue in known.values() if not queue.is_unpaid}
    by_queue = (scheme.with_tiers or bool(weighed & {"queue", "CLASS"})) and len(ranks) > 1
    by_deadline = "DEADLINE" in weighed
    dated = by_deadline and Permission.DEADLINE in permissions
    needs = f"changes the position only with the permission {Permission.DEADLINE}"
    expedites = Permission.EXPEDITE in permissions or level is ServiceLevel.EXPEDITE
    expedite = expedite_in_words(sent_first)
    by_level = (f"{expedite}; {STANDBY_LAST}" if expedites else STANDBY_LAST) if policy.by_level else points
    queue = "batches in a queue of a lower tier go first" if scheme.with_tiers else points
    return {
        "level": FieldEffect(True, by_level),
        "queue": FieldEffect(by_queue, "; ".join(filter(None, (queue, last))) if by_queue else _except(none, last)),
        "user_priority": FieldEffect(*((True, points) if weighed & {"user", "USERPRIO"} else (False, none))),
        "deadline": FieldEffect(dated, points if dated else needs if by_deadline else none),
    }


def _unpaid_last(ordering: OrderingSettings) -> str:
    """Return that work in unpaid queues goes last, "" without such queues."""
    unpaid = ", ".join(sorted(one.name for one in queues(ordering.queues).values() if one.is_unpaid))
    return f"work in {unpaid} goes last" if unpaid else ""


def _except(rule: str, exception: str) -> str:
    return f"{rule}, except that {exception}" if exception else rule


def idle_in_words(effects: Mapping[str, FieldEffect]) -> str:
    """Return which of queue and user priority do not act on the order, "" if both do.

    >>> idle_in_words(effects_of(OrderingSettings(), ()))
    'Queue and user priority'
    """
    idle = [name.replace("_", " ") for name in ("queue", "user_priority") if not effects[name].acts]
    return " and ".join(idle).capitalize()


def queue_choices(ordering: OrderingSettings) -> Mapping[str, str]:
    """Return the queues by name, each with what it is for: its hosts, its place under the policy, and its charge.

    >>> settings = OrderingSettings(queues="fast=0/1/2 lab=1/0.5/1 normal=1/0.5/1 slow=2/0/0", policy="equal_access")
    >>> for one in queue_choices(replace(settings, queue_hosts="lab:label=lab")).values():
    ...     print(one)
    fast: before normal, charged 2 times
    lab: only hosts with label = lab
    normal
    slow: after all others
    """
    scheme, known = policy_of(ordering).schemes[ServiceLevel.NORMAL], queues(ordering.queues)
    by_points, normal, found = bool(scheme.weights().keys() & {"queue", "CLASS"}), known.get("normal"), {}
    for name, queue in sorted(known.items()):
        hosts = hosts_of_queue(ordering.queue_hosts, name)
        said = [f"only hosts with {hosts}"] if hosts else []
        if queue.is_unpaid:
            said.append("after all others")
        elif normal is not None and queue != normal:
            if scheme.with_tiers and queue.tier != normal.tier:
                said.append(f"{'before' if queue.tier < normal.tier else 'after'} normal")
            elif by_points and not scheme.with_tiers and queue.priority != normal.priority:
                said.append(f"{'more' if queue.priority > normal.priority else 'fewer'} points than normal")
            if queue.rate != normal.rate:
                said.append(f"charged {queue.rate:g} times")
            said = said or ["like normal"]
        found[name] = f"{name}: {', '.join(said)}" if said else name
    return found


BY_OPERATORS: Set[str] = frozenset({Permission.EXPEDITE, Permission.RAISE})  # operators need no permission for them


@dataclass(frozen=True, slots=True)
class ImportanceChoices:
    """What a batch's submitter may choose. Other choices need the `missing` permissions.

    `idle`: which fields do not change the position, in words. `by_level`: the level is a strict tier.
    """

    levels: Sequence[str]
    highest_priority: int
    missing: Sequence[str]
    effects: Mapping[str, FieldEffect]
    idle: str
    by_level: bool

    @property
    def only_ends(self) -> bool:
        """Return whether a batch can only be moved before or after all others, by its level."""
        return self.by_level and not any(one.acts for name, one in self.effects.items() if name != "level")


async def choices_of(
    store: PostgresStore, batch: Batch, ordering: OrderingSettings, *, by_operator: bool, sent_first: int = 0
) -> ImportanceChoices:
    """Return the choices for a batch, present values included. `sent_first`: the number of batches sent first."""
    submitters = {one.submitter_id: one for one in await store.people.submitters()}
    accounts = await store.people.accounts()
    granted = set(permissions_of(submitters[batch.submitter_id], batch.account_id, accounts))
    return _choices(
        ordering,
        granted | BY_OPERATORS if by_operator else granted,
        level=batch.level,
        user_priority=batch.user_priority,
        dated=batch.deadline_at is not None,
        sent_first=sent_first,
    )


async def choices_for(
    store: PostgresStore, person: Person, ordering: OrderingSettings, *, sent_first: int = 0
) -> ImportanceChoices:
    """Return the choices for new batches of a user: operators' own, or those of the submitter's own account."""
    if person.may(Role.OPERATOR):
        return _choices(ordering, BY_OPERATORS, sent_first=sent_first)
    own = [one for one in await store.people.submitters() if one.submitter_id == person.submitter_id]
    accounts = await store.people.accounts()
    granted = {name for one in own for name in permissions_of(one, one.account_id, accounts)}
    return _choices(ordering, granted, sent_first=sent_first)


def _choices(
    ordering: OrderingSettings,
    granted: Collection[str],
    *,
    level: ServiceLevel = ServiceLevel.NORMAL,
    user_priority: int = 0,
    dated: bool = False,
    sent_first: int = 0,
) -> ImportanceChoices:
    """Return the choices for a batch with these present values."""
    effects = effects_of(ordering, granted, level, sent_first=sent_first)
    dated = dated and effects_of(ordering, list(Permission))["deadline"].acts
    wanted = {Permission.RAISE: effects["user_priority"].acts, Permission.DEADLINE: dated}
    refused = {ServiceLevel.EXPEDITE} - {level} if Permission.EXPEDITE not in granted else set()
    return ImportanceChoices(
        [one.value for one in ServiceLevel if one not in refused],
        HIGHEST_PRIORITY if Permission.RAISE in granted else max(0, user_priority),
        [one.value for one in Permission if wanted.get(one, True) and one not in granted],
        effects,
        idle_in_words(effects),
        policy_of(ordering).by_level,
    )


async def set_importance(
    store: PostgresStore,
    batch_id: BatchId,
    asked: ImportanceBody,
    *,
    by_operator: bool = False,
    now: Instant,
    stopped: Stopped = NOTHING_STOPPED,
) -> None:
    """Change the given fields, all or none. A level that is a strict tier acts at once, the others at the next
    ordering pass.

    The account can change until the first instance is sent. The deadline can change only if the batch has one;
    instances already sent keep their due dates. Operators need no permission for the level and priority they give.
    A new position starts a new sending rate for forecasts; batches that are `stopped` have none. Raises
    InvalidInputError for values out of range, missing permissions or a change made too late, and NotFoundError if the
    batch is not active.
    """
    if not asked.given():
        expected = "a user priority, a level, a queue, an account or a deadline to change, or release"
        raise InvalidInputError("batch", expected, "none of them")
    _check_priority(asked.user_priority)
    checked_text(asked.why or "", "why")
    level = None if asked.level is None else chosen(ServiceLevel, asked.level, "level")
    ordering = (await store.settings.in_force()).ordering
    known = queues(ordering.queues)
    if asked.queue is not None and asked.queue not in known:
        raise InvalidInputError("queue", "one of " + ", ".join(known), asked.queue)
    batch = await store.views.batch(batch_id)
    if batch.state is not BatchState.ACTIVE:
        raise NotFoundError("active batch", batch_id)
    deadline_at = None if asked.deadline_at is None else _deadline_of(batch, Instant(asked.deadline_at), now)
    account_id = await _allowed(store, batch, asked.account, level, asked.user_priority, by_operator=by_operator)
    changed = asked.differing(batch)
    moves = await _moves(store, batch, changed, ordering, now, stopped)
    tiers = LEVEL_TIERS if level is not None and policy_of(ordering).by_level else None
    is_at_once = tiers is not None and changed.given().keys() == {"level"}
    rules = store.ordering_rules
    if account_id is not None:
        await rules.set_account(batch_id, account_id)
    if deadline_at is not None:
        await rules.set_deadline(batch_id, deadline_at)
    if moves:  # first, so that no ordering changes the tier that it notes
        await rules.set_moved(batch_id, now if is_at_once else later(now, ordering.interval_s))
    if level is not None or asked.queue is not None:
        await rules.set_service(batch_id, level=level, queue=asked.queue, tiers=tiers)
    if asked.user_priority is not None:
        await rules.set_user_priority(batch_id, asked.user_priority)
    if asked.release:
        await rules.release(batch_id)


async def _moves(
    store: PostgresStore,
    batch: Batch,
    changed: ImportanceBody,
    ordering: OrderingSettings,
    now: Instant,
    stopped: Stopped,
) -> bool:
    """Return whether changed values act on the batch's position in the order, or on whether it is sent first."""
    given, choices = changed.given(), await choices_of(store, batch, ordering, by_operator=False)
    acting = {name for name, one in choices.effects.items() if one.acts and {name, f"{name}_at"} & given.keys()}
    by_level = acting == {"level"} and choices.by_level
    if acting and (not by_level or await _level_moves(store, batch, ServiceLevel(str(changed.level)), now, stopped)):
        return True
    if changed.queue is not None:  # queues may differ in their hosts, and unpaid work goes last under each policy
        is_unpaid = queues(ordering.queues)[changed.queue].is_unpaid
        if ordering.queue_hosts or is_unpaid != batch.unpaid:
            return True
    if changed.deadline_at is None:
        return False
    then = replace(batch, deadline_at=Instant(changed.deadline_at))
    catalogue = await store.applications.load_catalogue()
    is_first, was_first = (urgent_of([one], catalogue, now) for one in (then, batch))
    return is_first != was_first or is_late(then.deadline_at, now) != is_late(batch.deadline_at, now)


async def _level_moves(store: PostgresStore, batch: Batch, level: ServiceLevel, now: Instant, stopped: Stopped) -> bool:
    """Return whether a level, a strict tier, changes a batch's position, or may change it because that is not known.

    That of a paused batch is not known.
    """
    rules, ids = store.ordering_rules, [batch.batch_id]
    if not await rules.with_fresh(ids):
        return False
    if pause_of(stopped.restrictions, batch) is not None:
        return True
    catalogue = await store.applications.load_catalogue()
    apps, unrunnable = catalogue.sent_apps(), stopped.unrunnable
    records, places = await rules.breakdowns(ids), await rules.places(ids, apps, without=unrunnable)
    if not records or not places:
        return True
    first = await sent_first(store, catalogue, now, unrunnable)
    at = position(batch, places[batch.batch_id], first)
    ordered_as = ServiceLevel(str(records[batch.batch_id].get("level", batch.level.value)))
    return (await at_levels(store, batch, at, ordered_as, first, apps, unrunnable)).get(level) != at


def _deadline_of(batch: Batch, at: Instant, now: Instant) -> Instant:
    """Return the batch's new deadline. Raises InvalidInputError if it has passed or the batch has none."""
    if not now < at <= now + FURTHEST_S:
        expected = f"a time after now ({now:.0f}) and at most {now + FURTHEST_S:.0f}"
        raise InvalidInputError("deadline_at", expected, at)
    if batch.qos is not QoS.SHORT_DEADLINE:
        expected = f"a batch with qos {QoS.SHORT_DEADLINE}; other batches have no deadline"
        raise InvalidInputError("deadline_at", expected, batch.qos)
    return at


def _check_priority(user_priority: int | None) -> None:
    if user_priority is not None and not LOWEST_PRIORITY <= user_priority <= HIGHEST_PRIORITY:
        expected = f"a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}"
        raise InvalidInputError("user_priority", expected, user_priority)


async def _allowed(
    store: PostgresStore,
    batch: Batch,
    account: str | None,
    level: ServiceLevel | None,
    user_priority: int | None,
    *,
    by_operator: bool,
) -> AccountId | None:
    """Return the new account, None if it does not change. Raises InvalidInputError for missing permissions.

    A moved batch needs permissions for its level and priority in the new account.
    """
    submitters = {one.submitter_id: one for one in await store.people.submitters()}
    submitter, accounts = submitters[batch.submitter_id], await store.people.accounts()
    account_id = batch.account_id
    if account is not None:
        account_id = await _account_of(store, batch, submitter, account, accounts)
    moves = account_id != batch.account_id
    old_level, old_priority = (batch.level, batch.user_priority) if moves else (ServiceLevel.NORMAL, 0)
    priority = old_priority if user_priority is None else user_priority
    if by_operator:
        level, priority = None, 0 if user_priority is not None else priority
    check_rights(level or old_level, priority, permissions_of(submitter, account_id, accounts))
    return account_id if moves else None


async def _account_of(
    store: PostgresStore, batch: Batch, submitter: Submitter, name: str, accounts: Sequence[Account]
) -> AccountId:
    """Return the account with this name if the submitter may use it. Raises InvalidInputError."""
    further = await store.people.memberships(submitter.submitter_id)
    mine = {one.name: one.account_id for one in accounts if one.account_id in {submitter.account_id, *further}}
    if name not in mine:
        expected = f"an account of submitter {submitter.name} ({', '.join(sorted(mine))})"
        raise InvalidInputError("account", expected, name)
    if mine[name] != batch.account_id and batch.counts.sent:
        expected = "a batch without sent instances: usage stays with the account it was charged to"
        raise InvalidInputError("account", expected, f"{batch.counts.sent} sent instances")
    return mine[name]
