"""Runs a group commit step by step in a chosen course, and checks its invariants."""

from __future__ import annotations

import asyncio
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from domain.errors import UnavailableError
from store.group import GROUP_TRIES, MOST_GROUPS_WAITING, Grouped, Pace
from store.pool import TRIES
from tests.properties.stepped import CONFLICTS, Added, Ask, BadAskError, FakeDatabase, Fate, Place
from tests.properties.stepped_loop import SteppedLoop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.pool import DatabaseSession
    from tests.properties.stepped import FakeSession

SITS_OUT = 2  # groups
MOST_TURNS = 200  # turns of the loop without an event: a deadlock


class Kind(StrEnum):
    """The kinds of groups."""

    READS = "reads"
    WRITES = "writes"  # in a transaction around the work
    WRITES_AT_ONCE = "writes at once"  # the work is one statement, which commits


class Course:
    """Askers, the groups under test, and their database; time advances only by `turn` and `rest`."""

    def __init__(
        self, *, lanes: int = 2, most: int = 2, kind: Kind = Kind.WRITES, gated: frozenset[Place] = frozenset(Place)
    ) -> None:
        self.loop = SteppedLoop()  # type: ignore[abstract]  # as much of it as groups use
        self.database = FakeDatabase(gated)
        self.lanes, self.most, self.kind, self.commits = lanes, most, kind, kind is not Kind.READS
        self.grouped: Grouped[Ask, Added] = Grouped(
            "dsn",
            self._work,
            in_transaction=kind is Kind.WRITES,
            retried=self.commits,
            most=most,
            lanes=lanes,
            sits_out=SITS_OUT,
            pace=Pace(0.0),
            connect=self._connect,
        )
        self.requesters: dict[int, asyncio.Task[Added]] = {}
        self.asks: dict[int, Ask] = {}
        self.cancelled: set[int] = set()
        self.left: set[int] = set()  # cancelled while every lane was busy with other asks: not attempted
        self.arrived: set[int] = set()
        self.turned_away: set[int] = set()
        self.told: set[int] = set()  # asks that waited when no connection could be made
        self.refusals = 0  # of connections
        self.wrongs: list[str] = []
        self._closing: asyncio.Task[None] | None = None

    # ---------------------------------------------------------------- what may happen

    def ask(self, *, row: int = 0, bad: bool = False, conflicts: int = 0) -> int:
        """Submit another ask; return its number."""
        ask = Ask(len(self.asks), row, bad, conflicts)
        self.asks[ask.number] = ask
        self.requesters[ask.number] = self.loop.create_task(self._requester(ask))
        return ask.number

    def cancel(self, *numbers: int) -> None:
        """Cancel these asks."""
        under_way = [attempt for attempt in self.database.attempts if not attempt.over]
        for number in numbers:
            if self.requesters[number].done():
                continue
            self.requesters[number].cancel()
            self.cancelled.add(number)
            if len(under_way) == self.lanes and number not in self._attempted():
                self.left.add(number)

    def let(self, which: int, fate: Fate = Fate.DONE) -> None:
        """Let one pending step of a session happen."""
        self.database.let(which, fate)

    def cut(self, which: int) -> None:
        """End a session at the server."""
        session = self.database.sessions[which]
        session.cut |= not session.closed
        session.terminate()

    def close(self) -> None:
        if self._closing is None:
            self._closing = self.loop.create_task(self.grouped.close())

    def turn(self, turns: int = 1) -> None:
        for _ in range(turns):
            self.loop.turn()

    def rest(self) -> None:
        """Run everything that waits for no step."""
        for _ in range(MOST_TURNS):
            if not self.loop.turn():
                self._check_at_rest()
                return
        self.wrongs.append("the loop does not come to rest")

    def finish(self, end: Fate = Fate.DONE) -> None:
        """Close, let every remaining step happen, and check everything. `end`: how closing a session goes."""
        try:
            self.close()
            for _ in range(40 * len(self.asks) + 100):
                self.rest()
                if not self.database.pending:
                    break
                self.let(0, end if self.database.pending[0].place is Place.CLOSE else Fate.DONE)
            self._check_outcomes()
            self._check_rows()
            self._check_attempts()
            self._check_nothing_is_left()
            assert self.wrongs == []
            assert self.database.breaches == []
        finally:
            self._clear()

    # ---------------------------------------------------------------- what must hold

    def check_now(self) -> None:
        """Check the invariants of every moment."""
        assert len([attempt for attempt in self.database.attempts if not attempt.over]) <= self.lanes
        assert len([session for session in self.database.sessions if not session.closed]) <= self.lanes
        assert all(len(attempt.asks) <= self.most for attempt in self.database.attempts)

    def _check_at_rest(self) -> None:
        """Check that no ask waits beside an idle lane, unless another lane is connecting or could not connect."""
        places = [step.place for step in self.database.pending if step.place is not Place.CLOSE]
        at_work = len(places) + len(self.database.lock_waits)
        taken = self.most * places.count(Place.BEGIN)  # and not attempted yet
        waiting = [n for n in self.arrived - self._attempted() if not self.requesters[n].done()]
        busy = at_work == self.lanes or Place.CONNECT in places or self.refusals or self._lost_unused()
        assert busy or len(waiting) <= taken
        assert at_work or all(requester.done() for n, requester in self.requesters.items() if n in self.arrived)
        assert len(waiting) <= MOST_GROUPS_WAITING * self.most + taken

    def _check_outcomes(self) -> None:
        """Check that every ask got one possible outcome."""
        unexplained = 0
        for number, requester in self.requesters.items():
            assert requester.done(), f"ask {number} waits forever"
            if requester.cancelled():
                assert number in self.cancelled
                continue
            error, ask = requester.exception(), self.asks[number]
            if error is None:
                assert not ask.bad
                assert requester.result().number == number
            elif isinstance(error, UnavailableError):
                unexplained += not self._was_unserved(number) and number not in self.turned_away | self.told
            elif isinstance(error, BadAskError):
                assert (ask.bad, error.args) == (True, (number,))
            else:
                assert isinstance(error, CONFLICTS)
                assert self._conflicts_alone(number) >= (TRIES if self.commits else 1)
        losses = self.database.losses_outside + self.database.broken_off
        assert unexplained <= losses * self.most or self._lost_unused()

    def _check_rows(self) -> None:
        """Check that answered asks are committed, in the order of the answers, and nothing twice."""
        added = self.database.added()
        assert not added or max(added.values()) == 1
        for number, requester in self.requesters.items():
            if requester.cancelled() or not self.commits:
                continue
            error = requester.exception()
            if error is None:
                total = requester.result().total
                assert self.database.rows[self.asks[number].row][total - 1] == number
            elif not isinstance(error, UnavailableError):
                assert added[number] == 0
            elif added[number]:
                assert self._was_lost(number)

    def _check_attempts(self) -> None:
        """Check the attempts: a failing group is halved, and each ask tried no more often than that takes, plus once
        per loss.
        """
        together: Counter[int] = Counter()
        alone: Counter[int] = Counter()
        losses = sum(attempt.lost for attempt in self.database.attempts) + self.losses()
        for attempt in self.database.attempts:
            numbers = [ask.number for ask in attempt.asks]
            assert numbers
            assert losses or numbers == sorted(numbers)
            (alone if len(numbers) == 1 else together).update(numbers)
        whole = GROUP_TRIES if self.commits else 1
        halvings = (self.most - 1).bit_length()  # from the whole group down to one alone
        assert max(together.values(), default=0) <= (whole + max(0, halvings - 1)) * (losses + 1)
        assert max(alone.values(), default=0) <= (TRIES if self.commits else 1) * (losses + 1)
        assert not self.left & self._attempted()

    def losses(self) -> int:
        """Return the sessions that ended before use, or while a transaction began."""
        return self.database.losses_outside + sum(session.cut for session in self.database.sessions)

    def _check_nothing_is_left(self) -> None:
        assert self._closing is not None
        assert self._closing.done()
        assert self._closing.exception() is None
        assert all(session.closed for session in self.database.sessions)
        assert all(task.done() for task in self.loop.tasks)
        asking = set(self.requesters.values())
        broken = [task.exception() for task in self.loop.tasks if task not in asking and not task.cancelled()]
        assert [error for error in broken if error is not None] == []
        assert self.loop.errors == []

    # ---------------------------------------------------------------- the pieces

    async def _requester(self, ask: Ask) -> Added:
        self.arrived.add(ask.number)
        came, full = self.loop.turns, len(self.arrived - self._attempted()) > MOST_GROUPS_WAITING * self.most
        try:
            answer = await self.grouped.ask(ask)
        except UnavailableError:
            if self.loop.turns == came:
                self.turned_away.add(ask.number)
                if not full and self._closing is None:
                    self.wrongs.append(f"ask {ask.number} was rejected by a group that was neither full nor closed")
            raise
        if self.commits and self.database.added()[ask.number] != 1:
            self.wrongs.append(f"ask {ask.number} was answered before it was committed")
        return answer

    async def _connect(self, dsn: str) -> DatabaseSession:
        """Check refusals: waiting asks fail by one only if no other lane serves."""
        try:
            return cast("DatabaseSession", await self.database.connect(dsn))
        except (UnavailableError, asyncio.CancelledError):
            self.refusals += 1
            if all(session.closed or not session.used for session in self.database.sessions):
                self.told |= {number for number in self.arrived if not self.requesters[number].done()}
            raise

    async def _work(self, session: DatabaseSession, asks: Sequence[Ask]) -> Sequence[Added]:
        fake = cast("FakeSession", session)
        return await (fake.add_at_once(asks) if self.kind is Kind.WRITES_AT_ONCE else fake.add(asks))

    def _lost_unused(self) -> bool:
        """Return whether a connection was lost before its first statement, which counts as no connection."""
        return any(session.cut and not session.used for session in self.database.sessions)

    def _attempted(self) -> set[int]:
        return {ask.number for attempt in self.database.attempts for ask in attempt.asks}

    def _was_unserved(self, number: int) -> bool:
        """Return whether it shared a lost statement, had no disk space, or was too large alone."""
        alone = (self.asks[number],)
        return any(
            attempt.lost or attempt.full or (attempt.too_much and attempt.asks == alone)
            for attempt in self.database.attempts
            if self.asks[number] in attempt.asks
        )

    def _was_lost(self, number: int) -> bool:
        return any(attempt.lost for attempt in self.database.attempts if self.asks[number] in attempt.asks)

    def _conflicts_alone(self, number: int) -> int:
        alone = (self.asks[number],)
        return sum(attempt.conflict for attempt in self.database.attempts if attempt.asks == alone)

    def _clear(self) -> None:
        """Clean up after any outcome."""
        for task in self.loop.tasks:
            task.cancel()
        self.turn(5)
        for task in self.loop.tasks:
            if task.done() and not task.cancelled():
                task.exception()
        self.loop.close()
