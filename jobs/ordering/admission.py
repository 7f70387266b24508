"""Decides whether a batch may be submitted, which grant pays, and the batch's place until the next pass. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.batches import Account, Submitter
from domain.errors import InvalidInputError
from domain.limits import Counts, Quantity, RequestedAmounts, Scope
from domain.ordered_work import Grant, LeafId, Member, Permission, SubmissionOrder
from domain.ordering import BatchFacts, Breakdown, ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import AccountId, Instant
from jobs.ordering.sizing import JobFootprint
from priority.charging import Queue, queue_of, queues
from priority.limits import holds
from priority.policies import policy_of
from priority.scheme import PolicyContext, request_pe


class Grants:
    """The accounts' grants for their current periods. Accounts without a grant use that of the nearest ancestor."""

    def __init__(self, accounts: Iterable[Account], stored: Sequence[Grant], now: Instant) -> None:
        self._parents = {account.account_id: account.parent_id for account in accounts}
        self._grants = {one.account_id: one.at(now) for one in stored}
        self._stored = {one.account_id: one for one in stored}
        self._reserved = dict.fromkeys(self._grants, 0.0)

    def payer(self, account_id: AccountId) -> AccountId | None:
        """Return the account whose grant is charged; None if no grant applies."""
        found: AccountId | None = account_id
        while found is not None and found not in self._grants:
            found = self._parents.get(found)
        return found

    def queue_of(self, name: str, account_id: AccountId, queues: Mapping[str, Queue]) -> tuple[Queue, str]:
        """Return the batch's effective queue and the reason. A queue that no longer exists is treated as normal."""
        payer = self.payer(account_id)
        try:
            return queue_of(name, None if payer is None else self._grants[payer], queues)
        except InvalidInputError:
            plain = Queue(name, 1, 0.0, 1.0)
            return plain, f"{name}: this queue no longer exists; charged as usual"

    def take(self, account_id: AccountId, *, used_su: float, reserved_su: float) -> None:
        """Charge the grant that a batch's account uses: its own, or that of its nearest ancestor with a grant."""
        payer = self.payer(account_id)
        if payer is not None:
            self._grants[payer] = self._grants[payer].charged(used_su)
            self._reserved[payer] += reserved_su

    def charged(self) -> Sequence[Grant]:
        """Return the grants that differ from the stored ones."""
        found = []
        for account_id, grant in sorted(self._grants.items()):
            new = replace(grant, reserved_su=self._reserved[account_id])
            if new != self._stored[account_id]:
                found.append(new)
        return found


@dataclass(frozen=True, slots=True)
class SubmissionPlace:
    """A new batch's place, its effective queue, and why it is in that queue."""

    breakdown: Breakdown
    queue: Queue
    queue_because: str


def permissions_of(submitter: Submitter | Member, account_id: AccountId, accounts: Iterable[Account]) -> frozenset[str]:
    """Return the submitter's permissions in an account: its own, and those of the account and all its ancestors.

    >>> lab = Account(AccountId(1), "lab", permissions=("expedite",))
    >>> ada = Submitter(1, "ada", AccountId(2), permissions=("raise",))
    >>> sorted(permissions_of(ada, AccountId(2), [lab, Account(AccountId(2), "group", AccountId(1))]))
    ['expedite', 'raise']
    """
    by_id = {account.account_id: account for account in accounts}
    found = set(submitter.permissions)
    above: AccountId | None = account_id
    seen = set[AccountId]()
    while above is not None and above in by_id and above not in seen:
        seen.add(above)
        found.update(by_id[above].permissions)
        above = by_id[above].parent_id
    return frozenset(found)


def permitted(members: Iterable[Member], accounts: Sequence[Account], permission: Permission) -> frozenset[LeafId]:
    """Return the (submitter, account) pairs that have the permission.

    >>> lab, other = Account(AccountId(1), "lab", permissions=("deadline",)), Account(AccountId(2), "other")
    >>> ada = [Member(1, "ada", AccountId(1)), Member(1, "ada", AccountId(2))]
    >>> permitted(ada, [lab, other], Permission.DEADLINE)
    frozenset({(1, 1)})
    """
    if not any(permission in one.permissions for one in accounts):
        return frozenset(one.leaf for one in members if permission in one.permissions)
    return frozenset(one.leaf for one in members if permission in permissions_of(one, one.account_id, accounts))


def check_rights(level: ServiceLevel, user_priority: int, permissions: Iterable[str]) -> None:
    """Raise InvalidInputError if the service level or the user priority requires a permission that is missing.

    >>> check_rights(ServiceLevel.STANDBY, -5, ())
    """
    needs = "requires the {} permission for the submitter, its account or an ancestor account"
    if level is ServiceLevel.EXPEDITE and Permission.EXPEDITE not in permissions:
        raise InvalidInputError("level", "normal or standby: expedite " + needs.format(Permission.EXPEDITE), level)
    if user_priority > 0 and Permission.RAISE not in permissions:
        expected = "a whole number from -1024 to 0: above 0 " + needs.format(Permission.RAISE)
        raise InvalidInputError("user_priority", expected, user_priority)


def place(
    facts: BatchFacts,
    size: JobFootprint,
    *,
    known: SubmissionOrder,
    names: Mapping[Scope, str],
    settings: OrderingSettings,
    pool_flop_per_s: float,
) -> SubmissionPlace:
    """Return a new batch's place, based on the last ordering pass. A hard limit may reject the batch.

    `facts.queue` is the requested queue. Raises InvalidInputError naming the queue, or all exceeded limits.
    """
    by_name, now = queues(settings.queues), facts.submitted_at
    grant = None if known.grant is None else known.grant.at(now)
    queue, because = queue_of(facts.queue, grant, by_name)
    _check_limits(facts, size, known, names)
    facts = replace(facts, queue=queue.name, request=size.request, job_runtime_s=size.runtime_s, unpaid=queue.is_unpaid)
    moment = _moment(facts, known, by_name, pool_flop_per_s, now)
    return SubmissionPlace(policy_of(settings).breakdown(facts, moment), queue, because)


def _check_limits(facts: BatchFacts, size: JobFootprint, known: SubmissionOrder, names: Mapping[Scope, str]) -> None:
    counts: Counts = {(scope, names[scope], Quantity.BATCHES): float(count) for scope, count in known.active.items()}
    asked = RequestedAmounts(
        names,
        {Quantity.BATCHES: 1.0, Quantity.JOB_PE: size.pe, Quantity.JOB_RUNTIME_S: size.runtime_s},
        standby=facts.level is ServiceLevel.STANDBY,
    )
    over = holds(asked, known.limits, counts).hard
    if over:
        said = "; ".join(hold.sentence() for hold in over)
        raise InvalidInputError("batch", "a batch within its hard limits", said)


def _moment(
    facts: BatchFacts, known: SubmissionOrder, by_name: Mapping[str, Queue], pool_flop_per_s: float, now: Instant
) -> PolicyContext:
    moment = PolicyContext(
        now,
        {} if known.standing is None else {facts.leaf: known.standing},
        pool_flop_per_s=pool_flop_per_s,
        queue_tiers={queue.name: queue.tier for queue in by_name.values()},
        queue_numbers={queue.name: queue.priority for queue in by_name.values()},
    )
    if known.reference is None:
        return moment
    host, most = known.reference.host, known.reference.most
    return replace(moment, reference=host, largest_pe=request_pe(most, host))
