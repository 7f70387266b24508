"""A menu of commands that are loaded when they are called: help and completion load none of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, MutableMapping

import click
from click.shell_completion import CompletionItem

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
