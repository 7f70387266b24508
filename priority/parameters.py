"""What do the texts among the ordering settings say? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from domain.errors import InvalidInputError
from domain.usage import Amounts
from priority.grants import Queue
from priority.targets import Target, parse_target

MOST_AMOUNT = 1e18


def usage_weights(text: str) -> Amounts:
    """What a unit of each resource counts as usage. Raises InvalidInputError.

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


def queues(text: str) -> Mapping[str, Queue]:
    """Queues by name from words NAME=TIER/NUMBER/RATE. Raises InvalidInputError.

    >>> queues("express=0/1/3 bonus=2/0/0")["bonus"]
    Queue(name='bonus', tier=2, priority=0.0, rate=0.0)
    """
    found: dict[str, Queue] = {}
    for word in text.split():
        name, _, rest = word.partition("=")
        parts = rest.split("/")
        if not name or len(parts) != 3:
            raise InvalidInputError("ordering.queues", "words like express=0/1/3", word)
        tier, number, rate = (_amount("ordering.queues", part, word) for part in parts)
        found[name] = Queue(name, int(tier), number, rate)
    return found


def targets(text: str) -> Mapping[tuple[str, str], Target]:
    """Targets by (user|group|account|level, name) from words like group:stuart=38+. Raises InvalidInputError.

    >>> targets("user:DEFAULT=20")["user", "DEFAULT"].amount
    20.0
    """
    found: dict[tuple[str, str], Target] = {}
    for word in text.split():
        credential, _, amount = word.rpartition("=")
        section, _, name = credential.partition(":")
        if section not in {"user", "group", "account", "level"} or not name:
            raise InvalidInputError("ordering.targets", "words like user:DEFAULT=20 or group:stuart=38+", word)
        found[section, name] = parse_target(amount)
    return found


def target_for(found: Mapping[tuple[str, str], Target], section: str, name: str) -> Target | None:
    """The target of that name, else the section's DEFAULT, else none.

    >>> target_for(targets("user:DEFAULT=20"), "user", "ada").amount
    20.0
    """
    return found.get((section, name), found.get((section, "DEFAULT")))


def _amount(key: str, text: str, word: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        raise InvalidInputError(key, "a number", word) from None
    if not 0.0 <= amount <= MOST_AMOUNT:
        raise InvalidInputError(key, f"a number from 0 to {MOST_AMOUNT:g}", word)
    return amount
