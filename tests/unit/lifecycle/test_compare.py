"""Agreement of two instances' outputs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.jobs import ValidatorKind
from domain.units import InstanceId
from lifecycle.compare import AcceptAll, Bitwise, Comparer, NumericTolerance, OutputCopy, comparer_for, group_readings
from lifecycle.leaves import MalformedOutputError, Reader, Reading, ReadingLimits
from lifecycle.settle import UNREADABLE


def an_output(content: bytes | None, name: str = "out", md5: str = "0" * 32) -> OutputCopy:
    return OutputCopy(name, len(content or b""), md5, content)


def group_outputs(
    comparer: Comparer, outputs: Mapping[InstanceId, Sequence[OutputCopy]], *, around: InstanceId | None = None
) -> dict[InstanceId, int]:
    """Group outputs, some possibly malformed, as jobs/comparisons.py does."""
    readings: dict[InstanceId, Reading | None] = {}
    for instance_id, copies in outputs.items():
        try:
            readings[instance_id] = comparer.read(copies)
        except MalformedOutputError:
            readings[instance_id] = None
    return group_readings(comparer, readings, around=around)


def grouped(tolerance: float, *contents: bytes | None, name: str = "out", around: int | None = None) -> list[int]:
    """The groups of instances 1, 2, 3, ... with one output each."""
    outputs = {InstanceId(n): [an_output(content, name)] for n, content in enumerate(contents, start=1)}
    canonical = None if around is None else InstanceId(around)
    groups = group_outputs(NumericTolerance(tolerance), outputs, around=canonical)
    return [groups[InstanceId(n)] for n in range(1, len(contents) + 1)]


# ------------------------------------------------------------------ bitwise and accept


def test_bitwise_tells_by_md5_and_size() -> None:
    outputs = {
        InstanceId(1): [OutputCopy("out", 3, "a" * 32)],
        InstanceId(2): [OutputCopy("out", 3, "A" * 32)],
        InstanceId(3): [OutputCopy("out", 4, "a" * 32)],
        InstanceId(4): [OutputCopy("out", 3, "b" * 32)],
    }
    assert group_outputs(Bitwise(), outputs) == {1: 0, 2: 0, 3: 1, 4: 2}


def test_bitwise_ignores_order_but_not_absence_of_outputs() -> None:
    a, b = OutputCopy("a", 1, "1" * 32), OutputCopy("b", 1, "2" * 32)
    outputs = {InstanceId(1): [a, b], InstanceId(2): [b, a], InstanceId(3): [a]}
    assert group_outputs(Bitwise(), outputs) == {1: 0, 2: 0, 3: 1}


def test_accept_all_takes_everything_for_the_same() -> None:
    outputs = {InstanceId(1): [an_output(b"x")], InstanceId(2): []}
    assert group_outputs(AcceptAll(), outputs) == {1: 0, 2: 0}


@pytest.mark.parametrize(
    ("validator", "expected", "needs_content"),
    [
        (ValidatorKind.BITWISE, Bitwise(), False),
        (ValidatorKind.ACCEPT, AcceptAll(), False),
        (ValidatorKind.TOLERANCE, NumericTolerance(0.01), True),
    ],
)
def test_each_validator_has_its_comparer(validator: ValidatorKind, expected: object, needs_content: bool) -> None:
    comparer = comparer_for(validator, 0.01)
    assert comparer == expected
    assert comparer.needs_content is needs_content


# ------------------------------------------------------------------ numbers within a tolerance


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"e": 1000.0}', b'{"e": 1000.9}', True),
        (b'{"e": 1000.0}', b'{"e": 1001.1}', False),
        (b'{"e": 1000}', b'{"e": 1000.5}', True),  # a whole number is a number
        (b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}', True),  # the order of keys does not matter
        (b"[1, 2]", b"[2, 1]", False),  # the order of a list matters
        (b"[1, 2]", b"[1, 2, 3]", False),
        (b'["x"]', b'["y"]', False),
        (b"[1]", b'["1"]', False),
        (b"[true]", b"[1]", False),
        (b"[null]", b"[null]", True),
        (b"[null]", b"[0]", False),
        (b"[]", b"{}", False),
        (b"[[]]", b"[[]]", True),
        (b"[[1], 2]", b"[1, [2]]", False),
        (b"[1e-14]", b"[-1e-14]", True),  # below the floor
        (b"[NaN]", b"[NaN]", False),
        (b"[Infinity]", b"[Infinity]", True),
        (b"[Infinity]", b"[-Infinity]", False),
        (b"[Infinity]", b"[1e300]", False),
        (b"t,x\n0,1.0\n", b"t,x\r\n0,1.0005\r\n\r\n", True),  # CSV, ignoring line ends and blank lines
        (b"t,x\n0,1.0\n", b"t,x\n0,1.01\n", False),
        (b"t,x\n0,1.0\n", b"t,y\n0,1.0\n", False),
        (b"1,2\n", b"1\n2\n", False),
        (b"nan\n", b"nan\n", False),
        (b"1_0\n", b"10\n", False),
        (b'"a,b",1', b'"a,b", 1.0001', True),
    ],
)
def test_numbers_may_differ_a_little_and_texts_not_at_all(one: bytes, other: bytes, same: bool) -> None:
    assert grouped(1e-3, one, other) == ([0, 0] if same else [0, 1])


@pytest.mark.parametrize(
    "malformed",
    [
        None,  # not on the server
        b"",
        b"\n\n",
        b"[1, 2",
        b'{"a": }',
        b"\xff\xfe\x00",
        b'"open quote',
        b"[" * 100_000,
        b"[1" + b"0" * 400 + b"]",
    ],
)
def test_a_malformed_output_is_unreadable(malformed: bytes | None) -> None:
    assert grouped(1e-3, b"[1, 2]", malformed) == [0, UNREADABLE]


def test_one_malformed_output_makes_the_instance_unreadable() -> None:
    outputs = {InstanceId(1): [an_output(b"1", "a"), an_output(b"[", "b")]}
    assert group_outputs(NumericTolerance(0.1), outputs) == {1: UNREADABLE}


def read(name: str, content: bytes, limits: ReadingLimits = ReadingLimits()) -> Reading:  # noqa: B008 - frozen
    reader = Reader(limits)
    reader.add(name, content)
    return reader.reading()


def test_a_name_decides_the_format_where_it_can() -> None:
    assert list(read("out.json", b"5").numbers) == [5.0]
    assert list(read("out.csv", b"[1,2").numbers) == [2.0]
    with pytest.raises(MalformedOutputError, match=r"out\.JSON is not JSON"):
        read("out.JSON", b"1,2")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"1,\xff", "not UTF-8: byte 2 is 0xff"),
        (b"", "out is empty"),
        (b"[" * 50 + b"1" + b"]" * 50, "nested deeper than 8 levels"),
        (b"[" * 5000 + b"1" + b"]" * 5000, "nested deeper than 8 levels"),
        (b"[" + b"1," * 50 + b"1]", "more than 50 values"),
        (b"1," * 50 + b"1", "more than 50 values"),
        (b"[" + b"[]," * 50 + b"1]", "more than 50 values"),
        (b"[" + b"9" * 300_000 + b"]", "300000 digits"),
        (b" " * 400_001, "400,001 B > 400,000 B"),
    ],
)
def test_an_output_beyond_a_limit_says_which(content: bytes, said: str) -> None:
    with pytest.raises(MalformedOutputError, match=said):
        read("out", content, ReadingLimits(max_bytes=400_000, max_values=50, max_depth=8))


def test_a_deep_output_with_many_values_takes_8_bytes_for_each() -> None:
    """This took 3.7 GB when each value had its own path."""
    deep, many = 90, 498_000
    found = read("out", b"[" * deep + b"1," * many + b"1" + b"]" * deep)
    assert len(found.numbers) == many + 1
    assert found.numbers.itemsize == 8


def naive(content: bytes) -> list[tuple[tuple[object, ...], object]]:
    """Every value with its position, by the definition."""
    found: list[tuple[tuple[object, ...], object]] = []

    def walk(place: tuple[object, ...], node: object) -> None:
        if isinstance(node, dict) and node:
            for key in sorted(node):
                walk((*place, key), node[key])
        elif isinstance(node, list) and node:
            for position, one in enumerate(node):
                walk((*place, position), one)
        else:
            found.append(
                (place, ("{}" if isinstance(node, dict) else "[]",) if isinstance(node, (dict, list)) else node)
            )

    walk((), json.loads(content, parse_int=float))
    return found


def close(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-12)
    return type(one) is type(other) and one == other


VALUES = (
    st.none() | st.booleans() | st.sampled_from([0.0, 1.0, 1.0005, 2.0, -1.0, 1e300]) | st.sampled_from(["", "a", "1"])
)
KEYS = st.sampled_from(["", "a", "b", "0", "a b"])
JSON = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@given(one=JSON, other=JSON)
def test_agreement_is_that_of_places_and_values(one: object, other: object) -> None:
    contents = [json.dumps(value).encode() for value in (one, other)]
    places = [naive(content) for content in contents]
    same = len(places[0]) == len(places[1]) and all(
        a == b and close(x, y) for (a, x), (b, y) in zip(*places, strict=True)
    )
    assert grouped(1e-3, *contents, name="out.json") == ([0, 0] if same else [0, 1])


# ------------------------------------------------------------------ groups


def test_a_group_is_what_agrees_with_its_first_member() -> None:
    """1.0 ~ 1.05 ~ 1.10, but not 1.0 ~ 1.10."""
    assert grouped(0.06, b"1.0", b"1.05", b"1.10") == [0, 0, 1]
    assert grouped(0.06, b"1.05", b"1.0", b"1.10") == [0, 0, 0]


def test_latecomers_are_compared_with_the_canonical_result() -> None:
    assert grouped(0.06, b"1.0", b"1.05", b"1.10", around=3) == [1, 0, 0]
