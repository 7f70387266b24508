"""The codes of refusals."""

from __future__ import annotations

import re

import pytest

from domain.refusals import Refusal, RefusalCode


@pytest.mark.parametrize("code", list(RefusalCode))
def test_a_code_is_its_name_in_small_letters_fit_for_a_label(code: RefusalCode) -> None:
    assert code.value == code.name.lower()
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code.value)


def test_equal_refusals_count_as_one() -> None:
    refusal = Refusal(RefusalCode.TOO_SLOW, "needs 20.0 h, allowed are 10.0 h")

    assert len({refusal, Refusal(RefusalCode.TOO_SLOW, "needs 20.0 h, allowed are 10.0 h")}) == 1
    assert refusal != Refusal(RefusalCode.TOO_SLOW, "needs 21.0 h, allowed are 10.0 h")
