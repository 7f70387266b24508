"""May another job of a batch be sent, and which limits hold it if not? Pure.

Every limit is looked at, so that a held batch names all that hold it. Hard limits hold; who is over a soft one goes
after everybody who is not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from domain.limits import SIZE_LIMITS, Counts, Hold, Holds, Limit, Quantity, RequestedAmounts, Scope

NO_MORE_THAN = 1e-9  # above a bound by less is at it


def limits_of(asked: RequestedAmounts, limits: Iterable[Limit]) -> list[tuple[Limit, str]]:
    """The limits that apply: a limit of its own name comes instead of everybody's."""
    found: dict[tuple[Scope, Quantity], tuple[Limit, str]] = {}
    for limit in limits:
        name = asked.names.get(limit.scope)
        key = (limit.scope, limit.quantity)
        own = limit.name is not None
        if name is None or (own and limit.name != name) or (not own and key in found):
            continue
        found[key] = (limit, name)
    return list(found.values())


def holds(asked: RequestedAmounts, limits: Iterable[Limit], counts: Counts) -> Holds:
    """Every soft and hard limit that one more job would be over. Work on standby is free of size limits.

    >>> limit = Limit(Scope.SUBMITTER, Quantity.JOBS, hard=2.0)
    >>> one_more = RequestedAmounts({Scope.SUBMITTER: "ada"}, {Quantity.JOBS: 1.0})
    >>> holds(one_more, [limit], {(Scope.SUBMITTER, "ada", Quantity.JOBS): 2.0}).reason()
    'hard limit of submitter ada: 2 and 1 more of at most 2 jobs in progress'
    """
    hard, soft = list[Hold](), list[Hold]()
    for limit, name in limits_of(asked, limits):
        wants = asked.amounts.get(limit.quantity, 0.0)
        of_size = limit.quantity in SIZE_LIMITS
        if wants <= 0.0 or (of_size and asked.standby):
            continue
        has = 0.0 if of_size else counts.get((limit.scope, name, limit.quantity), 0.0)
        for bound, kept, is_hard in ((limit.hard, hard, True), (limit.soft, soft, False)):
            if bound is not None and has + wants > bound + NO_MORE_THAN:
                kept.append(Hold(limit, name, bound, has, wants, is_hard))
    return Holds(tuple(hard), tuple(soft), ("held by its submitter",) if asked.held else ())


def eligible(asked: RequestedAmounts, limits: Iterable[Limit], counts: Counts) -> str | None:
    """None when another job of the batch may be sent now, else every reason why not.

    >>> eligible(RequestedAmounts({}, {}, held=True), [], {})
    'held by its submitter'
    """
    return holds(asked, limits, counts).reason()


def released(
    waiting: Sequence[tuple[Hashable, RequestedAmounts]], limits: Sequence[Limit], counts: Counts
) -> list[tuple[Hashable, Holds]]:
    """Which of those that wait may go now, in order, each counted before the next is looked at.

    All that fit within soft limits come first, then what is left within hard ones.

    >>> limit = Limit(Scope.SUBMITTER, Quantity.JOBS, hard=1.0)
    >>> one = RequestedAmounts({Scope.SUBMITTER: "ada"}, {Quantity.JOBS: 1.0})
    >>> [key for key, _ in released([("a", one), ("b", one)], [limit], {})]
    ['a']
    """
    totals = dict(counts)
    gone = list[tuple[Hashable, Holds]]()
    left = list(waiting)
    for within_soft in (True, False):
        kept = list[tuple[Hashable, RequestedAmounts]]()
        for key, asked in left:
            held = holds(asked, limits, totals)
            if held.reason() is not None or (within_soft and held.soft):
                kept.append((key, asked))
                continue
            gone.append((key, held))
            _count(totals, asked)
        left = kept
    return gone


def idle_room(*, slots: int, fraction: float, least: int, inside: int) -> int:
    """How many more unsent jobs of one submitter the job array takes: its share of the slots, at least `least`.

    >>> idle_room(slots=1000, fraction=0.25, least=4, inside=240), idle_room(slots=8, fraction=0.25, least=4, inside=4)
    (10, 0)
    """
    return max(0, max(least, int(slots * fraction)) - inside)


def idle_hold(*, inside: int, room: int, submitter: str) -> str | None:
    """Why a batch with nothing in the job array earns no queue time, or None. One job inside is enough.

    >>> idle_hold(inside=0, room=0, submitter="ada")
    'idle limit: ada has as many unsent jobs in the job array as allowed, none of this batch'
    """
    if inside > 0 or room > 0:
        return None
    return f"idle limit: {submitter} has as many unsent jobs in the job array as allowed, none of this batch"


def _count(totals: dict[tuple[Scope, str, Quantity], float], asked: RequestedAmounts) -> None:
    """One more job of the batch is under way."""
    for scope, name in asked.names.items():
        for quantity, amount in asked.amounts.items():
            totals[scope, name, quantity] = totals.get((scope, name, quantity), 0.0) + amount
