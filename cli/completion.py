"""`muster completion`: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from cli.context import only_here, to_json

SHELLS = ("bash", "zsh", "fish")


@click.command()
@only_here("it needs no project and runs where it is called")
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Print a script that lets a shell complete commands: eval "$(muster completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None  # one of click's own
    script = kind(context.find_root().command, {}, "muster", "_MUSTER_COMPLETE").source()
    click.echo(to_json({"shell": shell, "script": script}) if as_json else script)
