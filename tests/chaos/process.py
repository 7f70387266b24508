"""One process of a node as built by `runtime.process`, with a clock that can be set."""

from __future__ import annotations

import os
from pathlib import Path

import click

from administration.project import open_project
from runtime.logs import configure_logs
from runtime.metrics.metrics_store import FolderBoard
from runtime.process import ProcessPlace, run_service
from runtime.worker import Background, Worker
from tests.chaos.clock import SteppedClock

CLOCK_FILE = "MUSTER_TEST_CLOCK_FILE"


@click.group()
@click.option("--data-dir", type=click.Path(path_type=Path), required=True)
@click.option("--database-url", required=True, envvar="MUSTER_DATABASE_URL")
@click.option("--run-dir", type=click.Path(path_type=Path), required=True)
@click.option("--log-level", default="info")
@click.pass_context
def main(context: click.Context, data_dir: Path, database_url: str, run_dir: Path, log_level: str) -> None:
    """Run one process of a node."""
    configure_logs(log_level, lasting=True)
    context.obj = ProcessPlace(open_project(data_dir, database_url), FolderBoard(run_dir))


@main.command()
@click.option("--host", required=True)
@click.option("--port", type=int, required=True)
@click.option("--number", type=int, required=True)
@click.pass_obj
def worker(place: ProcessPlace, host: str, port: int, number: int) -> None:
    """Run a request worker."""
    made = Worker(place.project, _clock(), host=host, ports=[port], number=number, board=place.board)
    run_service(made)


@main.command()
@click.pass_obj
def background(place: ProcessPlace) -> None:
    """Run the periodic tasks."""
    run_service(Background(place.project, _clock(), board=place.board))


def _clock() -> SteppedClock:
    return SteppedClock(Path(os.environ[CLOCK_FILE]))


if __name__ == "__main__":
    main()
