"""Two nodes with a worker and a background process each: starts and kills them, and routes requests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from domain.errors import UnavailableError
from tests.deterministic.clocks import NodeClock
from tests.deterministic.faults import Faults, Link
from tests.deterministic.locks import LockTable
from tests.deterministic.loop import SeededLoop
from tests.deterministic.processes import Background, Worker

CLIENT_WAITS_S = 300.0

Answer = TypeVar("Answer")


class NoAnswerError(Exception):
    """The client receives no reply, or that the server cannot serve now."""


@dataclass(slots=True)
class Process:
    """A running process; its number is unique and never reused."""

    number: int
    node: int
    runs: Worker | Background
    link: Link


@dataclass(slots=True)
class Cluster:
    loop: SeededLoop
    store: Any
    faults: Faults
    draw: random.Random
    clocks: tuple[NodeClock, NodeClock]
    table: LockTable = field(default_factory=LockTable)
    workers: dict[int, Process] = field(default_factory=dict)  # by node
    backgrounds: dict[int, Process] = field(default_factory=dict)
    started: int = 0
    deaths: int = 0
    breaches: list[str] = field(default_factory=list)  # an exception that reached a client

    def start_all(self) -> None:
        for node in range(len(self.clocks)):
            self.start_worker(node)
            self.start_background(node)

    def start_worker(self, node: int) -> None:
        self.started += 1
        link = Link(self.faults, self.clocks[node], partial(self.table.end, self.started))
        worker = Worker(self.store, link, self.clocks[node], self.table, self.started)
        self.workers[node] = Process(self.started, node, worker, link)
        self.loop.start(self.started, self._run(worker))

    def start_background(self, node: int) -> None:
        self.started += 1
        link = Link(self.faults, self.clocks[node], partial(self.table.end, self.started))
        background = Background(self.store, link, self.clocks[node], self.table, self.started)
        self.backgrounds[node] = Process(self.started, node, background, link)
        self.loop.start(self.started, self._run(background))

    async def _run(self, process: Worker | Background) -> None:
        loops = await process.run()
        await asyncio.gather(*(loop() for loop in loops.values()))

    def kill(self, process: Process) -> None:
        """Kill the process at any point: its memory is lost, and the database notices the closed connection."""
        self.loop.kill(process.number)
        self.table.end(process.number)
        self.deaths += 1
        for processes in (self.workers, self.backgrounds):
            if processes.get(process.node) is process:
                del processes[process.node]

    async def ask(self, work: Callable[[Worker], Awaitable[Answer]]) -> Answer:
        """Send one HTTP request to a worker. Raises NoAnswerError."""
        there = [one for _, one in sorted(self.workers.items()) if isinstance(one.runs, Worker) and one.runs.ready]
        if not there:
            raise NoAnswerError
        process = self.draw.choice(there)
        assert isinstance(process.runs, Worker)
        heard: asyncio.Future[Answer] = self.loop.create_future()
        self.loop.start(process.number, self._answer(process.runs, work, heard))
        try:
            async with asyncio.timeout(CLIENT_WAITS_S):
                return await heard
        except TimeoutError:
            raise NoAnswerError from None

    async def _answer(
        self, worker: Worker, work: Callable[[Worker], Awaitable[Answer]], heard: asyncio.Future[Answer]
    ) -> None:
        """Handle the request in the worker; return its reply, or raise NoAnswerError."""
        try:
            answer = await work(worker)
        except UnavailableError:
            if not heard.done():
                heard.set_exception(NoAnswerError())
        except Exception as error:
            self.breaches.append(f"a client was answered with {error!r}")
            if not heard.done():
                heard.set_exception(NoAnswerError())
        else:
            if not heard.done():
                heard.set_result(answer)
