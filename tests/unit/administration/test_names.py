"""Checks of names."""

from __future__ import annotations

import pytest

from administration.names import checked_app_name, checked_name, checked_plan_class_name, checked_text
from domain.errors import InvalidInputError
from tests.facts import states


@pytest.mark.parametrize("name", ["pi", "7", "Pi-2.0", "a" * 64])
def test_valid_app_name_is_accepted(name: str) -> None:
    assert checked_app_name(name) == name


@pytest.mark.parametrize("name", ["", "a/b", "my_app", ".pi", "-pi", "pi\n", "π", "a" * 65])
def test_invalid_app_name_is_refused(name: str) -> None:
    with states(InvalidInputError, "name:", "1 to 64", "letters, digits, . and -"):
        checked_app_name(name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "mt\n", "a" * 65])
def test_invalid_plan_class_name_is_refused(name: str) -> None:
    with states(InvalidInputError, "name:", "1 to 64", "letters, digits, _, . and -"):
        checked_plan_class_name(name)


@pytest.mark.parametrize("name", ["", "a\x00b", "a\nb", "\udc80", "a" * 201])
def test_invalid_account_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="account: expected"):
        checked_name(name, "account")


def test_text_has_at_most_200_characters() -> None:
    assert checked_text("", "why") == ""
    assert checked_text("é" * 200, "why") == "é" * 200
    with states(InvalidInputError, "why:", "at most 200 characters"):
        checked_text("é" * 201, "why")
