"""Tests which batches limits block, and the headroom of the others, in order."""

from __future__ import annotations

from domain.limits import Limit, Quantity, Scope
from domain.ordering import Request, ServiceLevel
from domain.units import BatchId, Seconds
from domain.usage import Amounts
from jobs.ordering.headroom import Headroom, QuotaClaim, headrooms, idle_holds, in_progress, soft_sentences
from jobs.ordering.sizing import JobFootprint
from tests.facts import missing

SIZE = JobFootprint(Request(), Seconds(3600.0), 2.0, Amounts())


def a_claim(number: int, *, unsent: int = 10, out: int = 0, who: str = "ada", standby: bool = False) -> QuotaClaim:
    level = ServiceLevel.STANDBY if standby else ServiceLevel.NORMAL
    return QuotaClaim(BatchId(number), {Scope.SUBMITTER: who, Scope.QUEUE: "normal"}, SIZE, level, unsent, out)


def jobs(hard: float, **others: object) -> Limit:
    return Limit(Scope.SUBMITTER, Quantity.JOBS, hard=hard, **others)  # type: ignore[arg-type]  # any field


def test_without_limits_there_is_room_for_anything() -> None:
    assert headrooms([a_claim(1)], [], {}) == {1: Headroom(None, None)}


def test_the_first_batch_takes_what_is_left_and_the_next_is_held() -> None:
    claims = [a_claim(1, out=3), a_claim(2)]
    found = headrooms(claims, [jobs(8.0)], in_progress(claims))
    assert found[BatchId(1)] == Headroom(None, 5)
    assert not missing(found[BatchId(2)].hold or "", "hard", "submitter ada:", "8 + 1 > 8 jobs")


def test_a_held_batch_names_every_limit_that_holds_it() -> None:
    claim = a_claim(1, out=4)
    limits = [jobs(4.0), Limit(Scope.QUEUE, Quantity.PE, hard=8.0), Limit(Scope.SUBMITTER, Quantity.JOB_PE, hard=1.0)]
    hold = headrooms([claim], limits, in_progress([claim]))[BatchId(1)].hold
    assert hold is not None
    assert [said.split(":")[0] for said in hold.split("; ")] == [
        "hard limit of submitter ada",
        "hard limit of queue normal",
        "hard limit of submitter ada",
    ]


def test_standby_work_is_free_of_size_limits_alone() -> None:
    limits = [Limit(Scope.SUBMITTER, Quantity.JOB_RUNTIME_S, hard=60.0), jobs(1.0)]
    found = headrooms([a_claim(1, standby=True), a_claim(2, who="bob")], limits, {})
    assert found[BatchId(1)] == Headroom(None, 1)
    assert found[BatchId(2)].hold is not None


def test_others_limits_do_not_matter() -> None:
    assert headrooms([a_claim(1)], [jobs(0.0, name="bob")], {}) == {1: Headroom(None, None)}


def test_over_a_soft_limit_a_batch_says_so_and_is_not_held() -> None:
    claim, limit = a_claim(1, out=3), Limit(Scope.SUBMITTER, Quantity.JOBS, soft=3.0)
    totals = in_progress([claim])
    [soft] = soft_sentences(claim, [limit], totals)
    assert not missing(soft, "soft", "submitter ada:", "3 + 1 > 3 jobs")
    assert headrooms([claim], [limit], totals) == {1: Headroom(None, None)}


def test_batches_beyond_submitters_part_earn_no_queue_time() -> None:
    claims = [a_claim(1), a_claim(2), a_claim(3, who="bob")]
    assert idle_holds(claims, slots=40, fraction=0.25, least=4) == {2}
