"""Counts of requests and refills."""

from __future__ import annotations

import asyncio

import structlog
from structlog.testing import capture_logs

from domain.refusals import RefusalCode
from domain.units import Seconds
from feeder.refill import Refill
from runtime.counters import LOG_EVERY_S, LOOK_EVERY_S, RefillCounters, RequestCounters
from tests.builders import NOW
from tests.unit.administration.clocks import HastyClock, StillClock


def answered(counters: RequestCounters, *, sent: int = 0, **refusals: int) -> None:
    counters.request_answered(
        sent=sent,
        resent=0,
        reports=1,
        refusals={RefusalCode(code): n for code, n in refusals.items()},
        took_s=Seconds(0.25),
    )


def test_answers_add_up() -> None:
    counters = RequestCounters(StillClock())

    answered(counters, sent=3, too_slow=2)
    answered(counters, sent=1, too_slow=1, memory=4)

    assert counters.totals == {"requests": 2, "sent": 4, "resent": 0, "reports": 2}
    assert counters.refusals == {RefusalCode.TOO_SLOW: 3, RefusalCode.MEMORY: 4}
    assert counters.took_s == 0.5


def test_a_failed_request_counts_as_a_request_with_its_status() -> None:
    counters = RequestCounters(StillClock())

    counters.request_failed(503)
    counters.request_failed(503)
    counters.request_failed(413)

    assert counters.totals == {"requests": 3, "status_503": 2, "status_413": 1}


async def lines_of(counters: RequestCounters, clock: HastyClock) -> list[structlog.typing.EventDict]:
    with capture_logs() as lines:
        task = asyncio.create_task(counters.run())
        await clock.done.wait()
        task.cancel()
    assert set(clock.sleeps) == {LOG_EVERY_S}
    return [dict(line) for line in lines]


async def test_each_minute_is_one_line_of_what_it_brought() -> None:
    class BusyMinute(HastyClock):
        async def sleep(self, duration_s: float) -> None:
            if len(self.sleeps) == 1:
                answered(counters, sent=2)
            await super().sleep(duration_s)

    clock = BusyMinute(rounds=2)
    counters = RequestCounters(clock)
    answered(counters, sent=1, too_slow=2)

    first, second = await lines_of(counters, clock)

    assert (first["event"], first["requests"], first["sent"], first["refusals"]) == ("requests", 1, 1, {"too_slow": 2})
    assert (second["requests"], second["sent"], second["reports"]) == (1, 2, 1)


async def test_a_minute_without_requests_is_no_line() -> None:
    clock = HastyClock(rounds=5)

    assert await lines_of(RequestCounters(clock), clock) == []


def a_refill(took_s: float, *, placed: int = 1) -> Refill:
    return Refill(NOW, Seconds(took_s), batches=1, offered=1, placed=placed, dropped=0, rotated_out=0, slots=1)


async def test_refills_are_logged_once_a_minute() -> None:
    refills = [a_refill(0.1), a_refill(0.3), a_refill(0.2), a_refill(9.0, placed=0)]
    latest = iter([None, refills[0], refills[0], *refills[1:]])
    looks = round(LOG_EVERY_S / LOOK_EVERY_S)
    clock = HastyClock(looks)
    counters = RefillCounters(lambda: next(latest, refills[-1]), clock)

    with capture_logs() as lines:
        task = asyncio.create_task(counters.run())
        await clock.done.wait()
        task.cancel()

    assert [dict(line) for line in lines] == [
        {"event": "refills", "log_level": "info", "refills": 3, "placed": 3, "median_s": 0.2, "most_s": 0.3}
    ]


async def test_last_partial_minute_is_logged_on_stop() -> None:
    refill = a_refill(0.5, placed=7)
    clock = HastyClock(1)
    counters = RefillCounters(lambda: refill, clock)

    with capture_logs() as lines:
        task = asyncio.create_task(counters.run())
        await clock.done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert [line["placed"] for line in lines] == [7]
