"""Tests which batches get a new explanation."""

from __future__ import annotations

from domain.ordered_work import OrderedBatch, OrderNotes, StoredPlace
from domain.ordering import Request
from domain.units import BatchId, Flop, Seconds
from domain.usage import Amounts
from jobs.ordering.rows import TURNS, BatchRow, to_explain
from jobs.ordering.sizing import JobFootprint
from priority.charging import NORMAL
from tests.builders import a_batch

SERIAL = 0  # its turn covers batches 10, 20, ...


def a_row(batch_id: int, key: float, *, explained: bool = True) -> BatchRow:
    batch = a_batch(batch_id=BatchId(batch_id), order_tier=0, order_key=key)
    one = OrderedBatch(batch, Flop(1e12), Request(), Flop(1e12), notes=OrderNotes(), explained=explained)
    size = JobFootprint(Request(), Seconds(1.0), 1.0, Amounts())
    return BatchRow(one, size, NORMAL, "", notes=OrderNotes(), charges=[], sent=0)


def moved(*places: tuple[int, float], **changes: object) -> dict[BatchId, StoredPlace]:
    return {BatchId(n): StoredPlace(BatchId(n), 0, key, **changes) for n, key in places}  # type: ignore[arg-type]  # by name


def test_numbers_that_grow_alike_are_explained_in_turns() -> None:
    rows = [a_row(n, float(n)) for n in range(1, 31)]
    older = moved(*((n, n - 0.5) for n in range(1, 31)))

    turns = [to_explain(rows, older, changed=False, serial=serial) for serial in range(TURNS)]

    assert turns[SERIAL] == [10, 20, 30]
    assert sorted(batch_id for turn in turns for batch_id in turn) == list(range(1, 31))


def test_changed_number_is_explained_in_its_own_turn() -> None:
    rows = [a_row(n, float(n)) for n in range(1, 31)]

    turns = [to_explain(rows, {}, changed=False, serial=serial) for serial in range(TURNS)]

    assert sorted(batch_id for turn in turns for batch_id in turn) == list(range(1, 31))


def test_overtaking_and_overtaken_batches_are_explained() -> None:
    one, two, three, four = (a_row(n, float(n)) for n in (1, 2, 3, 4))

    assert to_explain([three, one, two, four], moved((3, 0.0), (4, 3.9)), changed=False, serial=5) == [3, 4]


def test_other_weights_explain_all_whose_number_changed() -> None:
    rows = [a_row(n, float(n)) for n in (1, 2, 3)]

    assert to_explain(rows, moved((1, 0.5), (3, 2.5)), changed=True, serial=5) == [1, 3]


def test_new_hold_and_unexplained_batch_are_explained_at_once() -> None:
    rows = [a_row(1, 1.0), a_row(2, 2.0), a_row(3, 3.0, explained=False)]

    assert to_explain(rows, moved((2, 2.0), hold="hard limit"), changed=False, serial=5) == [2, 3]
