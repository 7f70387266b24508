"""Equal access: the next slots go to the submitter or account with the least work in progress."""

from __future__ import annotations

from domain.units import BatchId, Instant
from priority.equal_access import Claim, shuffled


def claim(number: int, owner: int, **changes: object) -> Claim:
    values: dict[str, object] = {"tier": 1, "pe": 1.0, "jobs": 10, "submitted_at": Instant(float(number))}
    return Claim(BatchId(number), owner, **{**values, **changes})  # type: ignore[arg-type]  # by name


def order(*claims: Claim, held: dict[int, float] | None = None, slots: int = 4) -> list[int]:
    return list(shuffled(claims, held_pe=held or {}, slots=slots))


def test_equals_alternate_and_big_jobs_count_for_what_they_hold() -> None:
    assert order(claim(1, 1), claim(2, 2)) == [1, 2, 1, 2]
    assert order(claim(1, 1, pe=3.0), claim(2, 2), slots=5) == [1, 2, 2, 2, 1]


def test_express_precedes_normal_regardless_of_work_in_progress() -> None:
    assert order(claim(1, 1), claim(2, 2, tier=0, jobs=2), held={2: 99.0}) == [2, 2, 1, 1]


def test_a_batch_passed_over_comes_nearer() -> None:
    assert order(claim(1, 1), claim(2, 2, bypassed=2), held={2: 1.0}, slots=2) == [2, 1]


def test_no_more_jobs_are_placed_than_there_are() -> None:
    assert order(claim(1, 1, jobs=1), claim(2, 1, jobs=1), claim(3, 2, jobs=0), slots=9) == [1, 2]
