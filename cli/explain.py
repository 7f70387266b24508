"""`muster explain`: explain decisions about hosts, batches, jobs and instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.context import Run, command

if TYPE_CHECKING:
    from muster_client import ExplainedKind

ID = click.IntRange(min=1, max=2**62)


@click.group()
def explain() -> None:
    """Explain decisions by a dry run of the scheduler, which changes nothing."""


def _command(kind: ExplainedKind, about: str) -> None:
    @explain.command(kind, help=about)
    @click.argument(f"{kind}_id", type=ID)
    @command
    async def one(run: Run, **given: int) -> None:
        from administration.explain import words
        from runtime.logs import configure_logs

        configure_logs("warning")
        shown = await run.ask(lambda client: client.explain(kind, given[f"{kind}_id"]))
        run.show(shown, words.IN_WORDS[kind](shown))


_command("host", "Show which jobs a host would get if it requested work now, and why it would not get more.")
_command("batch", "Show which batches are ahead of a batch, and why hosts are refused its jobs.")
_command("job", "Show why a job's unsent instances wait, and the state of the others.")
_command("instance", "Show how an instance's due date was computed, and the instance's outcome.")
