"""What holds the batch, and on which hosts? Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Bools, Floats, Ints
from domain.forecasts import ForecastHold, HoldKind
from domain.units import HostId

MOST_HOSTS = 5
STATES = {
    HoldKind.OVERDUE: "overdue",
    HoldKind.QUORUM: "to agree with a result that is there",
    HoldKind.IN_PROGRESS: "in progress",
}


@dataclass(frozen=True, slots=True, eq=False)
class OutDoubts:
    """Of each slot with an instance out: its doubt (-ln H), host, age, whether it is overdue, and `agreeing`: whether
    its job has a result that waits for another.
    """

    doubt: Floats
    host_id: Ints
    age_s: Floats
    overdue: Bools
    agreeing: Bools


def holds_of(
    out: OutDoubts, *, retries: int, retry_doubt: float, first_unsent: int, first_doubt: float
) -> list[ForecastHold]:
    """The kinds that hold any slot, the one with most doubt first.

    >>> overdue, agreeing = np.array([True, False]), np.array([False, False])
    >>> out = OutDoubts(np.array([0.3, 0.1]), np.array([7, 8]), np.array([86400.0, 60.0]), overdue, agreeing)
    >>> for hold in holds_of(out, retries=0, retry_doubt=0.0, first_unsent=4, first_doubt=0.6):
    ...     print(hold.kind, hold.doubt_fraction, hold.host_ids, hold.because)
    not_sent 0.6 () 4 first instances are not sent yet
    overdue 0.3 (7,) 1 instance on 1 host, out for up to 1.0 days, is overdue; mostly host 7
    in_progress 0.1 (8,) 1 instance on 1 host, out for up to 0.0 days, is in progress; mostly host 8
    """
    total = float(out.doubt.sum()) + retry_doubt + first_doubt
    holds = []
    if first_unsent:
        because = f"{first_unsent} first {_plural('instance', first_unsent)} not sent yet"
        holds.append(ForecastHold(HoldKind.NOT_SENT, first_unsent, _part(first_doubt, total), (), because))
    if retries:
        because = f"{retries} {_plural('retry', retries)} not sent yet"
        holds.append(ForecastHold(HoldKind.RETRIES, retries, _part(retry_doubt, total), (), because))
    for kind, chosen in (
        (HoldKind.OVERDUE, out.overdue),
        (HoldKind.QUORUM, ~out.overdue & out.agreeing),
        (HoldKind.IN_PROGRESS, ~out.overdue & ~out.agreeing),
    ):
        if chosen.any():
            holds.append(_of_hosts(kind, out, chosen, total))
    return sorted(holds, key=lambda hold: (-hold.doubt_fraction, hold.kind))


def _of_hosts(kind: HoldKind, out: OutDoubts, chosen: Bools, total: float) -> ForecastHold:
    slots = int(chosen.sum())
    hosts, of = np.unique(out.host_id[chosen], return_inverse=True)
    per_host = np.bincount(of, weights=out.doubt[chosen])
    first = np.lexsort((hosts, -per_host))[:MOST_HOSTS]
    ids = tuple(HostId(int(host)) for host in hosts[first])
    because = (
        f"{slots} instance{'s' * (slots > 1)} on {len(hosts)} host{'s' * (len(hosts) > 1)}, out for up to "
        f"{float(out.age_s[chosen].max()) / 86400.0:.1f} days, {'are' if slots > 1 else 'is'} {STATES[kind]}; "
        f"mostly host{'s' * (len(ids) > 1)} {', '.join(map(str, ids))}"
    )
    return ForecastHold(kind, slots, _part(float(out.doubt[chosen].sum()), total), ids, because)


def _part(doubt: float, total: float) -> float:
    return round(doubt / total, 4) if total > 0 else 0.0


def _plural(noun: str, count: int) -> str:
    if count == 1:
        return f"{noun} is"
    return f"{noun[:-1]}ies are" if noun.endswith("y") else f"{noun}s are"
