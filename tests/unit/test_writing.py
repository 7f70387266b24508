"""The language check: `python -m tests.writing`."""

from __future__ import annotations

import doctest
from pathlib import Path

from tests.writing import check


def test_examples_hold() -> None:
    assert doctest.testmod(check).failed == 0


def test_finds_phrases_words_in_names_and_long_test_names() -> None:
    word, phrase = "no" + "body", "has them" + " not"
    long_name = "test_" + "x" * 56
    text = f"def seen_by_{word}() -> None: ...\n# {phrase}\ndef {long_name}() -> None: ...\n"
    assert [found.line for found in check.check_text("a.py", text)] == [1, 2, 3]


def test_a_test_name_of_sixty_characters_is_allowed() -> None:
    assert not list(check.check_text("a.py", f"async def test_{'x' * 55}() -> None: ...\n"))


def test_titles_need_a_component_and_at_most_65_characters() -> None:
    assert check.check_title("deadline: cap AFAP due dates at the delay bound") is None
    assert check.check_title("scheduler, feeder: one name for a slot") is None
    assert check.check_title("Deadline caps") is not None
    assert check.check_title("deadline: " + "x" * 55) is None
    assert check.check_title("deadline: " + "x" * 56) is not None


def test_files_that_are_not_text_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    assert not list(check.check_files(["picture.png"], tmp_path))


def test_every_dictionary_row_has_a_replacement() -> None:
    assert all(instead for instead in check.plain_words().values())
    assert all(instead for _, instead in check.phrases())
