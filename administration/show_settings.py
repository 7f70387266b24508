"""Settings and who changed them as JSON: the same keys in the API and on the command line. Pure."""

from __future__ import annotations

from domain.settings import Settings, meaning_of
from domain.views import SettingChange

DEFAULTS = Settings().as_mapping()


def setting_as_json(key: str, value: object) -> dict[str, object]:
    """A setting with what it is.

    >>> setting_as_json("deadline.p_tight", 0.8)["changed"]
    True
    """
    default = DEFAULTS[key]
    return {"key": key, "value": value, "default": default, "changed": value != default, "meaning": meaning_of(key)}


def change_as_json(change: SettingChange) -> dict[str, object]:
    return {
        "changed_at": change.changed_at,
        "key": change.key,
        "from": change.from_value,
        "to": change.to_value,
        "by": change.changed_by,
        "why": change.why,
    }
