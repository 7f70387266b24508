"""May another job of a batch be sent, and which limits hold it if not? Pure.

Every limit is looked at, so that a held batch names all that hold it. Hard limits hold; who is over a soft one goes
after everybody who is not.
"""

from __future__ import annotations

from collections.abc import Iterable

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
