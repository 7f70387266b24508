"""The command line `muster`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from domain.errors import MusterError
from operations.cli.accounts import account, submitter
from operations.cli.apps import app
from operations.cli.batches import batch, job
from operations.cli.estimate import estimate
from operations.cli.explain import explain
from operations.cli.fairshare import fairshare
from operations.cli.grants import grant, limit
from operations.cli.hoststats import hoststats
from operations.cli.node import demo, init, migrate, up
from operations.cli.priority import priority
from operations.cli.purge import purge
from operations.cli.settings import setting
from operations.cli.signing import sign
from operations.cli.simulate import simulate
from operations.cli.thresholds import thresholds
from operations.cli.tokens import token
from operations.cli.volunteers import volunteer


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="muster")
def muster() -> None:
    """Decides which job a volunteer's computer gets next, and by when it must be back."""


for command in (
    init,
    up,
    demo,
    migrate,
    volunteer,
    account,
    submitter,
    app,
    batch,
    job,
    hoststats,
    estimate,
    setting,
    thresholds,
    explain,
    priority,
    fairshare,
    grant,
    limit,
    simulate,
    sign,
    token,
    purge,
):
    muster.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, of this process unless told; what went wrong is told in one line."""
    try:
        muster(arguments, prog_name="muster", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except MusterError as error:
        click.secho(f"muster: {error}", err=True, fg="red")
        sys.exit(1)
