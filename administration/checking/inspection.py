"""Inspects a whole project: acknowledged data exists exactly once, and all nodes share one `files/`.

Only one page of files and at most `limit` findings per check are in memory, for a project of any size.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from administration.checking.files import NEVER, FileCounts, missing_files, stray_files, stray_objects
from domain.checking import Wrong
from domain.formatting import size_in_words
from domain.units import Instant
from domain.views import ProcessReport
from store.checking import CheckingSession
from transfer.bucket import BucketStore

NODES = "files of nodes"
HERE = "this machine"


def unshared(reports: Iterable[ProcessReport], own: str | None) -> Sequence[Wrong]:
    """Return the nodes whose directory differs from that of the majority, according to the workers' latest reports.

    `own` is the mark of the directory that this check reads, None if it reads none.

    >>> reports = [ProcessReport(f"{n}: worker 0", "worker", 1.0, {"files": mark}) for n, mark in ("ax", "bx", "cy")]
    >>> [str(one) for one in unshared(reports, "x")]
    ['node c: its files/ is not the directory of a, b, this machine: all nodes must share one directory']
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
    because = f"its files/ is not the directory of {', '.join(most)}: all nodes must share one directory"
    return [Wrong(f"node {node}", because) for node in sorted(nodes) if node not in most]


MISSING, STRAY = "files of outputs", "files without an owner"

Progress = Callable[[str, int], None]  # called after each check with its number of findings


@dataclass(slots=True)
class Inspection:
    """The findings, by check. `cut` names the checks for which only the first findings are listed."""

    wrong: dict[str, tuple[Wrong, ...]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    counts: FileCounts = field(default_factory=FileCounts)

    @property
    def found(self) -> int:
        return sum(map(len, self.wrong.values()))

    def as_json(self) -> dict[str, object]:
        """Return the findings and counts as one JSON object."""
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
        """Return one line per finding, followed by a summary."""
        lines = [f"{question}: {one}" for question, some in self.wrong.items() for one in some]
        lines += [f"{question}: more findings; only the first are listed" for question in self.cut]
        counts = self.counts
        if counts.abandoned:
            size = size_in_words(counts.abandoned_bytes)
            lines.append(f"{counts.abandoned} unfinished files ({size}) that no host will continue")
        if counts.unacknowledged:
            lines.append(
                f"{counts.unacknowledged} files were not recorded although their hosts reported success: "
                "their clients abandoned the upload, or a part was acknowledged as complete: "
                + ", ".join(counts.unacknowledged_places)
            )
        inspected = f"{len(self.wrong)} checks, {counts.outputs} outputs and {counts.files} files inspected"
        return "\n".join([*lines, f"{inspected}: {self.found or 'no'} findings"])


async def inspect(
    database: CheckingSession,
    folder: Path | None,
    *,
    limit: int,
    contents: bool,
    progress: Progress,
    deleted_before: Instant = NEVER,
    nodes: Sequence[Wrong] | None = None,
    buckets: Sequence[BucketStore] = (),
) -> Inspection:
    """Run all checks. With `folder` None, files are not checked; `contents` reads every byte, also in `buckets`.

    `nodes` are the findings about the nodes' directories, None if they were not checked.

    Unfinished files not modified since `deleted_before` that no host continues should have been deleted.
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
        missing = missing_files(database, folder, made.counts, contents=contents, buckets=buckets)
        note(MISSING, await _first(missing, limit + 1))
        stray = await _first(stray_files(database, folder, made.counts, deleted_before=deleted_before), limit + 1)
        for bucket in buckets:
            objects = stray_objects(database, bucket, made.counts, deleted_before=deleted_before)
            stray += await _first(objects, limit + 1 - len(stray))
        note(STRAY, stray)
    return made


async def _first(findings: AsyncIterator[Wrong], most: int) -> list[Wrong]:
    """Return the first findings; further ones are only counted."""
    first: list[Wrong] = []
    async for one in findings:
        if len(first) < most:
            first.append(one)
    return first
