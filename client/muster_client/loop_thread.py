"""Runs the calls of the blocking client on an event loop in a separate thread.

The caller may be inside a running event loop (in a notebook) or in one of several threads.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from muster_client.client import Client

POLL_S = 1.0  # how often a waiting call checks that the thread is alive; also how soon Windows notices Ctrl-C
CANCEL_S = 2.0  # maximum time for a cancelled request to clean up
CLOSE_S = 5.0  # maximum time for closing connections

T = TypeVar("T")


class ClosedError(RuntimeError):
    """The client is closed: create a new one."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@dataclass(frozen=True, eq=False, slots=True)
class Running:
    """A thread and its event loop. It must not refer to the blocking client, which ends it."""

    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    thread: threading.Thread

    def end(self) -> None:
        """Tell the thread to close its connections and end, without waiting, because this may run in any thread."""
        with suppress(RuntimeError):  # the loop is already closed
            self.loop.call_soon_threadsafe(self.stop.set)


class LoopThread:
    """Base class of the blocking client: an asynchronous client, and the thread that runs it.

    The first call starts the thread. The thread ends on `close`, at the end of a `with` block, when the client is
    garbage-collected, and when the interpreter exits. A forked process starts its own thread and connections.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._closed = False
        self._reset()
        LIVE.add(self)

    def _reset(self) -> None:
        """Start without a thread and without connections."""
        self._client = Client(self._url, self._token)
        self._lock = threading.Lock()
        self._running: Running | None = None
        self._collected: weakref.finalize[[], LoopThread] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread. Calls waiting in other threads fail with ClosedError."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
        if running is not None:
            running.end()
            if threading.current_thread() is not running.thread:
                running.thread.join(CLOSE_S)

    def _forked(self) -> None:
        """Discard the thread and connections of the parent process; the next call opens new ones."""
        if self._collected is not None:
            self._collected.detach()
        self._client._detach()  # noqa: SLF001  # the two are one thing
        self._reset()

    def _start(self) -> Running:
        """Return the thread, started if necessary."""
        with self._lock:
            if self._closed:
                raise ClosedError
            if self._running is None:
                loop, stop = asyncio.new_event_loop(), asyncio.Event()
                arguments = (loop, stop, self._client)
                thread = threading.Thread(target=_serve, args=arguments, name="muster-client", daemon=True)
                thread.start()
                self._running = Running(loop, stop, thread)
                self._collected = weakref.finalize(self, self._running.end)
                self._collected.atexit = False  # _close_all waits for the thread
            return self._running

    def _run(self, request: Coroutine[Any, Any, T]) -> T:
        """Return the request's result or raise its exception. An interrupt of this thread cancels the request."""
        try:
            running = self._start()
            if threading.current_thread() is running.thread:
                raise RuntimeError("a blocking call cannot run in the client's own thread")
        except BaseException:
            request.close()
            raise
        call = _Call(request, running)
        try:
            return call.result()
        finally:
            del call  # its exception refers to this frame: avoid a reference cycle

    def _iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items, awaiting each on demand. Ending the iteration early cancels its request."""
        try:
            while found := self._run(_next(items)):
                yield found[0]
        finally:
            running = self._running
            if running is not None and isinstance(items, AsyncGenerator):
                with suppress(RuntimeError):  # does not wait, because garbage collection may run this in any thread
                    running.loop.call_soon_threadsafe(_close_later, running.loop, items)


class _Call(Generic[T]):
    """One request: a task in the thread, and a caller waiting for its result."""

    def __init__(self, request: Coroutine[Any, Any, T], running: Running) -> None:
        self._request = request
        self._running = running
        self._outcome: Future[T] = Future()
        self._task: asyncio.Task[T] | None = None

    def result(self) -> T:
        """Run the request and wait for its result. Raises ClosedError if the client is closed in the meantime."""
        try:
            self._in_thread(self._begin)
            while not wait([self._outcome], POLL_S).done:
                if not self._running.thread.is_alive():
                    raise ClosedError
            return self._outcome.result()
        except (CancelledError, ClosedError):
            self._request.close()
            raise ClosedError from None
        except BaseException:
            if not self._outcome.done():  # interrupted: cancel the request and let it clean up
                self._in_thread(self._cancel)
                wait([self._outcome], CANCEL_S)
            raise

    def _in_thread(self, step: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: `result` will notice that the thread has ended
            self._running.loop.call_soon_threadsafe(step)

    def _begin(self) -> None:
        self._task = self._running.loop.create_task(self._request)
        self._task.add_done_callback(self._hand_over)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _hand_over(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._outcome.cancel()
        elif (error := task.exception()) is not None:
            self._outcome.set_exception(error)
        else:
            self._outcome.set_result(task.result())


async def _next(items: AsyncIterator[T]) -> tuple[T, ...]:
    """Return the next item, or an empty tuple at the end."""
    try:
        return (await anext(items),)
    except StopAsyncIteration:
        return ()


def _close_later(loop: asyncio.AbstractEventLoop, items: AsyncGenerator[Any, Any]) -> None:
    """Close a generator in its loop; a generator that is still running is closed by its cancellation."""

    async def close() -> None:
        with suppress(RuntimeError):
            await items.aclose()

    CLOSING.add(task := loop.create_task(close()))
    task.add_done_callback(CLOSING.discard)


def _serve(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, client: Client) -> None:
    """Run the loop until told to stop, then close everything."""
    try:
        loop.run_until_complete(_until(stop, client))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def _until(stop: asyncio.Event, client: Client) -> None:
    """Wait for `stop`, then cancel all requests and close the connections."""
    await stop.wait()
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)
    await client.close()


LIVE: weakref.WeakSet[LoopThread] = weakref.WeakSet()
CLOSING: set[asyncio.Task[None]] = set()  # keeps tasks alive, because the event loop refers to them weakly


@atexit.register
def _close_all() -> None:
    for one in list(LIVE):
        one.close()


def _forked() -> None:
    for one in list(LIVE):
        one._forked()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
