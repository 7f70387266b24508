"""A few thousand hostile inputs, the same at every run (`make fuzz` makes millions), and every past finding."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.__main__ import Turn, done, turns
from tests.fuzz.blind import blind, grown_in
from tests.fuzz.mutations import mutate
from tests.fuzz.plan import PLAN, ROUND
from tests.fuzz.short import shortened
from tests.fuzz.targets import FINDINGS, TARGETS, captured
from tests.fuzz.watch import Finding, tried
from wire.decode import decode_request
from wire.messages import ProtocolError

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


def test_endless_input_is_stopped_and_the_next_one_runs() -> None:
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


def test_every_round_gives_every_target_its_share() -> None:
    planned = list(turns(3 * ROUND, sorted(PLAN), 7))
    first = planned[: len(PLAN)]

    assert TARGETS.keys() == PLAN.keys()
    assert sum(turn.runs for turn in planned) >= 3 * ROUND
    assert {turn.target: round(turn.runs / ROUND, 3) for turn in first} == {
        name: part.share for name, part in PLAN.items()
    }
    assert len({turn.seed for turn in planned}) == len(planned)


def test_mutations_include_coverage_finds_and_are_counted(tmp_path: Path) -> None:
    (tmp_path / "corpus-decode").mkdir()
    (tmp_path / "corpus-decode" / "odd").write_bytes(b"<odd>")

    tried_ = blind("decode", 30, 1, tmp_path)

    assert tried_ == 30
    assert grown_in(tmp_path, "decode") == [b"<odd>"]
    assert blind("decode", 30, 1, tmp_path, within_s=0.0) == 0


def test_turn_without_time_or_ended_early(tmp_path: Path) -> None:
    (tmp_path / "findings").mkdir()

    late = done(Turn("decode", 10, 3), tmp_path, 0.0, led=0.0)
    broken = done(Turn("nothing", 10, 3), tmp_path, float("inf"), led=0.0)

    assert (late.blind, broken.blind) == (0, 0)
    assert [path.name for path in (tmp_path / "findings").iterdir()] == ["nothing-ended-3.txt"]
