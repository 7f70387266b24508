"""Grants, limits and previews as JSON, with the same keys on the command line and in the API. Pure."""

from __future__ import annotations

from administration.ordering.priorities import OrderPreview
from domain.limits import Limit
from domain.ordered_work import StoredGrant
from domain.units import Instant
from jobs.ordering.admission import grant_of


def grant_as_json(account: str, stored: StoredGrant, now: Instant) -> dict[str, object]:
    """A grant in the period of `now`, in service units.

    >>> grant_as_json("lab", StoredGrant(1, 10.0, Instant(0.0), 100.0, used_su=4.0), Instant(50.0))["left_su"]
    6.0
    """
    grant = grant_of(stored).at(now)
    return {
        "account": account,
        "granted_su": grant.granted_su,
        "used_su": grant.used_su,
        "reserved_su": grant.reserved_su,
        "left_su": grant.left_su,
        "period_start_at": grant.period_start_at,
        "period_s": grant.period_s,
    }


def limit_as_json(limit: Limit) -> dict[str, object]:
    """A limit; `name` None is everybody's, `counts` says what the quantity is."""
    return {
        "scope": limit.scope.value,
        "quantity": limit.quantity.name.lower(),
        "name": limit.name,
        "soft": limit.soft,
        "hard": limit.hard,
        "counts": limit.quantity.value,
    }


def preview_as_json(found: OrderPreview) -> dict[str, object]:
    """What would be changed, and every batch's place as it is and as it would be, 1 = first."""
    return {
        "changes": [{"key": key, "from": old, "to": new} for key, old, new in found.changes],
        "policy": {"from": found.policy, "to": found.would_be_policy},
        "batches": found.batches,
        "places": [
            {
                "batch": move.batch_id,
                "place": move.place,
                "would_be": move.would_be,
                "held": move.held,
                "would_be_held": move.would_be_held,
            }
            for move in found.moves
        ],
    }
