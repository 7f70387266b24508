"""`muster demo`: the whole project in a minute."""

from __future__ import annotations

import asyncio

import click

from cli.context import only_here, to_json
from demo.run import run_demo
from runtime.logs import configure_logs


@click.command()
@only_here("it makes a project of its own and runs where it is called")
@click.option("--volunteers", type=click.IntRange(4, 500), default=40, show_default=True, help="Size of the crowd.")
@click.option("--seed", "--seeds", "seed", type=int, default=1, show_default=True, help="Makes the crowd repeatable.")
@click.option("--database-url", default=None, help="An empty PostgreSQL database instead of an embedded one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def demo(volunteers: int, seed: int, database_url: str | None, as_json: bool) -> None:
    """Run the main job end to end on a fresh database, and end."""
    configure_logs("error")
    outcome = asyncio.run(run_demo(volunteers=volunteers, seed=seed, quiet=as_json, database_url=database_url))
    if as_json:
        click.echo(to_json(outcome.as_json()))
    if not outcome.complete:
        raise SystemExit(1)
