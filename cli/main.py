"""The command line `muster`: a menu of commands, each loaded when it is called; help and completion load none."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from domain.errors import MusterError

Entries = Mapping[str, tuple[str, str]]  # by name: "module:attribute", and the first line of its help


class Commands(MutableMapping[str, click.Command]):
    """Commands by name. Looking at one loads its module; going round their names loads nothing."""

    def __init__(self, entries: Entries) -> None:
        self._entries = dict(entries)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._entries[name][0].partition(":")
            found = getattr(importlib.import_module(module), attribute)
            assert isinstance(found, click.Command)
            self._loaded[name] = found
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._entries[name] = ("", command.get_short_help_str())
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._entries[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def summary(self, name: str) -> str:
        """What the command does, in one line."""
        return self._entries[name][1]


class Menu(click.Group):
    """A group of commands named by where they are."""

    def __init__(self, *arguments: object, entries: Entries, **settings: object) -> None:
        super().__init__(*arguments, **settings)  # type: ignore[arg-type]  # click's own
        self.menu = Commands(entries)
        self.commands = self.menu

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The summaries, one row each."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.menu.summary(name)) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names that begin so, with their summaries."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.menu.summary(name)) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)


ENTRIES = {
    "init": ("cli.node:init", "Create a project: its folder, keys and database."),
    "up": ("cli.node:up", "Run all services until SIGTERM or Ctrl-C."),
    "demo": ("cli.node:demo", "Run the main job end to end on a fresh database, and end."),
    "migrate": ("cli.node:migrate", "Bring the database to this version's schema."),
    "volunteer": ("cli.hosts:volunteer", "Volunteers' accounts."),
    "account": ("cli.accounts:account", "The tree of accounts that shares are divided in."),
    "submitter": ("cli.accounts:submitter", "Submitters of batches."),
    "app": ("cli.apps:app", "Applications."),
    "batch": ("cli.batches:batch", "Batches of jobs."),
    "job": ("cli.batches:job", "Jobs and their instances."),
    "host": ("cli.hosts:host", "Volunteers' computers."),
    "unschedulable": ("cli.hosts:unschedulable", "Show work that every recent host refused, with the reasons."),
    "hoststats": ("cli.hoststats:hoststats", "Percentiles of hosts: who is fast and reliable."),
    "estimate": ("cli.estimate:estimate", "When batches will be complete."),
    "setting": ("cli.settings:setting", "Settings of the project."),
    "thresholds": (
        "cli.thresholds:thresholds",
        "Who may have urgent jobs, how tight due dates are, and which last jobs are copied: look, preview, change.",
    ),
    "explain": ("cli.explain:explain", "The real decision, run dry: it changes nothing."),
    "priority": ("cli.priority:priority", "Whose batch goes first, and why: look, preview, change."),
    "fairshare": ("cli.fairshare:fairshare", "Fair-share among accounts and submitters."),
    "grant": (
        "cli.accounts:grant",
        "Service units of accounts: who has spent them goes on in the last queue, which costs nothing.",
    ),
    "limit": (
        "cli.accounts:limit",
        "How much a submitter, account, app or queue may have: over a soft limit last, over a hard one not at all.",
    ),
    "simulate": (
        "cli.simulate:simulate",
        "Run a SCENARIO (a TOML file, or a shipped one by its name) under each rule, with the same seeds.",
    ),
    "sign": (
        "cli.maintenance:sign",
        "Sign every app file anew, or FILES on a machine that has the key and nothing else.",
    ),
    "operator": ("cli.operators:operator", "Those who sign in: operators, submitters and viewers."),
    "token": ("cli.operators:token", "Tokens of the JSON API."),
    "purge": (
        "cli.maintenance:purge",
        "Forget the jobs of batches that ended before a month, and the output files hosts uploaded for them.",
    ),
    "check": (
        "cli.maintenance:check",
        "Walk database and upload folder: is everything there that was acknowledged, and nothing twice?",
    ),
    "restore": (
        "cli.maintenance:restore",
        "After a backup was restored, and before `muster up`: make the database and the upload folder agree.",
    ),
    "completion": (
        "cli.context:completion",
        'Print a script that lets a shell complete commands: eval "$(muster completion bash)".',
    ),
}


@click.group(
    cls=Menu, entries=ENTRIES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="muster")
def muster() -> None:
    """Decides which job a volunteer's computer gets next, and by when it must be back."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, of this process unless told; what went wrong is told in one line, or as JSON."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in given
    try:
        muster(given, prog_name="muster", standalone_mode=False)
    except click.ClickException as error:
        _fail(error, as_json=as_json, code=error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except (MusterError, OSError) as error:
        _fail(error, as_json=as_json, code=1)
    except Exception as error:
        from cli.failures import is_of_a_server  # noqa: PLC0415  # as below

        if not is_of_a_server(error):
            raise
        _fail(error, as_json=as_json, code=1)


def _fail(error: Exception, *, as_json: bool, code: int) -> NoReturn:
    """Say what went wrong on standard error: in words, or with --json as a problem object."""
    if as_json:
        from cli.failures import problem_as_json  # noqa: PLC0415  # it loads the client, which most commands do not need

        click.echo(problem_as_json(error), err=True)
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        say(in_words(error))
    sys.exit(code)


def in_words(error: Exception) -> str:
    """One line on what went wrong.

    >>> in_words(FileNotFoundError(2, "No such file or directory", "batch.toml"))
    'batch.toml: No such file or directory'
    """
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def say(why: str) -> None:
    """One line on standard error; red on a terminal whose owner has nothing against colours."""
    click.secho(f"muster: {why}", err=True, fg="red", color=False if os.environ.get("NO_COLOR") else None)
