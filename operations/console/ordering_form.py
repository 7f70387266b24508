"""The settings that weigh the order, as fields of a form: those of each policy together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from domain.ordering_settings import OrderingSettings
from domain.settings import meaning_of
from operations.console.settings_pages import unit_of, without_notes
from operations.ordering.knobs import SECTION
from priority.policies import POLICIES

ONE_OF = "one of "
GROUPS: Mapping[str, Sequence[str]] = {  # a policy, or what several go by -> settings
    "multifactor": (
        *("wait_weight", "fairshare_weight", "level_weight", "queue_weight", "size_weight", "user_weight"),
        *("max_wait_s", "size_favours"),
    ),
    "components": ("components", "xfactor_min_s", "target_wait_s", "target_xfactor"),
    "equal_access": ("bypass_weight", "equal_among"),
    "logical_time": ("let_rule",),
    "queues": ("queues",),
    "fair-share": ("fairshare", "half_life_s", "damping_factor", "usage_weights", "targets"),
}
SAID = {
    "multifactor": "points = the sum of weight × factor; factors are from 0 to 1, the user's priority from -1 to 1",
    "components": "points = the sum of weight × value by Moab's names, as Maui counts them",
    "equal_access": "who holds the least work goes first",
    "logical_time": "when a batch would end that had the whole pool in its turn",
    "queues": "their numbers count in sums, their tiers under equal_access",
    "fair-share": "what usage is, and how long it counts",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One setting. `choices` empty: a number or a text, as `kind` says. `was` is what holds now, where it differs."""

    key: str
    name: str
    value: object
    was: object
    meaning: str
    unit: str
    expected: str
    choices: tuple[str, ...]

    @property
    def kind(self) -> str:
        return "number" if isinstance(self.value, (int, float)) else "text"

    @property
    def text(self) -> str:
        """The value as the field has it, which reads back as the same."""
        brief = f"{self.value:.12g}" if isinstance(self.value, float) else str(self.value)
        return repr(self.value) if isinstance(self.value, float) and float(brief) != self.value else brief

    @property
    def is_changed(self) -> bool:
        return self.value != self.was


@dataclass(frozen=True, slots=True)
class Group:
    """The settings of a policy, or of what several go by; `in_force`: the chosen policy goes by them."""

    name: str
    said: str
    in_force: bool
    fields: tuple[Field, ...]


def groups_of(present: Mapping[str, object], changes: Mapping[str, object]) -> list[Group]:
    """Fields by group, those of the policy that is asked for first, with what the changes would make of them.

    >>> [first, *_] = groups_of({f"ordering.{one.name}": one.default for one in fields(OrderingSettings)}, {})
    >>> first.name, first.in_force, [one.key for one in first.fields]
    ('logical_time', True, ['ordering.let_rule'])
    """
    policy = str(changes.get("ordering.policy", present["ordering.policy"]))
    meta = {one.name: one.metadata for one in fields(OrderingSettings)}
    made = [
        Group(
            name,
            SAID[name],
            name == policy or name not in POLICIES,
            tuple(_field(one, str(meta[one]["expected"]), present, changes) for one in names),
        )
        for name, names in GROUPS.items()
    ]
    return sorted(made, key=lambda one: one.name != policy)


def _field(name: str, expected: str, present: Mapping[str, object], changes: Mapping[str, object]) -> Field:
    key = SECTION + name
    was = present[key]
    meaning = without_notes(meaning_of(key))
    choices = tuple(expected.removeprefix(ONE_OF).split(", ")) if expected.startswith(ONE_OF) else ()
    return Field(key, name, changes.get(key, was), was, meaning, unit_of(key, was), expected, choices)
