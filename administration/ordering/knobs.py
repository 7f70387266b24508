"""Which settings choose and weigh the order, and do they make sense together? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.errors import InvalidInputError
from domain.settings import Settings
from priority.charging import queues, usage_weights
from priority.policies import POLICIES, policy_of
from priority.standings import targets

SECTION = "ordering."
KEYS = tuple(key for key in Settings().as_mapping() if key.startswith(SECTION))

Changes = Mapping[str, object]  # key -> new value, checked


def ordering_changes(values: Iterable[tuple[str, object]]) -> Changes:
    """New values by full key, each within its range and given once. Raises InvalidInputError.

    >>> ordering_changes([("policy", "fifo"), ("ordering.max_wait_s", 60)])
    {'ordering.policy': 'fifo', 'ordering.max_wait_s': 60.0}
    """
    changes: dict[str, object] = {}
    for name, value in values:
        key = name if name.startswith(SECTION) else SECTION + name
        if key not in KEYS:
            raise InvalidInputError("ordering setting", "one of " + ", ".join(KEYS), name)
        if key in changes:
            raise InvalidInputError(key, "one value", value)
        changes[key] = Settings().changed(key, value).as_mapping()[key]
    if not changes:
        raise InvalidInputError("ordering setting", "at least one KEY=VALUE", "none")
    return changes


def with_ordering(settings: Settings, changes: Changes) -> Settings:
    """The settings as they would be, read whole as the ordering reads them. Raises InvalidInputError.

    >>> with_ordering(Settings(), {"ordering.queues": "normal=0/1/1 normal=1/1/1"})
    Traceback (most recent call last):
    domain.errors.InvalidInputError: ordering.queues: expected each queue once, got 'normal=0/1/1 normal=1/1/1'
    """
    for key, value in changes.items():
        settings = settings.changed(key, value)
    check_ordering(settings)
    return settings


def check_ordering(settings: Settings) -> None:
    """Whether the ordering settings can be read whole, those of policies that are not chosen too.

    Raises InvalidInputError naming the setting.
    """
    ordering = settings.ordering
    usage_weights(ordering.usage_weights)
    targets(ordering.targets)
    if len(queues(ordering.queues)) != len(ordering.queues.split()):
        raise InvalidInputError("ordering.queues", "each queue once", ordering.queues)
    if not ordering.queues.strip():
        raise InvalidInputError("ordering.queues", "at least one queue", ordering.queues)
    for name in POLICIES:
        policy_of(settings.changed("ordering.policy", name).ordering)


def weights_in_force(settings: Settings) -> list[dict[str, object]]:
    """The terms of the chosen policy, per service level, with their weights (a component's included) and caps.

    >>> weights_in_force(Settings())[0]["term"]
    'logical end time'
    """
    policy = policy_of(settings.ordering)
    return [
        {
            "level": level.value,
            "term": term.name,
            "component": term.component,
            "unit": term.unit,
            "weight": term.weight * scheme.component(term.component).weight,
            "cap": term.cap,
        }
        for level, scheme in policy.schemes.items()
        for term in (*scheme.own, *scheme.shared)
        if term.weight * scheme.component(term.component).weight != 0.0
    ]
