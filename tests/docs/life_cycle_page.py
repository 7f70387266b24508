"""Generates docs/lifecycle.md and the drawing docs/charts/lifecycle.svg from the transition table. Pure.

`python -m tests.docs.life_cycle_page > docs/lifecycle.md` writes the page, `python -m tests.docs.life_cycle_page svg >
docs/charts/lifecycle.svg` the drawing, with states as boxes and steps as arrows.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.jobs import InstanceState
from domain.jobs import InstanceState as S
from lifecycle.states import JOB_ERRORS, LOST, RETRY_CAUSES, SHAPES, TRANSITIONS, Event, StateShape

_HEAD = """\
# The life of an instance

`lifecycle/states.py` defines the states and the steps. `python -m tests.docs.life_cycle_page > docs/lifecycle.md`
generates this page, and `python -m tests.docs.life_cycle_page svg > docs/charts/lifecycle.svg` its drawing. A test
fails if one of them is out of date. The server rejects every step that is not listed here.

![The states of an instance and the steps between them; the tables below list them](charts/lifecycle.svg)

An instance starts as unsent. States with a thick border are final.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, "## Steps\n", _steps(), "## States\n", _states()])


def _steps() -> str:
    rows = [
        f"| {source} | {event} | {target} | {', '.join(instructions)} |"
        for (source, event), (target, instructions) in TRANSITIONS.items()
    ]
    return "\n".join(["| from | event | to | instructions |", "|---|---|---|---|", *rows, ""])


def _states() -> str:
    rows = [
        f"| {state} | {_yes(SHAPES[state].sent)} | {_reported(SHAPES[state])} "
        f"| {_yes(state in RETRY_CAUSES)} | {_yes(state in JOB_ERRORS)} | {_yes(state in LOST)} |"
        for state in InstanceState
    ]
    head = (
        "| state | has a host, sent_at, due_at | has reported_at | counts towards retries | counts towards max_errors "
        "| counts towards lifecycle.max_lost_instances |"
    )
    return "\n".join([head, "|---|---|---|---|---|---|", *rows, ""])


def _yes(answer: bool) -> str:
    return "yes" if answer else ""


def _reported(shape: StateShape) -> str:
    return "sometimes" if shape.reported is None else _yes(shape.reported)


# ---- the drawing

WIDTH, HEIGHT = 760, 650
BOX_WIDTH, BOX_HEIGHT = 110, 32
LINE_HEIGHT = 15
START = (90.0, 14.0)  # centre of the dot where the life cycle starts

# Centres of the boxes, chosen so that no two arrows cross.
PLACES: Mapping[S, tuple[float, float]] = {
    S.UNSENT: (90, 60),
    S.CANCELLED: (330, 60),
    S.IN_PROGRESS: (90, 140),
    S.FAILED: (680, 140),
    S.TIMED_OUT: (500, 260),
    S.ABORTED: (250, 300),
    S.REPORTED: (90, 450),
    S.INVALID: (330, 530),
    S.INCONCLUSIVE: (600, 530),
    S.TOO_LATE: (600, 450),
    S.VALID: (330, 620),
}


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from the edge of one box to another, with its label."""

    source: S
    target: S
    events: tuple[Event, ...]


def arrows() -> list[Arrow]:
    """Return an arrow for each pair of states with steps, labelled with all their events."""
    events: dict[tuple[S, S], list[Event]] = {}
    for (source, event), (target, _) in TRANSITIONS.items():
        events.setdefault((source, target), []).append(event)
    return [Arrow(source, target, tuple(named)) for (source, target), named in events.items()]


def drawing() -> str:
    """Return the whole SVG file."""
    drawn = [_line(START, _edge(PLACES[S.UNSENT], START)), f'<circle cx="{START[0]:g}" cy="{START[1]:g}" r="6"/>']
    drawn += [_line(*_ends(arrow)) for arrow in arrows()]
    drawn += [_label(arrow) for arrow in arrows()]
    drawn += [_box(state) for state in S]
    return "\n".join([_SVG_HEAD, *drawn, "</svg>", ""])


_SVG_HEAD = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">
<title>The states of an instance and the steps between them</title>
<style>
text {{ font: 13px system-ui, sans-serif; text-anchor: middle; dominant-baseline: central; fill: #1c1e21 }}
.event {{ font-size: 12px; fill: #41464d; stroke: #fff; stroke-width: 4px; paint-order: stroke }}
rect {{ fill: #eef3fa; stroke: #4a6fa5 }}
.over {{ stroke-width: 3px }}
line {{ stroke: #6b7280; marker-end: url(#tip) }}
</style>
<marker id="tip" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0 10 5 0 10z" fill="#6b7280"/></marker>
<path d="M0 0H{WIDTH}V{HEIGHT}H0z" fill="#fff"/>"""


def _box(state: S) -> str:
    x, y = PLACES[state]
    kind = "" if any(source is state for source, _ in TRANSITIONS) else ' class="over"'
    return (
        f'<rect{kind} x="{x - BOX_WIDTH / 2:g}" y="{y - BOX_HEIGHT / 2:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
        f'rx="6"/><text x="{x:g}" y="{y:g}">{state}</text>'
    )


def _label(arrow: Arrow) -> str:
    (from_x, from_y), (to_x, to_y) = _ends(arrow)
    x, y = (from_x + to_x) / 2, (from_y + to_y) / 2 - LINE_HEIGHT * (len(arrow.events) - 1) / 2
    return "".join(
        f'<text class="event" x="{x:.1f}" y="{y + LINE_HEIGHT * number:.1f}">{event}</text>'
        for number, event in enumerate(arrow.events)
    )


def _line(start: Sequence[float], end: Sequence[float]) -> str:
    return f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'


def _ends(arrow: Arrow) -> tuple[tuple[float, float], tuple[float, float]]:
    source, target = PLACES[arrow.source], PLACES[arrow.target]
    return _edge(source, target), _edge(target, source)


def _edge(of: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """Return where the line from the centre of a box to a point leaves the box.

    >>> _edge((100.0, 100.0), (100.0, 300.0)), _edge((100.0, 100.0), (300.0, 100.0))
    ((100.0, 116.0), (155.0, 100.0))
    """
    dx, dy = towards[0] - of[0], towards[1] - of[1]
    across = BOX_WIDTH / 2 / abs(dx) if dx else math.inf
    along = BOX_HEIGHT / 2 / abs(dy) if dy else math.inf
    part = min(across, along)
    return of[0] + dx * part, of[1] + dy * part


if __name__ == "__main__":
    sys.stdout.write(drawing() if sys.argv[1:] == ["svg"] else page())
