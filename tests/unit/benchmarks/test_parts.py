"""Sampled stacks are assigned to stages of a request."""

from __future__ import annotations

import pytest

from benchmarks.parts import PARTS, REST, parts_of, table
from domain.errors import InvalidInputError
from tests.facts import states

HANDLER = "RequestHandler.start (aiohttp/web_protocol.py:600);SchedulerHandler.handle (scheduler/handler.py:80)"


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        (f"{HANDLER};decode_request (wire/decode.py:40);text_of (wire/scan.py:9)", "decode"),
        (f"{HANDLER};RequestService.answer (scheduler/service.py:70);choose (scheduler/selection.py:9)", "decide"),
        (f"{HANDLER};RequestService.answer (scheduler/service.py:70)", "rest of the service"),
        ("RequestHandler.start (aiohttp/web_protocol.py:600)", "aiohttp"),
        ("Grouped._run (store/group.py:112);write_many (store/ledger.py:85)", "store, writes"),
        ("Grouped._run (store/group.py:112)", "grouping"),
        ("Feeder.run (feeder/service.py:71);Refiller.refill (feeder/refill.py:90)", "refill"),
        ("Runner.run (asyncio/runners.py:118)", REST),
    ],
)
def test_a_stack_belongs_to_the_innermost_part_it_is_in(stack: str, part: str) -> None:
    assert parts_of([f"{stack} 7\n"]) == {part: 1.0}


def test_every_part_has_a_name_of_its_own() -> None:
    names = [part for part, _ in PARTS]
    assert len({*names, REST}) == len(names) + 1


def test_threads_that_wait_are_not_work() -> None:
    shares = parts_of(["Runner.run (asyncio/runners.py:118) 3", "_worker (concurrent/futures/thread.py:81) 30"])
    assert shares == {REST: 1.0}


def test_a_stack_that_could_not_be_read_belongs_nowhere() -> None:
    assert parts_of(["Runner.run (asyncio/runners.py:118) 3", " 8\n"]) == {REST: 1.0}


def test_a_profile_of_nothing_has_no_parts() -> None:
    assert parts_of([]) == {}


def test_a_line_without_a_count_is_refused() -> None:
    with states(InvalidInputError, "line 2:", "count"):
        parts_of(["run (loop.py:1) 3", "run (loop.py:1)"])


def test_shares_become_microseconds() -> None:
    assert table({"decode": 0.5, REST: 0.5}, 321.0) == {"decode": 160.5, REST: 160.5}
