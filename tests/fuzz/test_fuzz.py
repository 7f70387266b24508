"""A few thousand hostile inputs, the same at every run (`make fuzz` makes millions), and every finding of before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.__main__ import turns
from tests.fuzz.mutations import mutate
from tests.fuzz.plan import PLAN
from tests.fuzz.short import shortened
from tests.fuzz.targets import FINDINGS, TARGETS, captured
from tests.fuzz.watch import Finding, tried
from wire.decode import decode_request
from wire.errors import ProtocolError

RUNS = {"decode": 1500, "answer": 300, "upload": 400, "api": 600}
KEPT = sorted(path for path in FINDINGS.rglob("*") if path.is_file() and path.suffix != ".txt")


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_what_strangers_send_breaks_nothing(name: str) -> None:
    target, draw = TARGETS[name], random.Random(20)
    run, seeds = target.make(), list(target.seeds())
    run(seeds[0])

    inputs = [*seeds, *(mutate(draw.choice(seeds), draw, seeds) for _ in range(RUNS[name]))]
    found = [finding for raw in inputs if (finding := tried(name, run, raw))]

    assert [(finding.kind, finding.what, finding.raw[:200]) for finding in found] == []


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_broke_something_once_does_so_no_more(path: Path) -> None:
    name = path.parent.name
    run = TARGETS[name].make()
    run(TARGETS[name].seeds()[0])

    assert tried(name, run, path.read_bytes()) is None


def test_mutations_are_the_same_for_the_same_seed_and_reach_deep() -> None:
    seeds = list(TARGETS["decode"].seeds())
    inputs = [[mutate(seeds[0], draw, seeds) for _ in range(200)] for draw in (random.Random(3), random.Random(3))]

    understood = 0
    for raw in inputs[0]:
        try:
            TARGETS["decode"].make()(raw)
            understood += b"<scheduler_request>" in raw
        except ProtocolError:
            pass
    assert inputs[0] == inputs[1]
    assert len(set(inputs[0])) > 150
    assert understood > 100


def test_a_crash_a_hang_and_a_hoard_are_found(tmp_path: Path) -> None:
    hoard: list[bytearray] = []

    def broken(raw: bytes) -> None:
        if raw == b"crash":
            raise ZeroDivisionError
        if raw == b"hang":
            sum(range(15_000_000))
        if raw == b"hoard":
            hoard.append(bytearray(b"x" * 200_000_000))

    found = [tried("decode", broken, raw) for raw in (b"crash", b"hang", b"hoard", b"")]

    assert [one and one.kind for one in found] == ["crash", "hang", "memory", None]
    crash = found[0]
    assert crash is not None
    assert crash.what.startswith("ZeroDivisionError at test_fuzz.py:broken")
    assert crash.save(tmp_path).read_bytes() == b"crash"
    smaller = Finding(crash.target, crash.kind, crash.what, b"c")
    assert smaller.save(tmp_path).read_bytes() == b"c"  # the smallest input of a kind is kept


def test_what_never_ends_is_given_up_and_the_next_input_has_its_turn() -> None:
    def endless(raw: bytes) -> None:
        while raw:
            pass

    found = [tried("decode", endless, raw, endless_s=0.05) for raw in (b"endless", b"")]

    assert [one and one.kind for one in found] == ["endless", None]


def test_short_requests_say_all_that_is_read_of_whole_ones() -> None:
    whole = captured(b"<scheduler_request>")

    short = [shortened(raw, decode_request) for raw in whole[:5]]

    assert [decode_request(raw) for raw in short] == [decode_request(raw) for raw in whole[:5]]
    assert sum(map(len, short)) < sum(map(len, whole[:5])) / 2


def test_every_target_has_its_turns() -> None:
    planned = list(turns(1_000_000, sorted(PLAN), 7))

    assert TARGETS.keys() == PLAN.keys()
    assert sum(turn.runs for turn in planned) >= 1_000_000
    assert {turn.target for turn in planned[: len(PLAN)]} == set(PLAN)
    assert len({turn.seed for turn in planned}) == len(planned)
