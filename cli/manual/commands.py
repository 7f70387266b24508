"""The page of all commands, with their arguments and options. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from cli.manual.words import MADE, cell, code, table

_HEAD = f"""\
# Commands

{MADE.format(source="the commands themselves")}

`muster COMMAND --help` says the same. What is common to them is in [operating](../operating.md#the-command-line).
"""
SHARED = ("data_dir", "database_url", "as_json", "server", "token")


def commands_page(root: click.Group) -> str:
    """The whole page."""
    parts = [_HEAD, table(["option of most commands", "meaning"], _shared(root)) + "\n"]
    for path, command in commands_of(root, ("muster",)):
        parts.append(_entry(path, command))
    return "\n".join(parts)


def commands_of(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, in the order of the menus."""
    context = click.Context(group, info_name=path[-1])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from commands_of(command, (*path, name))
        else:
            yield (*path, name), command


def _entry(path: Sequence[str], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path))
    usage = " ".join([" ".join(path), *command.collect_usage_pieces(context)])
    about = cell(command.help or "")
    options = [_option(one, context) for one in command.params if isinstance(one, click.Option) and _own(one)]
    parts = [f"## {' '.join(path)}\n", f"{code(usage)}\n", about + "\n"]
    if options:
        parts.append(table(["option", "meaning"], options) + "\n")
    return "\n".join(parts)


def _own(option: click.Option) -> bool:
    return option.name not in SHARED and option.name != "help" and not option.hidden


def _option(option: click.Option, context: click.Context) -> list[str]:
    record = option.get_help_record(context)
    assert record is not None  # hidden ones are left out
    return [code(record[0]), cell(record[1])]


def _shared(root: click.Group) -> list[list[str]]:
    """What most commands take, told once."""
    found: dict[str, list[str]] = {}
    for path, command in commands_of(root, ("muster",)):
        for one in command.params:
            if isinstance(one, click.Option) and one.name in SHARED and one.help:
                context = click.Context(command, info_name=path[-1])
                found.setdefault(one.name, _option(one, context))
    return [found[name] for name in SHARED if name in found]
