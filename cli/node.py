"""`muster init`, `up`, `migrate` and `demo`: create a project, run a node, migrate the database, and try Muster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvloop

from cli.context import DEFAULT_DATA_DIR, Run, local_command, only_here, to_json, user
from cli.settings import pairs_of
from domain.clock import SystemClock

if TYPE_CHECKING:
    from runtime.supervisor import Child


METRICS_PORT = 9464  # default port of the supervisor's metrics
RETRY_S = 5.0  # pause before another attempt if a table to migrate is locked


@click.command()
@click.option("--url", required=True, help="Master URL that volunteers attach to; ends in /.")
@click.option("--name", default=None, help="Project name shown to volunteers.")
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Initial value of a setting; may be repeated."
)
@local_command("create a project on the machine that serves it")
async def init(run: Run, url: str, name: str | None, changes: tuple[str, ...]) -> None:
    """Create a project: its directory, keys and database. Safe to repeat."""
    from runtime.project import install

    settings: dict[str, object] = {"project.url": url, **dict(pairs_of(changes, "set"))}
    if name is not None:
        settings["project.name"] = name
    project = await install(run.data_dir, run.database_url, settings, who=user(), clock=run.clock)
    run.show(
        {"data_dir": str(project.data_dir), "url": url},
        f"project created in {project.data_dir}\n"
        f"next: muster operator add NAME --data-dir {run.data_dir}\n"
        f"      muster volunteer add EMAIL --data-dir {run.data_dir}\n"
        f"      muster up --data-dir {run.data_dir} --port PORT",
    )


@click.command()
@click.option("--pre-only", is_flag=True, help="Apply only migrations that are safe while the previous version runs.")
@local_command("it changes the database directly; run it on the project's own machine")
async def migrate(run: Run, pre_only: bool) -> None:
    """Bring the database to this version's schema."""
    from runtime.project import database_dsn, release_database
    from store.migrate import migrate as migrate_database

    project = run.project()

    async def busy(why: str) -> None:
        click.echo(f"{why}; retrying in {RETRY_S:g} s", err=True)
        await run.clock.sleep(RETRY_S)

    try:
        applied = await migrate_database(await database_dsn(project), now=run.clock.now(), pre_only=pre_only, busy=busy)
    finally:
        release_database(project)
    run.show({"applied": list(applied)}, "\n".join(applied) or "nothing to do")


@click.command()
@only_here("it is the server; start it on the project's own machine")
@click.option("--data-dir", type=click.Path(path_type=Path), default=DEFAULT_DATA_DIR, envvar="MUSTER_DATA_DIR")
@click.option(
    "--database-url", envvar="MUSTER_DATABASE_URL", help="PostgreSQL database to use instead of the embedded database."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 0.0.0.0 = all addresses of this machine.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True)
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Number of request workers.")
@click.option(
    "--worker-port",
    type=click.IntRange(1, 65535),
    default=None,
    help="Worker N also listens on this port + N, so that a front end can choose the worker and check its health.",
)
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="Address on which the supervisor serves metrics."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=None,
    help="Port of the supervisor's metrics; 0 = off. [default: 9464, if free]",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object once all processes serve.")
def up(data_dir: Path, database_url: str | None, **options: Any) -> None:
    """Run all services until SIGTERM or Ctrl-C."""
    from runtime.logs import configure_logs

    serving = Serving(**options)
    if serving.port in serving.worker_ports or serving.worker_ports.stop > 65536:
        wanted = f"{serving.workers} ports up to 65535, without --port ({serving.port})"
        raise click.BadParameter(f"expected {wanted}, got {serving.worker_port}", param_hint="--worker-port")
    configure_logs(options["log_level"])
    uvloop.run(_up(data_dir, database_url, serving))  # asyncio starts a thread for each process


@dataclass(frozen=True, slots=True)
class Serving:
    """The options of `muster up`."""

    host: str
    port: int
    workers: int
    worker_port: int | None
    metrics_host: str
    metrics_port: int | None
    log_level: str
    as_json: bool

    @property
    def worker_ports(self) -> range:
        """Return the workers' individual ports, empty if they only share one."""
        return range(0) if self.worker_port is None else range(self.worker_port, self.worker_port + self.workers)

    def children(self, data_dir: Path, run_dir: Path) -> list[Child]:
        """Return the node's processes."""
        from runtime.supervisor import SILENCE_S, Child

        common = ["--data-dir", str(data_dir), "--run-dir", str(run_dir), "--log-level", self.log_level]
        where = ["--host", self.host, "--port", str(self.port)]
        own = [["--port", str(port)] for port in self.worker_ports] or [[]] * self.workers
        workers = [
            Child(f"worker {number}", [*common, "worker", *where, *own[number], "--number", str(number)], SILENCE_S)
            for number in range(self.workers)
        ]
        return [Child("background", [*common, "background"], SILENCE_S), *workers]

    def say(self) -> None:
        """Report that every process is ready."""
        url = f"http://{self.host}:{self.port}/"
        if self.as_json:
            click.echo(to_json({"serving": url, "workers": self.workers}))
        else:
            click.echo(f"serving on {url} with {self.workers} worker(s); Ctrl-C stops", err=True)


async def _up(data_dir: Path, database_url: str | None, serving: Serving) -> None:
    from administration.project import open_project
    from runtime.metrics.node import NodeStatus, run_folder, telling
    from runtime.project import database_dsn, release_database
    from runtime.supervisor import Supervisor, check_port_free

    project = open_project(data_dir, database_url)
    for port in (serving.port, *serving.worker_ports):
        check_port_free(serving.host, port)
    dsn = await database_dsn(project)
    try:
        with run_folder() as folder:
            children = serving.children(project.data_dir, folder)
            status = NodeStatus(children, folder, SystemClock())
            port = METRICS_PORT if serving.metrics_port is None else serving.metrics_port
            must = serving.metrics_port is not None
            async with status.reporting(), telling(status.pages, serving.metrics_host, port, must=must):
                supervisor = Supervisor(children, SystemClock(), environment={"MUSTER_DATABASE_URL": dsn})
                running = asyncio.create_task(supervisor.run())
                ready = asyncio.create_task(supervisor.wait_ready())
                await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
                if ready.done():
                    serving.say()
                ready.cancel()
                await running
    finally:
        release_database(project)


@click.command()
@only_here("it creates its own project on this machine")
@click.option(
    "--volunteers", type=click.IntRange(4, 500), default=40, show_default=True, help="Number of simulated volunteers."
)
@click.option(
    "--seed", "--seeds", "seed", type=int, default=1, show_default=True, help="Random seed of the simulation."
)
@click.option("--database-url", default=None, help="Empty PostgreSQL database to use instead of an embedded database.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def demo(volunteers: int, seed: int, database_url: str | None, as_json: bool) -> None:
    """Run a small project with simulated volunteers on a fresh database, from setup to results."""
    from demo.run import run_demo
    from runtime.logs import configure_logs

    configure_logs("error")
    outcome = asyncio.run(run_demo(volunteers=volunteers, seed=seed, quiet=as_json, database_url=database_url))
    if as_json:
        click.echo(to_json(outcome.as_json()))
    if not outcome.complete:
        raise SystemExit(1)
