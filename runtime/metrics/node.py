"""The supervisor's metrics about its node, and the separate port that serves them.

The port responds even if no worker does, which is when monitoring needs it most.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import structlog
from aiohttp import web

from domain.clock import Clock
from domain.errors import MusterError
from runtime.metrics import catalogue as metric
from runtime.metrics.catalogue import MetricSample
from runtime.metrics.metrics_store import FolderBoard
from runtime.metrics.pages import StatusPages, muster_version, node_troubles
from runtime.metrics.sources import Reporter, of_process
from runtime.supervisor import Child

SUPERVISOR = "supervisor"

log = structlog.get_logger()


class MetricsPortError(MusterError):
    """The requested metrics port is in use."""


@contextmanager
def run_folder() -> Iterator[Path]:
    """Create a directory for the node's processes, removed at the end; in memory if a service manager offers one."""
    parent = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    folder = Path(tempfile.mkdtemp(prefix="muster-", dir=parent or None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class NodeStatus:
    """The supervisor's reporter and pages."""

    def __init__(self, children: Sequence[Child], folder: Path, clock: Clock) -> None:
        self._children = children
        self._board = FolderBoard(folder)
        self._clock = clock
        sources = (of_process(clock.now(), muster_version()), lambda: of_children(children))
        self.reporter = Reporter(SUPERVISOR, self._board, sources, clock)
        self.pages = StatusPages(self._board, self._troubles, clock)

    @asynccontextmanager
    async def reporting(self) -> AsyncIterator[None]:
        """Report the supervisor's metrics inside the block, and once more before it is left and the directory goes."""
        measuring = asyncio.create_task(self.reporter.run())
        try:
            yield
        finally:
            measuring.cancel()
            await asyncio.wait([measuring])

    def _troubles(self) -> dict[str, str]:
        heard_at = {one.process: one.at for one in self._board.all()}
        return node_troubles({child.name: child.runs() for child in self._children}, heard_at, self._clock.now())


def of_children(children: Sequence[Child]) -> Iterator[MetricSample]:
    """Yield whether each process is running, and how often it was restarted."""
    for child in children:
        yield metric.PROCESS_UP.of(child.name, value=child.runs())
        yield metric.RESTARTS.of(child.name, value=child.restarts)


@asynccontextmanager
async def telling(pages: StatusPages, host: str, port: int, *, must: bool) -> AsyncIterator[None]:
    """Serve the pages inside the block, unless the port is 0. If `must` is set, a port in use is an error."""
    if port == 0:
        yield
        return
    application = web.Application()
    application.add_routes(pages.routes())
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            why = f"cannot listen on {host} port {port} for metrics: {os.strerror(error.errno or 0)}"
            if must:
                raise MetricsPortError(why) from None
            log.warning("metrics port of the node not available", why=why)
        yield
    finally:
        with suppress(OSError):
            await runner.cleanup()
