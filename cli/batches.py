"""`muster batch` and `muster job`: submit batches with their input files, and show and abort them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cli.bringing import brought
from cli.context import Run, command, field_as_text, lines_of, spinner
from cli.results import results
from domain.units import later

COLUMNS = ["batch_id", "name", "app", "qos", "state", "jobs_total", "jobs_validated", "jobs_failed", "in_progress"]
ID = click.IntRange(1, 2**62)


@click.group()
def batch() -> None:
    """Manage batches of jobs."""


batch.add_command(results)


@batch.command("submit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--preview", is_flag=True, help="Only forecast the completion time; the batch is not submitted.")
@click.option("--after-ok", type=ID, multiple=True, help="Send no jobs until all jobs of this batch are valid.")
@click.option("--after-any", type=ID, multiple=True, help="Send no jobs until this batch has ended.")
@command
async def submit(run: Run, file: Path, preview: bool, after_ok: tuple[int, ...], after_any: tuple[int, ...]) -> None:
    """Submit the batch described by a TOML or JSON file, all jobs or none, and forecast its completion.

    Input files given by path are uploaded first.
    """
    from administration.batches import read_batch_file
    from administration.forecasts.words import preview_in_words
    from runtime.logs import configure_logs

    configure_logs("error")
    values = await asyncio.to_thread(read_batch_file, file)
    waits = {"after_ok": list(after_ok), "after_any": list(after_any)}
    values = {**values, **{name: ids for name, ids in waits.items() if ids}}

    async with run.client() as client:
        complete = await brought(client, values, file.parent, run.clock)
        if preview:
            forecast = await client.preview(complete)
            run.show({"forecast": forecast}, preview_in_words(forecast))
        else:
            with spinner("writing jobs"):
                done = await client.submit_and_preview(complete)
            run.show(done, _submitted(done))


def _submitted(done: Mapping[str, Any]) -> str:
    from administration.forecasts.words import preview_in_words

    lines = [f"batch {done['batch_id']} submitted: muster batch show {done['batch_id']}"]
    if done["forecast"] is not None:
        lines.append(preview_in_words(done["forecast"]))
    return "\n".join(lines)


@batch.command("show")
@click.argument("batch_id", type=ID)
@command
async def show(run: Run, batch_id: int) -> None:
    """Show a batch with its job counts."""
    from administration.forecasts.words import risk_in_words

    shown = await run.ask(lambda client: client.batch(batch_id))
    risk = shown.get("at_risk")
    risk_words = None if risk is None else risk_in_words(risk, shown["forecast_state"])
    run.show(shown, lines_of({**shown, "at_risk": risk_words}))


@batch.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--state", type=click.Choice(["active", "complete", "aborted"]), help="List only batches in this state.")
@click.option("--qos", help="List only batches with this quality of service.")
@click.option("--app", help="List only batches of this app.")
@click.option("--submitter", help="List only batches of this submitter.")
@click.option("--account", help="List only batches of this account.")
@click.option("--queue", help="List only batches in this queue.")
@click.option("--at-risk", is_flag=True, help="List only active batches whose deadline is before their latest end.")
@click.option("--blocked", is_flag=True, help="List only active batches over a limit.")
@click.option("--failed", is_flag=True, help="List only batches with failed jobs.")
@click.option("--name", "q", help="List only batches whose name contains this text.")
@click.option(
    "--sort",
    metavar="KEY",
    help="id, order, deadline, expected_end, latest_end or failed; -KEY for descending. Default: -id. Orders other "
    "than by id list only active batches.",
)
@command
async def list_batches(run: Run, limit: int, **chosen: object) -> None:
    """List batches, by default all, newest first."""
    from administration.forecasts.words import warning_of

    rows = await run.ask(
        lambda client: client.batches(limit=limit, **{key: one or None for key, one in chosen.items()})
    )
    empty = "No such batches." if any(chosen.values()) else "No batches yet: muster batch submit FILE.toml"
    run.show_table(rows, COLUMNS, empty)
    for row in rows:
        if row["at_risk"] is not None and not run.as_json:
            click.echo(f"batch {row['batch_id']} {warning_of(row['at_risk'], row['forecast_state'])}")
        if row["waits_because"] is not None and not run.as_json:
            click.echo(f"batch {row['batch_id']} WAITS: {row['waits_because']}")


@batch.command("instances")
@click.argument("batch_id", type=ID)
@click.option("--state", help="List only instances in this state, such as failed or in_progress.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=1000, show_default=True)
@command
async def list_instances(run: Run, batch_id: int, state: str | None, limit: int) -> None:
    """List the instances of a batch, retries and copies first."""
    rows = await run.ask(lambda client: client.instances(batch_id, state=state, limit=limit))
    times = ["sent_at", "due_at", "reported_at"]
    columns = ["instance_id", "job_id", "state", "retries", "host_id", *times, "reason", "copied_because"]
    run.show_table(rows, columns, "No such instances.")


@batch.command("set")
@click.argument("batch_id", type=ID)
@click.option(
    "--user-priority",
    type=int,
    default=None,
    help="User priority from -1024 to 0; up to 1023 with the permission `raise`.",
)
@click.option(
    "--level", default=None, help="Service level: standby, normal, or expedite (needs the permission `expedite`)."
)
@click.option("--queue", default=None, help="Queue: one of the names in ordering.queues.")
@click.option("--release", is_flag=True, help="Stop waiting for other batches.")
@click.option("--account", default=None, help="Account to charge; can be changed until the batch's first job is sent.")
@click.option(
    "--deadline",
    "deadline_s",
    type=click.FloatRange(min=0.0, min_open=True),
    default=None,
    help="Deadline in seconds from now, for batches with qos short_deadline.",
)
@click.option("--why", default=None, help="Reason, for the audit trail.")
@command
async def set_batch(run: Run, batch_id: int, deadline_s: float | None, **given: Any) -> None:
    """Change a batch's level, priority, queue, account or deadline.

    A level acts at once unless the policy gives points for it, other changes at the next ordering pass. The audit trail
    records the change.
    """
    if deadline_s is not None:
        given["deadline_at"] = later(run.clock.now(), deadline_s)

    async with run.client() as client:
        done = await client.set_batch(batch_id, **given)
        shown = {**await client.batch(batch_id), **done}
    run.show(shown, f"batch {batch_id}: {_important(shown)}")


def _important(shown: Mapping[str, object]) -> str:
    text = f"user priority {shown['user_priority']}, level {shown['level']}, queue {shown['queue']}"
    return f"{text}, account {shown['account']}"


@batch.command("clone")
@click.argument("batch_id", type=ID)
@click.option("--name", default=None, help="Name of the new batch; default: that of the batch.")
@click.option("--qos", type=click.Choice(["throughput", "long_deadline", "afap", "short_deadline"]), default=None)
@click.option(
    "--deadline",
    "deadline_s",
    type=click.FloatRange(min=0.0, min_open=True),
    default=None,
    help="Deadline in seconds from now; default: as far ahead as that of the batch was when it was submitted.",
)
@click.option("--queue", default=None, help="Queue: one of the names in ordering.queues.")
@click.option("--level", default=None, help="Service level: standby, normal, or expedite.")
@click.option("--user-priority", type=int, default=None, help="User priority.")
@click.option("--submitter", default=None, help="Submitter of the new batch; only operators may name another.")
@click.option("--account", default=None, help="Account to charge.")
@click.option("--memory-bytes", type=float, default=None, help="Memory that each job needs.")
@click.option("--disk-bytes", type=float, default=None, help="Disk space that each job needs.")
@click.option("--delay-bound", "delay_bound_s", type=float, default=None, help="Delay bound of each job in seconds.")
@click.option("--preview", is_flag=True, help="Only forecast the completion time; the batch is not submitted.")
@command
async def clone(run: Run, batch_id: int, preview: bool, **given: Any) -> None:
    """Submit the jobs of a batch again, in a new batch; options that are not given are as in the batch."""
    from administration.forecasts.words import preview_in_words

    changes = {name: value for name, value in given.items() if value is not None}
    async with run.client() as client:
        if preview:
            forecast = await client.preview_clone(batch_id, **changes)
            run.show({"forecast": forecast}, preview_in_words(forecast))
        else:
            with spinner("writing jobs"):
                done = await client.clone_batch(batch_id, **changes)
            run.show(done, _submitted(done))


@batch.command("retry")
@click.argument("batch_id", type=ID)
@command
async def retry(run: Run, batch_id: int) -> None:
    """Open the failed jobs of a batch again: each gets new instances, and a complete batch becomes active again.

    Earlier errors of these jobs count towards no limit.
    """
    done = await run.ask(lambda client: client.retry_batch(batch_id))
    run.show(done, f"batch {batch_id} is {done['state']}: {done['jobs_retried']} failed jobs are retried")


@batch.command("errors")
@click.argument("batch_id", type=ID)
@command
async def errors(run: Run, batch_id: int) -> None:
    """Group the errors of a batch by exit status and the end of standard error, with an example of each."""
    from administration.batch_errors import in_words

    found = await run.ask(lambda client: client.batch_errors(batch_id))
    run.show(found, in_words(found))


@batch.command("abort")
@click.argument("batch_id", type=ID)
@command
async def abort(run: Run, batch_id: int) -> None:
    """Abort a batch: cancel its unsent instances, and ask hosts to drop instances they have not started."""
    shown = await run.ask(lambda client: client.abort(batch_id))
    run.show(shown, f"batch {batch_id} is {shown['state']}")


@click.group()
def job() -> None:
    """Show jobs and their instances."""


@job.command("list")
@click.argument("batch_id", type=ID)
@click.option("--limit", type=click.IntRange(1, 10_000), default=1000, show_default=True)
@click.option("--after", type=click.IntRange(0, 2**62), default=None, help="List jobs with ids above this one.")
@click.option("--state", help="List only jobs in this state: open, valid, failed or cancelled.")
@command
async def list_jobs(run: Run, batch_id: int, limit: int, after: int | None, state: str | None) -> None:
    """List the jobs of a batch."""
    rows = await run.ask(lambda client: client.jobs(batch_id, state=state, after=after, limit=limit))
    run.show_table(rows, ["job_id", "state", "command_line", "canonical_instance_id", "failure"], "no such jobs")


@job.command("show")
@click.argument("job_id", type=ID)
@command
async def show_job(run: Run, job_id: int) -> None:
    """Show a job and its instances: how due dates were computed, and why instances failed."""
    shown = await run.ask(lambda client: client.job(job_id))
    lines = [f"{key:22} {field_as_text(key, value)}" for key, value in shown.items() if key != "instances"]
    for instance in shown["instances"]:
        lines += ["", *(f"  {key:20} {field_as_text(key, value)}" for key, value in instance.items())]
    run.show(shown, "\n".join(lines))
