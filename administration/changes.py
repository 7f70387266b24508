"""Validates, applies and stores changes to several settings at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from administration.names import checked_text
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.settings import Settings
from muster_client import shapes
from store.settings import PostgresSettings

Changes = Mapping[str, object]  # key -> new value, checked


def checked_changes(values: Iterable[tuple[str, object]], key_of: Callable[[str], str], what: str) -> Changes:
    """Return validated values by key; `key_of` maps each given name to its key.

    Raises InvalidInputError for duplicates, and for an empty list, naming `what`.

    >>> checked_changes([("p_tight", 0.85)], "deadline.{}".format, "threshold")
    {'deadline.p_tight': 0.85}
    """
    changes: dict[str, object] = {}
    for name, value in values:
        key = key_of(name)
        if key in changes:
            raise InvalidInputError(key, "one value", value)
        changes[key] = Settings().changed(key, value).as_mapping()[key]
    if not changes:
        raise InvalidInputError(what, "at least one KEY=VALUE", "none")
    return changes


def subject_of(changes: Changes) -> str:
    """Return the subjects of the changes in the audit trail.

    >>> subject_of({"deadline.p_tight": 0.8, "deadline.rule": "fixed"})
    'setting deadline.p_tight, setting deadline.rule'
    """
    return ", ".join(f"setting {key}" for key in changes)


def recorded(changed: Iterable[shapes.ChangeMade]) -> dict[str, dict[str, object]]:
    """Return the new and former values of stored changes for the audit trail.

    >>> recorded([{"key": "deadline.p_tight", "from": 0.9, "to": 0.8, "by": "ada", "why": "late"}])
    {'values': {'deadline.p_tight': 0.8}, 'was': {'deadline.p_tight': 0.9}}
    """
    every = list(changed)
    return {"values": {one["key"]: one["to"] for one in every}, "was": {one["key"]: one["from"] for one in every}}


def with_changes(settings: Settings, changes: Changes) -> Settings:
    """Return the settings with the changes applied."""
    for key, value in changes.items():
        settings = settings.changed(key, value)
    return settings


async def write_changes(
    store: PostgresSettings, changes: Changes, *, check: Callable[[Settings], None], clock: Clock, who: str, why: str
) -> list[shapes.ChangeMade]:
    """Store all changes or none, with user and reason in the audit trail, and return them as JSON.

    Raises InvalidInputError if the reason is empty, and the errors of `check` for the changed settings.
    """
    if not why.strip():
        raise InvalidInputError("why", "a reason for the audit trail", why)
    checked_text(why, "why")
    checked_text(who, "by")
    settings = await store.in_force()
    check(with_changes(settings, changes))
    before = settings.as_mapping()
    await store.set_settings(changes, now=clock.now(), who=who, why=why)
    return [{"key": key, "from": before[key], "to": value, "by": who, "why": why} for key, value in changes.items()]
