"""The language check: `python -m tests.writing`."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from tests.writing import check, sentences

SENTENCE = "the host needs more memory than the client may use"


def test_examples_hold() -> None:
    assert doctest.testmod(check).failed == 0
    assert doctest.testmod(sentences).failed == 0


def sentence_lines(folder: Path, name: str, text: str) -> list[int]:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return [found.line for found in sentences.check_sentences([name], folder)]


@pytest.mark.parametrize(
    "text",
    [
        f"assert f() == {SENTENCE!r}",
        f"assert f().startswith({SENTENCE!r})",
        f"assert f() == Refusal(1, {SENTENCE!r})",
        f"assert f() == (1, f'{SENTENCE} {{n}}')",
        f"with pytest.raises(E, match={SENTENCE!r}): ...",
        f"with states(E, {SENTENCE!r}): ...",
        f"assert not missing(f(), {SENTENCE!r})",
        f"WHY = {SENTENCE!r}\nassert f() == f'{{a}}: {{WHY}}'",
        f"for n, why in [(1, {SENTENCE!r})]: assert f(n) == why",
        f"ROWS = [(1, {SENTENCE!r})]\n@pytest.mark.parametrize('n,why', ROWS)\ndef test_f(n, why): assert f(n) == why",
        f"def is_told(why): assert why in g()\nis_told({SENTENCE!r})",
        f"@pytest.mark.parametrize(('n', 'why'), [(1, {SENTENCE!r})])\ndef test_f(n, why): assert f(n) == why",
        f"@pytest.mark.parametrize('why', [pytest.param({SENTENCE!r}, id='a')])\ndef test_f(why): assert f() == why",
    ],
)
def test_sentences_that_tests_expect_are_found(text: str, tmp_path: Path) -> None:
    assert len(sentence_lines(tmp_path, "tests/test_a.py", text)) == 1
    assert not sentence_lines(tmp_path, sentences.TABLE_TEST, text)


@pytest.mark.parametrize(
    "text",
    [
        "assert not missing(f(), 'jobs.count:', '1 to 100', -5)",
        f"assert f({SENTENCE!r}) is None",
        f"assert f() == 1, {SENTENCE!r}",
        f"error = E({SENTENCE!r})\nassert f(error) == {SENTENCE!r}",
        f"why = {SENTENCE!r}\nput(why)\nassert f() == why",
        f"for n, why in [(1, {SENTENCE!r})]: assert f(why) == n",
        f"@pytest.mark.parametrize('why', [{SENTENCE!r}])\ndef test_f(why): assert f(why) == 1",
        f"@pytest.mark.parametrize('n', [pytest.param(1, id={SENTENCE!r})])\ndef test_f(n): assert f() == n",
    ],
)
def test_facts_and_input_are_no_sentences_expected(text: str, tmp_path: Path) -> None:
    assert not sentence_lines(tmp_path, "tests/test_a.py", text)


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
