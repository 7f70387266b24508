"""Prices for work: queues and their rates, service units, grants. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from domain.errors import InvalidInputError
from domain.ordered_work import Grant
from domain.units import utc
from domain.usage import Amounts

# ---- queues and grants. One service unit is one core for one hour at rate 1. Queues are strict tiers with rates. A
# submitter whose account has used up its grant continues in the last queue, which is free.

MOST_AMOUNT = 1e18  # maximum queues in a setting


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: its tier under equal access (smaller first), its number for other policies, and its rate per PE-hour."""

    name: str
    tier: int
    priority: float
    rate: float

    @property
    def is_unpaid(self) -> bool:
        """Return whether the queue's work is unpaid. Unpaid work goes to hosts that have no other suitable work."""
        return self.rate <= 0.0


EXPRESS = Queue("express", 0, 1.0, 3.0)
NORMAL = Queue("normal", 1, 0.5, 1.0)
BONUS = Queue("bonus", 2, 0.0, 0.0)
QUEUES: Mapping[str, Queue] = {one.name: one for one in (EXPRESS, NORMAL, BONUS)}


def service_units(
    *, rate: float, cores: float, wall_h: float, memory: float = 0.0, memory_per_core: float | None = None
) -> float:
    """Return rate * max(cores, memory / memory per core) * hours. Both memory figures must have the same unit.

    >>> service_units(rate=2, cores=8, memory=192, memory_per_core=4, wall_h=5)
    480.0
    """
    by_memory = memory / memory_per_core if memory_per_core else 0.0
    return float(rate * max(cores, by_memory) * wall_h)


def queue_of(name: str, grant: Grant | None, queues: Mapping[str, Queue] = QUEUES) -> tuple[Queue, str]:
    """Return the effective queue of a batch submitted to queue `name`, and why. Without a grant, no limit applies.

    Raises InvalidInputError for an unknown queue.

    >>> spent = Grant(1, 10.0, 0.0, 100.0, used_su=10.0)
    >>> queue_of("normal", spent)[1]
    'bonus: the grant of 10 SU until 1970-01-01 00:01 UTC is used up (used 10, reserved 0)'
    """
    if name not in queues:
        raise InvalidInputError("queue", "one of " + ", ".join(queues), name)
    queue = queues[name]
    if grant is None or grant.left_su > 0.0 or queue.rate <= 0.0:
        return queue, queue.name if queue.rate == 1.0 else f"{queue.name}, charged {queue.rate:g} times the usual"
    last = last_queue(queues)
    spent = f"the grant of {grant.granted_su:g} SU until {utc(grant.ends_at):%Y-%m-%d %H:%M} UTC is used up"
    return last, f"{last.name}: {spent} (used {grant.used_su:g}, reserved {grant.reserved_su:g})"


def last_queue(queues: Mapping[str, Queue] = QUEUES) -> Queue:
    """Return the queue in which the work of an account with a spent grant continues.

    >>> last_queue().name
    'bonus'
    """
    return max(queues.values(), key=lambda one: (one.tier, one.name))


# ---- the settings ordering.queues and ordering.usage_weights


def queues(text: str) -> Mapping[str, Queue]:
    """Parse queues from words of the form NAME=TIER/NUMBER/RATE; return them by name. Raises InvalidInputError.

    >>> queues("express=0/1/3 bonus=2/0/0")["bonus"]
    Queue(name='bonus', tier=2, priority=0.0, rate=0.0)
    """
    found: dict[str, Queue] = {}
    for word in text.split():
        name, _, rest = word.partition("=")
        parts = rest.split("/")
        if not name or len(parts) != 3:
            raise InvalidInputError("ordering.queues", "queues such as express=0/1/3", word)
        tier, number, rate = (_amount("ordering.queues", part, word) for part in parts)
        found[name] = Queue(name, int(tier), number, rate)
    return found


def usage_weights(text: str) -> Amounts:
    """Parse the weights with which units of resources count as usage. Raises InvalidInputError.

    >>> usage_weights("flop=1 gpu_s=1e12").gpu_s
    1000000000000.0
    """
    known = {one.name for one in fields(Amounts)}
    weights: dict[str, float] = {}
    for word in text.split():
        name, _, amount = word.partition("=")
        if name not in known:
            raise InvalidInputError("ordering.usage_weights", "one of " + ", ".join(sorted(known)), name)
        weights[name] = _amount("ordering.usage_weights", amount, word)
    return Amounts(**weights)


def _amount(key: str, text: str, word: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        raise InvalidInputError(key, "a number", word) from None
    if not 0.0 <= amount <= MOST_AMOUNT:
        raise InvalidInputError(key, f"a number from 0 to {MOST_AMOUNT:g}", word)
    return amount
