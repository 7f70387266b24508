"""Texts in blocks: each is found again, whether its block is whole or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from store.memory.texts import BETWEEN, BLOCK, Texts


@given(st.lists(st.text(st.characters(exclude_characters=BETWEEN, codec="utf-8"), max_size=9), max_size=12))
def test_each_text_is_found_by_its_number_in_any_order(some: list[str]) -> None:
    every = [f"{number} {text}" for number, text in enumerate(some * (BLOCK // 4))]
    texts = Texts()
    numbers = [texts.add(text) for text in every]

    assert numbers == list(range(len(every)))
    for number in reversed(numbers):
        assert texts[number] == every[number]


def test_texts_of_whole_blocks_take_a_part_of_their_length() -> None:
    texts = Texts()
    for number in range(4 * BLOCK):
        texts.add(f"row 1: throughput, due at the delay bound of 7 days, queue {number * 7919 % 100_000} s")

    kept = sum(len(block) for block in texts._blocks)
    assert kept < 4 * BLOCK * 25
