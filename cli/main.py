"""The command line `muster`. A command's module is imported when it is called, so help and completion are fast."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec
from click.shell_completion import CompletionItem

from domain.errors import MusterError

if TYPE_CHECKING:
    from web.problems import Problem

Entries = Mapping[str, tuple[str, str]]  # name -> "module:attribute" and the first sentence of the help


class Commands(MutableMapping[str, click.Command]):
    """Commands by name. Access to an item imports its module; iteration does not."""

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
        """Return the command's one-line summary."""
        return self._entries[name][1]


class Menu(click.Group):
    """A group of commands that are defined by import paths."""

    def __init__(self, *arguments: object, entries: Entries, **settings: object) -> None:
        super().__init__(*arguments, **settings)  # type: ignore[arg-type]  # click's own
        self.menu = Commands(entries)
        self.commands = self.menu

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one row per command with its summary."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.menu.summary(name)) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names, and show their summaries."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.menu.summary(name)) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)


ENTRIES = {
    "init": ("cli.node:init", "Create a project: its directory, keys and database."),
    "up": ("cli.node:up", "Run all services until SIGTERM or Ctrl-C."),
    "demo": (
        "cli.node:demo",
        "Run a small project with simulated volunteers on a fresh database, from setup to results.",
    ),
    "migrate": ("cli.node:migrate", "Bring the database to this version's schema."),
    "volunteer": ("cli.hosts:volunteer", "Manage volunteers' accounts."),
    "account": ("cli.accounts:account", "Manage the tree of accounts, which share the project's capacity."),
    "submitter": ("cli.accounts:submitter", "Manage submitters of batches."),
    "app": ("cli.apps:app", "Manage applications."),
    "batch": ("cli.batches:batch", "Manage batches of jobs."),
    "job": ("cli.batches:job", "Show jobs and their instances."),
    "host": ("cli.hosts:host", "Show volunteers' hosts, and label them."),
    "attention": (
        "cli.hosts:attention",
        "Show what needs attention, worst first: batches, app versions, hosts, periodic tasks, disks, backups.",
    ),
    "ban": ("cli.restrictions:ban", "Ban or limit a volunteer or a host."),
    "unban": ("cli.restrictions:unban", "Lift the ban or limit of a host or volunteer."),
    "pause": ("cli.restrictions:pause", "Send no new work of the project, an app, a queue or a batch."),
    "resume": ("cli.restrictions:resume", "Send paused work again."),
    "restrictions": ("cli.restrictions:restrictions", "List bans, limits and paused work."),
    "unschedulable": (
        "cli.hosts:unschedulable",
        "Show work that no active host can run, and work that hosts refused so far, with the reasons.",
    ),
    "hoststats": ("cli.hoststats:hoststats", "Rank hosts by speed and reliability."),
    "estimate": ("cli.estimate:estimate", "Forecast when batches will be complete."),
    "setting": ("cli.settings:setting", "Show and change settings."),
    "thresholds": (
        "cli.thresholds:thresholds",
        "Show, preview and change the thresholds for urgent jobs, tight due dates and copies of last jobs.",
    ),
    "explain": ("cli.explain:explain", "Explain decisions by a dry run of the scheduler, which changes nothing."),
    "priority": ("cli.priority:priority", "Show, preview and change the order of batches."),
    "fairshare": ("cli.fairshare:fairshare", "Show and change fair-share among accounts and submitters."),
    "usage": ("cli.fairshare:usage", "Report the history of usage by account, submitter and time."),
    "grant": (
        "cli.accounts:grant",
        "Manage grants of service units; accounts that have spent their grant continue in the last queue at no charge.",
    ),
    "limit": (
        "cli.accounts:limit",
        "Manage limits of submitters, accounts, apps and queues: soft limits put batches last, hard limits block them.",
    ),
    "simulate": (
        "cli.simulate:simulate",
        "Simulate a SCENARIO (a TOML file, or the name of a shipped one) under each rule, with the same seeds.",
    ),
    "stats": ("cli.maintenance:stats", "Export the credit of volunteers, teams and hosts."),
    "sign": (
        "cli.maintenance:sign",
        "Sign all app files again, or sign FILES on a machine that has only the key.",
    ),
    "operator": ("cli.operators:operator", "Manage operator, submitter and viewer accounts."),
    "token": ("cli.operators:token", "Manage tokens of the JSON API."),
    "notify": ("cli.notifications:notify", "Manage notifications by e-mail and webhook."),
    "purge": (
        "cli.maintenance:purge",
        "Delete the jobs of batches that ended before a given month, and their output files.",
    ),
    "check": (
        "cli.maintenance:check",
        "Check database, upload directory and buckets: all acknowledged results are present, none is duplicated.",
    ),
    "files": (
        "cli.maintenance:files",
        "Move the project's files between the folder and buckets.",
    ),
    "restore": (
        "cli.maintenance:restore",
        "Reconcile database and upload directory after a restore, before `muster up`.",
    ),
    "completion": (
        "cli.context:completion",
        'Print a shell completion script; use it with eval "$(muster completion bash)".',
    ),
}


@click.group(
    cls=Menu, entries=ENTRIES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="muster")
def muster() -> None:
    """Dispatches jobs to volunteers' computers, and sets their due dates."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (default: `sys.argv`). Errors are reported on one line, or as JSON with --json."""
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
        from muster_client import MusterClientError  # only here: most commands do not need the client

        if not isinstance(error, MusterClientError):  # the server refused the request or did not reply
            raise
        _fail(error, as_json=as_json, code=1)


def _fail(error: Exception, *, as_json: bool, code: int) -> NoReturn:
    """Report the error on standard error, as text or (with --json) as a problem object, and exit."""
    if as_json:
        click.echo(msgspec.json.encode(problem_for(error)).decode(), err=True)  # as in the API
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        say(in_words(error))
    sys.exit(code)


def in_words(error: Exception) -> str:
    """Return a one-line description of the error.

    >>> in_words(FileNotFoundError(2, "No such file or directory", "batch.toml"))
    'batch.toml: No such file or directory'
    """
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def say(why: str) -> None:
    """Print one line to standard error, in red unless NO_COLOR is set."""
    click.secho(f"muster: {why}", err=True, fg="red", color=False if os.environ.get("NO_COLOR") else None)


def problem_for(error: Exception) -> Problem:
    """Return the problem for any error that ends a command. A problem from a server is passed on.

    >>> problem_for(click.BadParameter("'x' is no number", param=click.Option(["--limit"]))).field
    'limit'
    """
    from muster_client import ApiError, UnreachableError
    from web.problems import problem, problem_from, problem_of

    match error:
        case ApiError():
            return problem_from(error.status, error.problem)
        case UnreachableError():
            return problem(503, "unreachable", str(error))
        case MusterError():
            return problem_of(error)
        case click.ClickException():
            return _usage(error)
        case _:
            return problem(500, "not done", in_words(error))


def _usage(error: click.ClickException) -> Problem:
    """Return the problem for an invalid command line. `field` names the option or argument, if known."""
    from web.problems import problem

    found = problem(400, "usage", error.format_message())
    if isinstance(error, click.BadParameter) and error.param is not None:
        found.field = error.param.name
    elif isinstance(error, (click.NoSuchOption, click.BadOptionUsage)):
        found.field = error.option_name
    return found
