"""`muster explain`: why does this host get no work, and why does nobody run that batch?"""

from __future__ import annotations

import click

from domain.units import BatchId, HostId, InstanceId, JobId
from operations.cli.context import Run, command
from operations.explain.service import Explain
from operations.explain.words import batch_in_words, host_in_words, instance_in_words, job_in_words
from operations.logs import configure_logs

ID = click.IntRange(min=1, max=2**62)


@click.group()
def explain() -> None:
    """The real decision, run dry: it changes nothing."""


@explain.command("host")
@click.argument("host_id", type=ID)
@command
async def explain_host(run: Run, host_id: int) -> None:
    """What a host would be given if it called now, and why not more."""
    configure_logs("warning")
    shown = await run.ask(
        lambda store: Explain(store, run.clock).host(HostId(host_id)),
        lambda client: client.explain("host", host_id),
    )
    run.show(shown, host_in_words(shown))


@explain.command("batch")
@click.argument("batch_id", type=ID)
@command
async def explain_batch(run: Run, batch_id: int) -> None:
    """What holds a batch back: what comes before it, and why hosts are refused its jobs."""
    configure_logs("warning")
    shown = await run.ask(
        lambda store: Explain(store, run.clock).batch(BatchId(batch_id)),
        lambda client: client.explain("batch", batch_id),
    )
    run.show(shown, batch_in_words(shown))


@explain.command("job")
@click.argument("job_id", type=ID)
@command
async def explain_job(run: Run, job_id: int) -> None:
    """Why a job's unsent instances wait, and what became of the others."""
    configure_logs("warning")
    shown = await run.ask(
        lambda store: Explain(store, run.clock).job(JobId(job_id)),
        lambda client: client.explain("job", job_id),
    )
    run.show(shown, job_in_words(shown))


@explain.command("instance")
@click.argument("instance_id", type=ID)
@command
async def explain_instance(run: Run, instance_id: int) -> None:
    """How an instance's due date came about, term by term, and what became of it."""
    configure_logs("warning")
    shown = await run.ask(
        lambda store: Explain(store, run.clock).instance(InstanceId(instance_id)),
        lambda client: client.explain("instance", instance_id),
    )
    run.show(shown, instance_in_words(shown))
