"""The settings that weigh the order, as fields of a form, and what is asked for by one. Pure.

A form has beside each field what the setting was when it was made: only what was changed in the form is asked for, and
nothing that somebody else changed meanwhile is written over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from administration.ordering.priorities import KEYS, SECTION, Changes, ordering_changes
from console.settings_pages import without_notes
from domain.errors import ConflictError, InvalidInputError
from domain.ordering_settings import OrderingSettings
from domain.settings import meaning_of
from priority.policies import POLICIES
from web.desk import Fields, typed

ONE_OF = "one of "
BRIEF = 60  # characters of a value in an error
WAS = "was."  # before a setting's key: what it was when the form was made
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
    expected: str
    choices: tuple[str, ...]

    @property
    def kind(self) -> str:
        return "number" if isinstance(self.value, (int, float)) else "text"

    @property
    def text(self) -> str:
        """The value as the field has it."""
        return text_of(self.value)

    @property
    def was_text(self) -> str:
        return text_of(self.was)

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


def text_of(value: object) -> str:
    """A setting as a field has it, which reads back as the same.

    >>> text_of(10_000.0), text_of(0.1 + 0.2), text_of("fifo")
    ('10000', '0.30000000000000004', 'fifo')
    """
    brief = f"{value:.12g}" if isinstance(value, float) else str(value)
    return repr(value) if isinstance(value, float) and float(brief) != value else brief


def was_of(present: Mapping[str, object], keys: Iterable[str]) -> dict[str, str]:
    """What a form says beside its fields: what each of these settings is now.

    >>> was_of({"ordering.wait_weight": 5.0}, ["ordering.wait_weight"])
    {'was.ordering.wait_weight': '5'}
    """
    return {WAS + key: text_of(present[key]) for key in keys}


def asked_of(form: Fields, present: Mapping[str, object]) -> Changes:
    """The settings that are otherwise than the form showed them; where it does not say how, than they are.

    What is as it is asked for already is left out. Raises InvalidInputError where nothing is left or a value cannot be,
    and ConflictError for a setting that was changed in the form, and meanwhile by somebody else.
    """
    asked: dict[str, object] = {}
    for key, text in form.items():
        if key not in KEYS or not (text.strip() or isinstance(present[key], str)):  # a list of words may be empty
            continue
        value, now = typed(present[key], text.strip()), present[key]
        was = typed(now, form[WAS + key].strip()) if WAS + key in form else now
        if value in (was, now):
            continue
        if was != now:
            raise ConflictError(
                f"{key}: it was {_brief(was)} when the form was made, and is {_brief(now)} now: somebody changed it "
                "meanwhile"
            )
        asked[key] = value
    if not asked:
        raise InvalidInputError("ordering", "at least one other value than the present one", "none")
    return ordering_changes(asked.items())


def _brief(value: object) -> str:
    text = text_of(value) or "(empty)"
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 3]}..."


def _field(name: str, expected: str, present: Mapping[str, object], changes: Mapping[str, object]) -> Field:
    key = SECTION + name
    was = present[key]
    meaning = without_notes(meaning_of(key))
    choices = tuple(expected.removeprefix(ONE_OF).split(", ")) if expected.startswith(ONE_OF) else ()
    return Field(key, name, changes.get(key, was), was, meaning, expected, choices)
