"""Formats priorities for display. Pure.

Printed parts always add up to the printed total: rounding differences are moved to another part. The layouts are those
of other products (`mdiag -p`, `sprio`, Flux's verbose form), but contributions are signed, and figures are complete
where the originals truncate them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

from domain.ordering import Breakdown, Contribution
from priority.measures import absolute_percent


class Format(StrEnum):
    TABLE = "table"
    MDIAG = "mdiag"
    SPRIO = "sprio"
    FLUX = "flux"


def figure(value: float | None) -> str:
    """Format a number with six significant digits, or all digits before the point; no exponent below 1e15.

    >>> figure(100000.0), figure(0.453211), figure(-1.5), figure(None)
    ('100000', '0.453211', '-1.5', '-')
    """
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value)}"
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def printed(points: Sequence[float], total: float, *, whole: bool = False) -> tuple[list[str], str]:
    """Format points and total so that they add up: as integers if all are (or `whole`), otherwise with two decimals.

    >>> printed([1.004, 1.004, 1.004], 3.012)
    (['1.01', '1.00', '1.00'], '3.01')
    >>> printed([1e22, 0.5, -1e22], 0.0)[1]
    '0.00'
    >>> printed([5.0, -2.0], 3.0)
    (['5', '-2'], '3')
    >>> printed([1.4, 1.4], 2.8, whole=True)
    (['2', '1'], '3')
    """
    decimals = 0 if whole or all(one == round(one) for one in (*points, total)) else 2
    scale = 10**decimals
    scaled, parts = round(total * scale), [round(one * scale) for one in points]
    missing = scaled - sum(parts)
    step = 1 if missing > 0 else -1
    by_error = sorted(range(len(parts)), key=lambda place: step * (parts[place] - points[place] * scale))
    for place in by_error[: abs(missing)]:
        parts[place] += step
    if abs(missing) > len(parts) > 0:  # figures beyond double precision: the largest part takes the rest
        parts[max(range(len(parts)), key=lambda place: abs(parts[place]))] += missing - step * len(parts)
    return [f"{one / scale:.{decimals}f}" for one in parts], f"{scaled / scale:.{decimals}f}"


def relative(breakdown: Breakdown) -> Breakdown:
    """Return the breakdown with instants as seconds relative to its ordering pass; negative for the past.

    >>> submitted = Contribution("submitted at", "submitted at", 1e9, "instant", 1e9, None, -1.0, -1e9)
    >>> shown = relative(Breakdown(7, "fifo", 1e9 + 60.0, 0, -1e9, (submitted,)))
    >>> shown.total, shown.components[0].name, shown.components[0].value
    (60.0, 'submitted at - now', -60.0)
    """
    at, parts, total = breakdown.computed_at, list[Contribution](), breakdown.total
    for one in breakdown.components:
        if one.unit != "instant" or one.value is None:
            parts.append(one)
            continue
        total -= one.weight * at
        points = one.points - one.weight * at
        parts.append(replace(one, name=f"{one.name} - now", value=one.value - at, points=points))
    return replace(breakdown, total=total, components=tuple(parts))


def verbose(breakdown: Breakdown) -> str:
    """Format formula, numbers, products and result on one line each, followed by bounds and limits.

    >>> two = (Contribution("wait", "wait", 60.0, "s", 0.5, None, 10.0, 5.0), Contribution("user", "user", -512.0, "",
    ...        -0.5, None, 4.0, -2.0))
    >>> print(verbose(Breakdown(7, "multifactor", 0.0, 0, 3.0, two)))
    batch 7, multifactor, tier 0
      priority = wait * wait_weight + user * user_weight
               = 0.5 * 10 + -0.5 * 4
               = 5 - 2
               = 3
    """
    breakdown = relative(breakdown)
    parts = breakdown.components
    points, total = printed([one.points for one in parts], breakdown.total)
    formula = " + ".join(f"{one.name} * {one.name}_weight" for one in parts) or "0"
    numbers = " + ".join(f"{_capped(one)} * {figure(one.weight)}" for one in parts) or "0"
    lines = [
        f"batch {breakdown.batch_id}, {breakdown.policy}, tier {breakdown.tier}",
        f"  priority = {formula}",
        f"           = {numbers}",
        f"           = {_signed(points)}",
        f"           = {total}",
    ]
    if breakdown.clamp is not None:
        lines.append(f"           -> {figure(breakdown.clamp.result)} ({breakdown.clamp.bound})")
    lines += [f"  {one.name}: {one.note}" for one in parts if one.note]
    lines += [f"  queue: {breakdown.queue}"] if breakdown.queue else []
    lines += [f"  {said}" for said in breakdown.limits]
    return "\n".join(lines)


def _capped(part: Contribution) -> str:
    """Format a term's value, with its cap if the cap applies.

    >>> _capped(Contribution("XFACTOR", "SERVICE", 133.0, "", 133.0, 50.0, 10.0, 500.0))
    'min(133, 50)'
    """
    over = part.cap is not None and part.value is not None and abs(part.value) > part.cap
    return f"min({figure(part.value)}, {figure(part.cap)})" if over else figure(part.value)


def _signed(points: Sequence[str]) -> str:
    """Format a signed sum.

    >>> _signed(["5", "-2", "0"])
    '5 - 2 + 0'
    """
    rest = "".join(f" - {one[1:]}" if one.startswith("-") else f" + {one}" for one in points[1:])
    return points[0] + rest if points else "0"


def table(breakdowns: Sequence[Breakdown]) -> list[list[str]]:
    """Return rows of signed contributions that add up to the total, one column per term, starting with the heading.

    >>> wait = Contribution("wait", "wait", 60.0, "s", 0.5, None, 10.0, 5.0)
    >>> table([Breakdown(7, "multifactor", 0.0, 0, 5.0, (wait,))])
    [['batch', 'tier', 'wait', 'total', 'note'], ['7', '0', '+5', '5', '']]
    """
    names = _names(breakdowns)
    rows = [["batch", "tier", *names, "total", "note"]]
    for one in breakdowns:
        points, total = printed([part.points for part in one.components], one.total)
        by_name = {part.name: _plus(cell) for part, cell in zip(one.components, points, strict=True)}
        rows.append([str(one.batch_id), str(one.tier), *(by_name.get(name, "-") for name in names), total, _notes(one)])
    return rows


def mdiag(breakdowns: Sequence[Breakdown]) -> list[list[str]]:
    """Return rows like `mdiag -p`, in integers: one column per component with its sub-components; then their weights,
    "points, percent of the absolute sum (points of the sub-components)" per batch, and the percentages over all
    batches.

    >>> from pprint import pprint
    >>> parts = (Contribution("XFACTOR", "SERVICE", 2.0, "", 2.0, None, 30.0, 60.0),
    ...          Contribution("FSUSER", "FS", -2.0, "", -2.0, None, 10.0, -20.0))
    >>> pprint(mdiag([Breakdown(7, "components", 0.0, 0, 40.0, parts)])[:3])
    [['batch', 'priority', 'SERVICE(XFACTOR)', 'FS(FSUSER)'],
     ['Weights', '', '(30)', '(10)'],
     ['7', '40', '60 75.0%(60)', '-20 25.0%(-20)']]
    """
    weights: dict[str, dict[str, float]] = {}
    for one in breakdowns:
        for part in one.components:
            weights.setdefault(part.component, {})[part.name] = part.weight
    rows = [["batch", "priority", *(f"{name}({':'.join(terms)})" for name, terms in weights.items())]]
    rows.append(["Weights", "", *(f"({':'.join(map(figure, terms.values()))})" for terms in weights.values())])
    sums = dict.fromkeys(weights, 0.0)
    for one in breakdowns:
        points, total = printed([part.points for part in one.components], one.total, whole=True)
        whole = {part.name: int(cell) for part, cell in zip(one.components, points, strict=True)}
        exact = [sum(part.points for part in one.components if part.component == name) for name in weights]
        cells = []
        for (name, terms), number, percent in zip(weights.items(), exact, absolute_percent(exact), strict=True):
            sums[name] += abs(number)
            of_terms = [whole.get(term) for term in terms]
            listed = ":".join("-" if value is None else str(value) for value in of_terms)
            cells.append(f"{sum(value or 0 for value in of_terms)} {percent:.1f}%({listed})")
        rows.append([str(one.batch_id), total, *cells])
    foot = [f"{percent:.1f}%" for percent in absolute_percent(list(sums.values()))]
    return [*rows, ["Percent Contribution", "", *foot]]


def sprio(breakdowns: Sequence[Breakdown], *, normalised: bool = False) -> list[list[str]]:
    """Return rows like `sprio -l`: weighted points per term; with `normalised` (-n), values before weighting.

    >>> wait = Contribution("wait", "wait", 60.0, "s", 0.5, None, 10.0, 5.0)
    >>> sprio([Breakdown(7, "multifactor", 0.0, 0, 5.0, (wait,))], normalised=True)
    [['JOBID', 'PRIORITY', 'WAIT'], ['7', '5', '0.5']]
    """
    names = _names(breakdowns)
    rows = [["JOBID", "PRIORITY", *(name.upper() for name in names)]]
    for one in breakdowns:
        points, total = printed([part.points for part in one.components], one.total)
        cells = [figure(part.value) for part in one.components] if normalised else points
        by_name = {part.name: cell for part, cell in zip(one.components, cells, strict=True)}
        rows.append([str(one.batch_id), total, *(by_name.get(name, "-") for name in names)])
    return rows


def sprio_weights(breakdowns: Sequence[Breakdown]) -> list[list[str]]:
    """Return rows like `sprio -w`: the weights that are stored with the priorities.

    >>> wait = Contribution("wait", "wait", 60.0, "s", 0.5, None, 10.0, 5.0)
    >>> sprio_weights([Breakdown(7, "multifactor", 0.0, 0, 5.0, (wait,))])
    [['JOBID', 'PRIORITY', 'WAIT'], ['Weights', '', '10']]
    """
    names = _names(breakdowns)
    weights = {part.name: part.weight for one in breakdowns for part in one.components}
    return [
        ["JOBID", "PRIORITY", *(name.upper() for name in names)],
        ["Weights", "", *(figure(weights[n]) for n in names)],
    ]


def flux(breakdowns: Sequence[Breakdown]) -> list[list[str]]:
    """Return rows like `flux account jobs`: each factor with its weight, and the resulting priority.

    >>> wait = Contribution("wait", "wait", 60.0, "s", 0.5, None, 10.0, 5.0)
    >>> flux([Breakdown(7, "multifactor", 0.0, 0, 5.0, (wait,))])
    [['JOBID', 'WAIT', 'WAITFACT', 'PRIORITY'], ['7', '0.5', '10', '5']]
    """
    names = _names(breakdowns)
    heading = [cell for name in names for cell in (name.upper(), f"{name.upper()}FACT")]
    rows = [["JOBID", *heading, "PRIORITY"]]
    for one in breakdowns:
        parts = {part.name: part for part in one.components}
        cells = [cell for name in names for cell in _pair(parts.get(name))]
        rows.append([str(one.batch_id), *cells, figure(one.result)])
    return rows


def shown(breakdowns: Sequence[Breakdown], layout: Format) -> list[list[str]]:
    """Return the rows of one layout, starting with the heading."""
    by_layout: dict[Format, Callable[[Sequence[Breakdown]], list[list[str]]]] = {
        Format.TABLE: table,
        Format.MDIAG: mdiag,
        Format.SPRIO: sprio,
        Format.FLUX: flux,
    }
    return by_layout[layout]([relative(one) for one in breakdowns])


def _pair(part: Contribution | None) -> tuple[str, str]:
    return ("-", "-") if part is None else (figure(part.value), figure(part.weight))


def _names(breakdowns: Sequence[Breakdown]) -> list[str]:
    return list(dict.fromkeys(part.name for one in breakdowns for part in one.components))


def _plus(points: str) -> str:
    return points if points.startswith("-") else f"+{points}"


def _notes(one: Breakdown) -> str:
    clamp = [f"{figure(one.clamp.result)} ({one.clamp.bound})"] if one.clamp is not None else []
    notes = [f"{part.name} {part.note}" for part in one.components if part.note]
    return "; ".join([*clamp, *notes, *one.limits])
