"""`muster explain`: explains decisions about hosts, batches, jobs and instances."""

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
    """Explain decisions by a dry run of the scheduler, which changes nothing."""


def _command(kind: ExplainedKind, words: Callable[[Document], str], about: str) -> None:
    @explain.command(kind, help=about)
    @click.argument(f"{kind}_id", type=ID)
    @command
    async def one(run: Run, **given: int) -> None:
        configure_logs("warning")
        shown = await run.ask(lambda client: client.explain(kind, given[f"{kind}_id"]))
        run.show(shown, words(shown))


_command("host", host_in_words, "Show which jobs a host would get if it called now, and why not more.")
_command("batch", batch_in_words, "Show which batches are ahead of a batch, and why hosts are refused its jobs.")
_command("job", job_in_words, "Show why a job's unsent instances wait, and the state of the others.")
_command("instance", instance_in_words, "Show how an instance's due date was computed, and the instance's outcome.")
