"""The connections that groups run on, and when a second group begins beside one that is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from store.sessions import Session


@dataclass(slots=True, eq=False)  # each is itself
class Lane:
    """A connection that one group at a time runs on; None until it is needed, and after it was lost."""

    session: Session | None = None
    back_at: int = 0  # groups served by all lanes: until then it sits out
    is_new: bool = False  # no statement has been made on its connection yet

    def serves(self) -> bool:
        """Whether it has a connection, as far as is known."""
        return self.session is not None and not self.session.is_closed()

    def drop(self) -> None:
        """Let go of a connection that no longer serves."""
        if self.session is not None:
            self.session.terminate()
            self.session = None


class Pace:
    """Who comes while a group is under way waits for the next one, unless the last to begin takes `beside_s` already.

    Groups are cheaper the more share them, and who waits for one is served as soon as by a second group that takes the
    processor from the first. One that has to wait itself, for a lock or a slow disk, does not hold the others up.
    """

    def __init__(self, beside_s: float) -> None:
        self._beside_s = beside_s
        self._begun_at: list[float] = []  # of the groups under way, on the loop's clock
        self._will_look = False

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """While a group is."""
        begun_at = asyncio.get_running_loop().time()
        self._begun_at.append(begun_at)
        try:
            yield
        finally:
            self._begun_at.remove(begun_at)

    def has_time(self, look_again: Callable[[], None]) -> bool:
        """Whether the next group had better wait; `look_again` is called when the last one to begin takes long."""
        if not self._begun_at:
            return False
        loop = asyncio.get_running_loop()
        until = self._begun_at[-1] + self._beside_s
        if loop.time() >= until:
            return False
        if not self._will_look:
            self._will_look = True
            loop.call_at(until, self._look, look_again)
        return True

    def _look(self, look_again: Callable[[], None]) -> None:
        self._will_look = False  # loops may call a little too early: then it is set once more
        look_again()
