"""The form of ordering settings: fields by policy, and requested changes."""

from __future__ import annotations

import pytest

from administration.ordering.priorities import KEYS, ordering_changes
from console.ordering_page import GROUPS, Field, SettingGroup, asked_of, groups_of, was_of
from domain.errors import ConflictError, InvalidInputError
from domain.settings import Settings
from priority.policies import POLICIES
from tests.facts import states
from web.handlers import typed

PRESENT = Settings().as_mapping()


def every_field(groups: list[SettingGroup]) -> dict[str, Field]:
    return {one.key: one for group in groups for one in group.fields}


def test_every_field_is_a_setting_of_the_order_and_there_once() -> None:
    names = [name for group in GROUPS.values() for name in group]

    assert len(set(names)) == len(names)
    assert {f"ordering.{name}" for name in names} < set(KEYS)
    assert set(POLICIES) - set(GROUPS) == {"fifo"}  # which has no weights


def test_the_weights_of_the_policy_that_is_asked_for_come_first() -> None:
    first, *others = groups_of(PRESENT, {"ordering.policy": "multifactor"})

    assert (first.name, first.in_force) == ("multifactor", True)
    assert {one.name: one.in_force for one in others} == {
        "components": False,
        "equal_access": False,
        "logical_time": False,
        "queues": True,
        "fair-share": True,
    }


def test_a_field_says_what_it_would_be_and_what_it_is() -> None:
    found = every_field(groups_of(PRESENT, {"ordering.size_weight": 5.0}))

    assert (found["ordering.size_weight"].text, found["ordering.size_weight"].was) == ("5", 0.0)
    assert [key for key, one in found.items() if one.is_changed] == ["ordering.size_weight"]
    assert found["ordering.size_favours"].choices == ("large", "small")
    assert found["ordering.components"].choices == ()


@pytest.mark.parametrize("weight", [1e12, 0.1 + 0.2, 1 / 3, -7.5, 604_800.0])
def test_what_is_not_touched_reads_back_as_it_was(weight: float) -> None:
    present = {**PRESENT, **ordering_changes([("wait_weight", weight)])}

    fields = every_field(groups_of(present, {}))

    assert {key: typed(present[key], one.text) for key, one in fields.items()} == {key: present[key] for key in fields}


def a_form(shown: dict[str, object], **wanted: str) -> dict[str, str]:
    """Return all fields as a browser sends them, made with the settings `shown`; `wanted` by name."""
    fields = every_field(groups_of(shown, {}))
    return {
        **{key: one.text for key, one in fields.items()},
        **was_of(shown, fields),
        **{f"ordering.{name}": text for name, text in wanted.items()},
    }


def test_a_form_asks_for_what_was_changed_in_it_and_no_more() -> None:
    changed_meanwhile = {**PRESENT, "ordering.size_weight": 7.0, "ordering.targets": "user:DEFAULT=20"}

    found = asked_of(a_form(PRESENT, wait_weight="5", queue_weight=""), changed_meanwhile)

    assert found == {"ordering.wait_weight": 5.0}


def test_setting_changed_meanwhile_is_not_overwritten() -> None:
    changed_meanwhile = {**PRESENT, "ordering.wait_weight": 7.0}

    with pytest.raises(ConflictError, match=r"^ordering.wait_weight: .* from 10000 to 7 "):
        asked_of(a_form(PRESENT, wait_weight="5"), changed_meanwhile)
    assert asked_of(a_form(PRESENT, wait_weight="7", size_weight="1"), changed_meanwhile) == {
        "ordering.size_weight": 1.0
    }


def test_without_hidden_fields_changes_are_against_now() -> None:
    assert asked_of({"ordering.policy": "fifo", "ordering.wait_weight": "10000"}, PRESENT) == {
        "ordering.policy": "fifo"
    }
    with states(InvalidInputError, "ordering:", "at least one"):
        asked_of(a_form(PRESENT), {**PRESENT, "ordering.policy": "fifo"})
