"""One process of a node, a request worker or the background process, started by the supervisor."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import structlog
import uvloop

from administration.project import Project, open_project
from domain.clock import SystemClock
from runtime.heartbeats import say, send_heartbeats
from runtime.logs import configure_logs
from runtime.metrics.metrics_store import FolderBoard, MetricsStore
from runtime.worker import Background, Worker

# Requests create few reference cycles; a collection per 700 new objects costs more than it frees.
COLLECT_AFTER = (50_000, 20, 50)  # number of new objects, and of collections of the younger generations

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """The project, and the directory for the metrics of the node's processes."""

    project: Project
    board: MetricsStore | None


@click.group()
@click.option("--data-dir", type=click.Path(path_type=Path), required=True)
@click.option(
    "--database-url", required=True, envvar="MUSTER_DATABASE_URL"
)  # in the environment, because it may contain a password
@click.option(
    "--run-dir", type=click.Path(path_type=Path), default=None, help="Directory shared by the node's processes."
)
@click.option("--log-level", default="info")
@click.pass_context
def main(context: click.Context, data_dir: Path, database_url: str, run_dir: Path | None, log_level: str) -> None:
    """Run one process of a node. Use `muster up` instead."""
    configure_logs(log_level, lasting=True)
    context.obj = ProcessPlace(
        open_project(data_dir, database_url), FolderBoard(run_dir) if run_dir is not None else None
    )


@main.command()
@click.option("--host", required=True)
@click.option("--port", "ports", type=int, required=True, multiple=True)
@click.option("--number", type=int, required=True)
@click.pass_obj
def worker(place: ProcessPlace, host: str, ports: tuple[int, ...], number: int) -> None:
    """Serve clients."""
    made = Worker(place.project, SystemClock(), host=host, ports=ports, number=number, board=place.board)
    run_service(made)


@main.command()
@click.pass_obj
def background(place: ProcessPlace) -> None:
    """Run the periodic tasks, apart from request handling."""
    run_service(Background(place.project, SystemClock(), board=place.board))


def run_service(service: Worker | Background) -> None:
    """Run a service until SIGTERM, SIGINT or the end of the supervisor, sending heartbeats."""
    gc.set_threshold(*COLLECT_AFTER)
    gc.freeze()  # exempts objects created at start-up from collection

    async def main_task() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_signal_handler(signal.SIGINT, stop.set)
        beside = [
            asyncio.create_task(_stop_with_supervisor(stop)),
            asyncio.create_task(send_heartbeats(service.hangs, SystemClock())),
        ]
        try:
            await service.run(stop, lambda: say("ready"))
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    uvloop.run(main_task())


async def _stop_with_supervisor(stop: asyncio.Event) -> None:
    """Set `stop` when standard input is closed, because the supervisor has ended."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    log.warning("the supervisor has ended, stopping")
    stop.set()


if __name__ == "__main__":
    main()
