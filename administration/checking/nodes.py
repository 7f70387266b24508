"""Do all nodes have the same `files/`? Outputs that one keeps for itself are gone for the others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.checking import Wrong
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
