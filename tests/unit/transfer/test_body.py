"""How long an upload may take: as long as a slow home link needs, and no longer."""

from __future__ import annotations

from typing import cast

import pytest
from aiohttp import StreamReader

from domain.units import Instant
from tests.unit.scheduler.project import HandClock
from transfer.body import RequestBody

IDLE_S, LEAST_BYTES_PER_S = 300.0, 1000.0


class Link:
    """Brings so many bytes at a time, and takes its time for each piece."""

    def __init__(self, clock: HandClock, *, nbytes: int, every_s: float) -> None:
        self._clock = clock
        self._nbytes = nbytes
        self._every_s = every_s

    async def readany(self) -> bytes:
        self._clock.at = Instant(self._clock.at + self._every_s)
        return b"x" * self._nbytes


async def brought(nbytes: int, every_s: float, wanted: int) -> tuple[int, str, float]:
    """Bytes that were taken, why no more were, and the seconds it took."""
    clock = HandClock()
    stream = cast(StreamReader, Link(clock, nbytes=nbytes, every_s=every_s))
    body = RequestBody(stream, clock, idle_timeout_s=IDLE_S, least_bytes_per_s=LEAST_BYTES_PER_S)
    began_s = clock.monotonic()
    got = await body.read(wanted)
    return len(got), body.ended, clock.monotonic() - began_s


@pytest.mark.parametrize(
    ("nbytes", "every_s"),
    [(1000, 1.0), (60_000, 60.0), (250_000, 240.0)],
    ids=["steady", "in bursts", "in long pauses"],
)
async def test_a_link_of_a_kilobyte_a_second_brings_a_file_of_any_size(nbytes: int, every_s: float) -> None:
    assert (await brought(nbytes, every_s, 10_000_000))[:2] == (10_000_000, "")


async def test_a_byte_now_and_then_is_given_up_after_five_minutes_of_waiting() -> None:
    nbytes, ended, took_s = await brought(1, 10.0, 10_000_000)

    assert ended == "less than 1000 bytes came a second"
    assert nbytes == 31
    assert took_s == pytest.approx(310.0)
