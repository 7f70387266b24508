"""A bar on the terminal while something long is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar


@contextmanager
def share_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Which share of something is done, from 0 to 1; no bar off a terminal."""
    console = Console(stderr=True)
    columns = TextColumn(what), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def bar_of(what: str, *, least: int = 0) -> Iterator[Callable[[int, int], None]]:
    """How many of how many are done; no bar off a terminal, nor for fewer than `least`."""
    console = Console(stderr=True)
    bar = Bar(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # elsewhere it would leave an empty line
    )
    task = bar.add_task(what, visible=False)

    def progress(done: int, total: int) -> None:
        bar.update(task, completed=done, total=max(done, total), visible=total >= least)

    with bar:
        yield progress
