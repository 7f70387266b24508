"""Messages of errors."""

from __future__ import annotations

import pickle

import pytest

from domain.errors import (
    AlreadyExistsError,
    IllegalTransitionError,
    InvalidInputError,
    MusterError,
    NotFoundError,
    UnavailableError,
)
from tests.facts import missing


def test_invalid_input_names_field_expectation_and_what_came() -> None:
    error = InvalidInputError("jobs.count", "a whole number from 1 to 1000000", -5)

    assert (error.field, error.expected, error.got) == ("jobs.count", "a whole number from 1 to 1000000", -5)
    assert str(error) == f"jobs.count: expected {error.expected}, got -5"


def test_numeric_text_is_distinguished_from_a_number() -> None:
    assert str(InvalidInputError("count", "a number", "5")).endswith(" a number, got '5'")


def test_long_value_is_truncated_only_in_the_message() -> None:
    error = InvalidInputError("name", "at most 254 characters", "x" * 10_000)

    assert len(str(error)) == len("name: expected at most 254 characters, got ") + 200
    assert str(error).endswith("xxx...")
    assert error.got == "x" * 10_000


def test_a_value_of_just_two_hundred_characters_is_shown_whole() -> None:
    assert str(InvalidInputError("name", "less", "x" * 198)).endswith("x'")


def test_without_a_message_the_class_explains_itself() -> None:
    assert not missing(str(UnavailableError()), "unavailable", "nothing was written")
    assert not missing(str(IllegalTransitionError()), "life cycle")


def test_a_message_goes_before_the_explanation_of_the_class() -> None:
    assert str(UnavailableError("the pool is closed")) == "the pool is closed"


def test_a_missing_thing_is_named_with_its_kind() -> None:
    error = NotFoundError("batch", 7)

    assert (error.kind, error.key, str(error)) == ("batch", 7, "no batch 7")


def test_a_taken_name_is_quoted() -> None:
    error = AlreadyExistsError("app", "pi")

    assert (error.kind, error.key, str(error)) == ("app", "pi", "app 'pi' already exists")


@pytest.mark.parametrize(
    "error",
    [
        InvalidInputError("a", "b", "c"),
        NotFoundError("a", "b"),
        AlreadyExistsError("a", "b"),
        IllegalTransitionError(),
        UnavailableError(),
    ],
)
def test_one_except_clause_catches_them_all(error: Exception) -> None:
    assert isinstance(error, MusterError)


def test_an_error_crosses_processes_whole() -> None:
    error = pickle.loads(pickle.dumps(InvalidInputError("count", "a number", "5")))

    assert (error.field, error.expected, error.got) == ("count", "a number", "5")
    assert str(error) == str(InvalidInputError("count", "a number", "5"))
