"""The largest accepted requests, as hostile as possible: time and memory grow linearly with their length."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from domain.settings import Settings
from tests.unit.wire import captured
from wire.decode import decode_request
from wire.messages import ProtocolError

MOST = Settings().scheduler.max_request_bytes
HEAD, _, TAIL = captured.request(10).partition(b"<host_info>")
FILLINGS = {
    "entities": b"&lol;" * 10,
    "references": b"&#65;&amp;",
    "declarations": b'<!DOCTYPE a [<!ENTITY b "bbbbbbbb">]>',
    "nesting": b"<a>",
    "closing": b"</a>",
    "opening brackets": b"<",
    "hosts": b"<host_info>",
    "results": b"<result>",
    "ended results": b"<result>\n<name>pi_1_1_1</name>\n</result>",
    "results in stderr": b"<stderr_out>\n<result>\n",
    "held results": b"<other_results><other_result><name>a</name></other_result>",
    "numbers": b"<p_fpops>" + b"9" * 300 + b"</p_fpops>",
    "graphics cards": b"<coprocs><coproc_cuda><count>9</count>",
    "names": b"<alt_platform><name>a</name></alt_platform>",
    "nothing": b"\x00",
    "blanks": b" \n",
}


def took_s(body: bytes) -> float:
    began_s = time.process_time()
    try:
        decode_request(body)
    except ProtocolError as error:
        assert len(str(error)) < 1000
    return time.process_time() - began_s


def giant(filling: bytes, nbytes: int) -> bytes:
    room = nbytes - len(HEAD) - len(TAIL) - 11
    return HEAD + filling * (room // len(filling)) + b"<host_info>" + TAIL


@pytest.mark.parametrize("name", sorted(FILLINGS))
def test_eight_megabytes_of_anything_are_read_in_linear_time(name: str) -> None:
    small, large = (giant(FILLINGS[name], nbytes) for nbytes in (MOST // 8, MOST))

    least_s = min(took_s(small) for _ in range(3))

    assert min(took_s(large) for _ in range(2)) < 8 * 4 * max(least_s, 0.005)


@pytest.mark.parametrize("name", ["ended results", "held results", "entities", "names"])
def test_reading_giants_takes_memory_proportional_to_size(name: str) -> None:
    body = giant(FILLINGS[name], MOST)
    tracemalloc.start()
    took_s(body)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 50 * 1024 * 1024
