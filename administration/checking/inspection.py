"""Inspects the whole project: all that was acknowledged is there, nothing twice, and all nodes share one `files/`.

It holds a page of files and at most `limit` findings of a kind in memory, however large the project.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from administration.checking.files import NEVER, CheckedDatabase, FileCounts, missing_files, stray_files
from domain.checking import Wrong
from domain.formatting import size_in_words
from domain.units import Instant
from domain.views import ProcessReport

NODES = "files of nodes"
HERE = "this machine"


def unshared(reports: Iterable[ProcessReport], own: str | None) -> Sequence[Wrong]:
    """Every node but those that have the folder most of them have, by what their workers said of themselves lately.

    `own` is the mark of the folder that the check itself looks at; None where it looks at none.

    >>> said = [ProcessReport(f"{n}: worker 0", "worker", 1.0, {"files": mark}) for n, mark in ("ax", "bx", "cy")]
    >>> [str(one) for one in unshared(said, "x")]
    ['node c: its files/ is another folder than that of a, b, this machine: nodes have to share it']
    """
    nodes = {} if own is None else {HERE: own}
    for report in reports:
        mark = report.report.get("files")
        if isinstance(mark, str):
            nodes[report.name.rpartition(": ")[0]] = mark
    having: dict[str, list[str]] = {}
    for node, mark in sorted(nodes.items()):
        having.setdefault(mark, []).append(node)
    if len(having) < 2:
        return ()
    most = max(having.values(), key=lambda some: (len(some), HERE in some))
    because = f"its files/ is another folder than that of {', '.join(most)}: nodes have to share it"
    return [Wrong(f"node {node}", because) for node in sorted(nodes) if node not in most]


MISSING, STRAY = "files of outputs", "files without an owner"

Progress = Callable[[str, int], None]  # hears of every question that was answered, and of how much was found


@dataclass(slots=True)
class Inspection:
    """What was asked, and what is wrong, by question. `cut`: questions of which only the first findings are listed."""

    wrong: dict[str, tuple[Wrong, ...]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    counts: FileCounts = field(default_factory=FileCounts)

    @property
    def found(self) -> int:
        return sum(map(len, self.wrong.values()))

    def as_json(self) -> dict[str, object]:
        """Everything, as one object."""
        return {
            "wrong": [
                {"question": question, "thing": one.thing, "because": one.because}
                for question, some in self.wrong.items()
                for one in some
            ],
            "cut": self.cut,
            "questions": len(self.wrong),
            **asdict(self.counts),
        }

    def text(self) -> str:
        """What is wrong, one line each, and a summary in the last one."""
        lines = [f"{question}: {one}" for question, some in self.wrong.items() for one in some]
        lines += [f"{question}: there is more; only the first are listed" for question in self.cut]
        counts = self.counts
        if counts.abandoned:
            size = size_in_words(counts.abandoned_bytes)
            lines.append(f"{counts.abandoned} files of {size} were begun, and no host will bring the rest")
        if counts.unacknowledged:
            lines.append(
                f"{counts.unacknowledged} files were never recorded although their hosts reported success: "
                "their clients gave the upload up, or were told that a part is complete: "
                + ", ".join(counts.unacknowledged_places)
            )
        looked_at = f"{len(self.wrong)} questions, {counts.outputs} outputs and {counts.files} files looked at"
        return "\n".join([*lines, f"{looked_at}: {self.found or 'nothing'} wrong"])


async def inspect(
    database: CheckedDatabase,
    folder: Path | None,
    *,
    limit: int,
    contents: bool,
    progress: Progress,
    deleted_before: Instant = NEVER,
    nodes: Sequence[Wrong] | None = None,
) -> Inspection:
    """Ask everything; `folder` None leaves out files, `contents` reads every byte of them.

    `nodes` is what was found of the nodes' folders, None where nobody looked.

    Unfinished files that nobody needs and that did not change since `deleted_before` should not be there any more.
    """
    made = Inspection()

    def note(question: str, wrong: Sequence[Wrong]) -> None:
        made.wrong[question] = tuple(wrong[:limit])
        if len(wrong) > limit:
            made.cut.append(question)
        progress(question, len(made.wrong[question]))

    if nodes is not None:
        note(NODES, nodes)
    for question in database.questions:
        note(question, await database.ask(question, limit=limit + 1))
    if folder is not None:
        note(MISSING, await _first(missing_files(database, folder, made.counts, contents=contents), limit + 1))
        note(STRAY, await _first(stray_files(database, folder, made.counts, deleted_before=deleted_before), limit + 1))
    return made


async def _first(findings: AsyncIterator[Wrong], most: int) -> list[Wrong]:
    """The first findings; the others are only looked at."""
    first: list[Wrong] = []
    async for one in findings:
        if len(first) < most:
            first.append(one)
    return first
