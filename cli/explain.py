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


def _command(kind: ExplainedKind, words: Callable[[Document], str], about: str) -> None:
    @explain.command(kind, help=about)
    @click.argument(f"{kind}_id", type=ID)
    @command
    async def one(run: Run, **given: int) -> None:
        configure_logs("warning")
        shown = await run.ask(lambda client: client.explain(kind, given[f"{kind}_id"]))
        run.show(shown, words(shown))


_command("host", host_in_words, "What a host would be given if it called now, and why not more.")
_command("batch", batch_in_words, "What holds a batch back: what comes before it, and why hosts are refused its jobs.")
_command("job", job_in_words, "Why a job's unsent instances wait, and what became of the others.")
_command("instance", instance_in_words, "How an instance's due date came about, term by term, and what became of it.")
