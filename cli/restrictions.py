"""`muster ban`, `pause` and their counterparts: stop volunteers, hosts and work, and let them continue."""

from __future__ import annotations

import click

from cli.context import Run, command
from domain.restrictions import Restricted

WHO = click.Choice([one.value for one in Restricted if not one.is_work])
PROJECT = "project"
WORK = click.Choice([PROJECT, *(one.value for one in Restricted if one.is_work)])
WHY = click.option("--why", required=True, help="Reason, for the audit trail; volunteers see it with a ban.")
COLUMNS = ["kind", "name", "max_jobs", "abort", "why", "set_by", "set_at"]


@click.command()
@click.argument("kind", type=WHO)
@click.argument("name")
@click.option(
    "--max-jobs",
    type=click.IntRange(0, 1_000_000),
    default=0,
    show_default=True,
    help="Maximum jobs in progress per host; 0 is a ban.",
)
@click.option("--abort", is_flag=True, help="End the jobs in progress at once; hosts are asked to drop them.")
@WHY
@command
async def ban(run: Run, kind: str, name: str, max_jobs: int, abort: bool, why: str) -> None:
    """Ban or limit a volunteer or a host.

    NAME is an id, a host's name that no other host has, or a volunteer's e-mail address; each host of the volunteer is
    banned or limited. It applies to the next requests, within seconds. Results are still accepted, and jobs in progress
    continue unless --abort is given.
    """
    shown = await run.ask(lambda client: client.restrict(kind, name, why=why, max_jobs=max_jobs, abort=abort))
    effect = f"at most {max_jobs} jobs in progress per host" if max_jobs else "banned"
    run.show(shown, f"{kind} {name}: {effect}" + (", jobs in progress aborted" if abort else ""))


@click.command()
@click.argument("kind", type=WHO)
@click.argument("name")
@command
async def unban(run: Run, kind: str, name: str) -> None:
    """Lift the ban or limit of a host or volunteer."""
    shown = await run.ask(lambda client: client.lift_restriction(kind, name))
    run.show(shown, f"{kind} {name}: no ban or limit")


@click.command()
@click.argument("kind", type=WORK)
@click.argument("name", default="")
@WHY
@command
async def pause(run: Run, kind: str, name: str, why: str) -> None:
    """Send no new work of the project, an app, a queue or a batch.

    NAME is omitted for the project. Waiting jobs leave the job arrays within seconds. Jobs in progress continue, and
    results are accepted.
    """
    await _set_paused(run, kind, name, why)


@click.command()
@click.argument("kind", type=WORK)
@click.argument("name", default="")
@command
async def resume(run: Run, kind: str, name: str) -> None:
    """Send paused work again."""
    await _set_paused(run, kind, name, None)


@click.command()
@command
async def restrictions(run: Run) -> None:
    """List bans, limits and paused work."""
    rows = await run.ask(lambda client: client.restrictions(limit=None))
    run.show_table(rows, COLUMNS, "No bans, limits or pauses.")


async def _set_paused(run: Run, kind: str, name: str, why: str | None) -> None:
    """Pause for the reason `why`, or resume if it is None."""
    if (kind == PROJECT) == bool(name):
        raise click.UsageError("NAME: omit it for the project only")
    words = f"{kind} {name}".rstrip() + (": resumed" if why is None else ": paused")
    async with run.client() as client:
        if kind == PROJECT:
            await client.set_setting("project.down", why is not None, why=why or "resumed")
            shown: object = {"kind": kind, "paused": why is not None}
        elif why is None:
            shown = await client.lift_restriction(kind, name)
        else:
            shown = await client.restrict(kind, name, why=why)
        run.show(shown, words)
