"""Measures its process every two seconds, and puts what it finds on the node's board."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import structlog

from domain.clock import Clock
from domain.units import Seconds
from runtime.metrics.board import Board
from runtime.metrics.catalogue import LOOP_LAG
from runtime.metrics.kinds import Sample, Source
from runtime.metrics.readings import Reading, counts, reading

REPORT_EVERY_S = Seconds(2.0)

log = structlog.get_logger()


class Reporter:
    """One process's. It counts on where the process of the same name before it ended."""

    def __init__(self, process: str, board: Board, sources: Sequence[Source], clock: Clock) -> None:
        self.board = board
        self._process = process
        self._sources = sources
        self._clock = clock
        self._lag_s = 0.0
        earlier = board.last(process)
        self._earlier = counts(earlier) if earlier is not None else {}

    def report_once(self) -> Reading:
        """Measure now."""
        taken = reading(self._process, self._clock.now(), self._samples(), self._earlier)
        self.board.put(taken)
        return taken

    async def run(self) -> None:
        """Measure for ever, and one last time when the process stops."""
        try:
            while True:
                self.report_once()
                asleep_at = self._clock.monotonic()
                await self._clock.sleep(REPORT_EVERY_S)
                self._lag_s = max(0.0, self._clock.monotonic() - asleep_at - REPORT_EVERY_S)
        finally:
            self.report_once()

    def _samples(self) -> Iterable[Sample]:
        yield LOOP_LAG.of(value=self._lag_s)
        for source in self._sources:
            yield from _measured(source)


def _measured(source: Callable[[], Iterable[Sample]]) -> Sequence[Sample]:
    """What a source says; one that breaks is logged, and the others are told all the same."""
    try:
        return list(source())
    except Exception:
        log.exception("not measured", source=getattr(source, "__qualname__", repr(source)))
        return ()
