"""`muster explain`: why does this host get no work, and why does nobody run that batch?"""

from __future__ import annotations

from collections.abc import Callable

import click

from administration.explain.words import Document, batch_in_words, host_in_words, instance_in_words, job_in_words
from cli.context import Run, command
from muster_client import ExplainedKind
from runtime.logs import configure_logs

ID = click.IntRange(min=1, max=2**62)


@click.group()
def explain() -> None:
    """The real decision, run dry: it changes nothing."""


@explain.command("host")
@click.argument("host_id", type=ID)
@command
async def explain_host(run: Run, host_id: int) -> None:
    """What a host would be given if it called now, and why not more."""
    await _show(run, "host", host_id, host_in_words)


@explain.command("batch")
@click.argument("batch_id", type=ID)
@command
async def explain_batch(run: Run, batch_id: int) -> None:
    """What holds a batch back: what comes before it, and why hosts are refused its jobs."""
    await _show(run, "batch", batch_id, batch_in_words)


@explain.command("job")
@click.argument("job_id", type=ID)
@command
async def explain_job(run: Run, job_id: int) -> None:
    """Why a job's unsent instances wait, and what became of the others."""
    await _show(run, "job", job_id, job_in_words)


@explain.command("instance")
@click.argument("instance_id", type=ID)
@command
async def explain_instance(run: Run, instance_id: int) -> None:
    """How an instance's due date came about, term by term, and what became of it."""
    await _show(run, "instance", instance_id, instance_in_words)


async def _show(
    run: Run,
    kind: ExplainedKind,
    number: int,
    words: Callable[[Document], str],
) -> None:
    configure_logs("warning")
    shown = await run.ask(lambda client: client.explain(kind, number))
    run.show(shown, words(shown))
