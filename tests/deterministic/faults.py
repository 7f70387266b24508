"""Injects failures into store calls: done, not done, or done without or with a late reply."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from domain.clock import Clock
from domain.errors import UnavailableError

MOST_SLOW_S = 40.0  # longer than any request waits for the database
MOST_AWAY_S = 600.0
LAGS = 0.2  # how often a message is delayed
MOST_LAG_S = 4.0


class Fate(StrEnum):
    """The fate of one call."""

    DONE = "done"
    REFUSED = "refused before anything is written"
    UNHEARD = "committed, and the reply is lost"
    SLOW = "done late"
    SLOW_REPLY = "committed at once, with a late reply"
    CUT = "the connection is lost, and this process has none for a while"


HEARTBEATS = frozenset({"duties.mine", "shards.run_once", "clock.database_now"})  # always the same
FAILURES = tuple(fate for fate in Fate if fate is not Fate.DONE)
Plan = Callable[[int, str], Fate]  # (number of the call, its name) -> its fate


@dataclass(slots=True)
class Faults:
    """Decides by `plan` while `on`, and counts. `calls` exclude heartbeats, `seen` counts all by name."""

    plan: Plan
    draw: random.Random
    on: bool = True
    most_slow_s: float = MOST_SLOW_S
    calls: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    injected: Counter[tuple[str, Fate]] = field(default_factory=Counter)

    def next(self, name: str) -> Fate:
        self.calls += name not in HEARTBEATS
        self.seen[name] += 1
        fate = self.plan(self.calls, name) if self.on else Fate.DONE
        if fate is not Fate.DONE:
            self.injected[name, fate] += 1
        return fate

    def note(self, name: str, fate: Fate) -> None:
        """Count a failure outside a call."""
        self.injected[name, fate] += 1


def now_and_then(draw: random.Random, rate: float) -> Plan:
    """Fail each call with this probability, in any way."""

    def plan(number: int, name: str) -> Fate:
        del number, name
        return draw.choice(FAILURES) if draw.random() < rate else Fate.DONE

    return plan


def only(which: int, fate: Fate) -> Plan:
    """Fail one call of the run, counted from 1 without heartbeats."""
    return lambda number, name: fate if number == which and name not in HEARTBEATS else Fate.DONE


async def others_first() -> None:
    """Let other ready tasks run."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    await turned


@dataclass(slots=True)
class Link:
    """One process's connection to the store, and how long it is without one."""

    faults: Faults
    clock: Clock
    lost: Callable[[], None] = lambda: None  # called when the connection is lost
    away_until_s: float = 0.0

    def is_away(self) -> bool:
        return self.clock.monotonic() < self.away_until_s

    def cut(self) -> None:
        self.away_until_s = self.clock.monotonic() + self.faults.draw.uniform(0.0, MOST_AWAY_S)
        self.lost()

    async def call(self, name: str, done: Callable[[], Any]) -> Any:
        """Pass one call to the store and its reply back."""
        await self._passes()  # other tasks may run before and after
        if self.is_away():
            raise UnavailableError("the database is unavailable: no connection")
        fate = self.faults.next(name)
        if fate in (Fate.REFUSED, Fate.CUT):
            if fate is Fate.CUT:
                self.cut()
            raise UnavailableError(f"the database is unavailable: {name} {fate}")
        if fate is Fate.SLOW:
            await self.clock.sleep(self.faults.draw.uniform(0.0, self.faults.most_slow_s))
        answer = await done()
        if fate is Fate.UNHEARD:
            raise UnavailableError(f"the database is unavailable: {name} {fate}")
        if fate is Fate.SLOW_REPLY:
            await self.clock.sleep(self.faults.draw.uniform(0.0, self.faults.most_slow_s))
        await self._passes()
        return answer

    async def _passes(self) -> None:
        """Wait for the message's delay, mostly zero."""
        if self.faults.on and self.faults.draw.random() < LAGS:
            await self.clock.sleep(self.faults.draw.uniform(0.0, MOST_LAG_S))
        else:
            await others_first()


class FaultyStore:
    """The store as one process sees it: each port's calls go over its link. Satisfies the store's protocols."""

    def __init__(self, store: Any, link: Link) -> None:
        self._store = store
        self._link = link
        self._ports: dict[str, FaultyPort] = {}

    def __getattr__(self, name: str) -> FaultyPort:
        if name not in self._ports:
            self._ports[name] = FaultyPort(name, getattr(self._store, name), self._link)
        return self._ports[name]


class FaultyPort:
    """A port whose every call may fail. A non-coroutine is a transaction, which fails as a whole."""

    def __init__(self, name: str, port: Any, link: Link) -> None:
        self._name = name
        self._port = port
        self._link = link

    def __getattr__(self, name: str) -> Any:
        """Return the method of this name; it is created once and then stored as an attribute."""
        called = self._called(name)
        setattr(self, name, called)
        return called

    def _called(self, name: str) -> Any:
        method = getattr(self._port, name)
        where = f"{self._name}.{name}"
        if inspect.iscoroutinefunction(method):

            async def call(*args: Any, **named: Any) -> Any:
                return await self._link.call(where, lambda: method(*args, **named))

            return call
        if inspect.isasyncgenfunction(method):
            return lambda *args, **named: self._stream(where, method(*args, **named))
        return lambda *args, **named: self._transaction(where, method(*args, **named))

    async def _stream(self, where: str, rows: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Fail before the first row, or after the last."""
        fate = self._link.faults.next(where)
        await others_first()
        if self._link.is_away() or fate in (Fate.REFUSED, Fate.CUT):
            raise UnavailableError(f"the database is unavailable: {where} {fate}")
        async for row in rows:
            yield row
        if fate is Fate.UNHEARD:
            raise UnavailableError(f"the database is unavailable: {where} {fate}")

    @asynccontextmanager
    async def _transaction(self, where: str, whole: Any) -> AsyncIterator[Any]:
        """Fail before the beginning, or after the end."""
        fate = self._link.faults.next(where)
        await others_first()
        if self._link.is_away() or fate in (Fate.REFUSED, Fate.CUT):
            raise UnavailableError(f"the database is unavailable: {where} {fate}")
        async with whole as writer:
            yield None if writer is None else FaultyPort(self._name, writer, self._link)
        if fate is Fate.UNHEARD:
            raise UnavailableError(f"the database is unavailable: {where} {fate}")
