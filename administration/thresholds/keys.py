"""Which settings are thresholds, and what is said about them? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from administration.thresholds.effects import EFFECTS
from domain.errors import InvalidInputError
from domain.settings import Settings, meaning_of
from domain.views import SettingChange

THRESHOLDS = tuple(EFFECTS)

# What a preview can foresee from hosts and work as they are; the others show in time, or in a simulation.
FORESEEN = (
    "deadline.p_afap",
    "deadline.p_late",
    "deadline.p_retry",
    "deadline.p_tight",
    "ranking.min_rows",
    "ranking.min_samples",
)

Changes = Mapping[str, object]  # key -> new value, checked


def full_key(name: str, keys: Sequence[str] = THRESHOLDS) -> str:
    """The key of a threshold, which may be given without its section. Raises InvalidInputError unless it is in `keys`.

    >>> full_key("p_tight"), full_key("ranking.min_rows")
    ('deadline.p_tight', 'ranking.min_rows')
    """
    for key in keys:
        if name in (key, key.partition(".")[2]):
            return key
    raise InvalidInputError("threshold", "one of " + ", ".join(keys), name)


def changes_of(values: Iterable[tuple[str, object]], keys: Sequence[str] = THRESHOLDS) -> Changes:
    """New values by full key, each one of `keys`, within its range and given once. Raises InvalidInputError.

    >>> changes_of([("p_tight", 0.85), ("min_rows", 10)])
    {'deadline.p_tight': 0.85, 'ranking.min_rows': 10}
    """
    changes: dict[str, object] = {}
    for name, value in values:
        key = full_key(name, keys)
        if key in changes:
            raise InvalidInputError(key, "one value", value)
        changes[key] = Settings().changed(key, value).as_mapping()[key]
    if not changes:
        raise InvalidInputError("threshold", "at least one KEY=VALUE", "none")
    return changes


def with_changes(settings: Settings, changes: Changes) -> Settings:
    """The settings as they would be."""
    for key, value in changes.items():
        settings = settings.changed(key, value)
    return settings


def thresholds_as_json(settings: Settings, latest: Sequence[SettingChange]) -> list[dict[str, object]]:
    """Every threshold with its value, its meaning and effect, and who set it last and why; `latest`: newest first.

    `source` is "set" where the value is not the default, however it came about, else "default".
    """
    values, defaults = settings.as_mapping(), Settings().as_mapping()
    last: dict[str, SettingChange] = {}
    for change in latest:
        last.setdefault(change.key, change)
    return [
        {
            "key": key,
            "value": values[key],
            "default": defaults[key],
            "source": "default" if values[key] == defaults[key] else "set",
            "unit": EFFECTS[key].unit,
            "meaning": meaning_of(key),
            "higher": EFFECTS[key].higher,
            "lower": EFFECTS[key].lower,
            "previewed": key in FORESEEN,
            "changed_at": last[key].changed_at if key in last else None,
            "changed_by": last[key].changed_by if key in last else None,
            "why": last[key].why if key in last else None,
        }
        for key in THRESHOLDS
    ]
