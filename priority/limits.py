"""Checks whether one more job of a batch may be sent, and which limits block it. Pure.

All limits are checked, so that a blocked batch names each limit that blocks it. Hard limits block; a batch over a soft
limit is sorted behind all others, or its priority is lowered by SPVIOLATION (`ordering.soft_limits`).
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.limits import SIZE_LIMITS, Counts, Hold, Holds, Limit, Quantity, RequestedAmounts, Scope

NO_MORE_THAN = 1e-9  # tolerance for amounts at the bound


def limits_of(asked: RequestedAmounts, limits: Iterable[Limit]) -> list[tuple[Limit, str]]:
    """Return the limits that apply: a limit for a specific name replaces the general one."""
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
    """Return all soft and hard limits that one more job would exceed. Standby work is exempt from size limits.

    >>> limit = Limit(Scope.SUBMITTER, Quantity.JOBS, hard=2.0)
    >>> one_more = RequestedAmounts({Scope.SUBMITTER: "ada"}, {Quantity.JOBS: 1.0})
    >>> holds(one_more, [limit], {(Scope.SUBMITTER, "ada", Quantity.JOBS): 2.0}).reason()
    'hard limit of submitter ada: 2 + 1 > 2 jobs in progress'
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
