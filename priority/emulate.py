"""Computes fair-share as other systems do, for a tree given as JSON in their format. Pure.

The dry run behind `muster fairshare emulate --system flux|slurm|pbs|maui|nci`. It uses no project data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from types import MappingProxyType

from domain.errors import InvalidInputError
from domain.units import BatchId, Instant
from priority.displays import figure
from priority.equal_access import Claim, shuffled
from priority.standings import Target, TargetMode, parse_target
from priority.systems import (
    MIN_USAGE,
    PARENT,
    Association,
    Credential,
    FairTreeRow,
    Node,
    classic,
    fair_share_table,
    fair_tree,
    flux_shares,
    pbs_shares,
)

# ---- reading input

DEEPEST = 100  # maximum depth of a tree
LARGEST = 1e100  # maximum of a figure, so that sums and products stay finite
MODES = {
    "target": TargetMode.PLAIN,
    "plain": TargetMode.PLAIN,
    "floor": TargetMode.FLOOR,
    "ceiling": TargetMode.CEILING,
}
MODES |= {"cap": TargetMode.CAP, "hard_cap": TargetMode.HARD_CAP}


def flux_tree_of(document: object, depth: int = 0) -> Node:
    """Read a tree of {name, kind: account|user, shares, usage, children}. Raises InvalidInputError naming the field.

    >>> flux_tree_of({"name": "root", "kind": "account", "children": [{"name": "ann", "usage": 3}]}).children[0].usage
    3.0
    """
    name, fields, children = _vertex(document, depth, flux_tree_of)
    kind = fields.get("kind", "account" if "children" in fields or depth == 0 else "user")
    if kind not in ("account", "user"):
        raise InvalidInputError(f"{name}.kind", "account or user", kind)
    return Node(name, _shares(name, fields), _usage(name, fields), children, kind == "user")


def slurm_tree_of(document: object, depth: int = 0) -> Node:
    """Read a tree of {name, shares, usage, children}. The usage of vertices with children is ignored."""
    name, fields, children = _vertex(document, depth, slurm_tree_of)
    usage = 0.0 if children else _number(f"{name}.usage", fields.get("usage") or 0.0)
    return Node(name, _shares(name, fields), usage, children)


def pbs_tree_of(document: object) -> tuple[Node, ...]:
    """Read the vertices below the root: {root_children: [{name, shares, usage, children}]}, or a tree with a root."""
    fields = _mapping("tree", document)
    _name(fields, "root")
    below = fields.get("root_children", fields.get("children", ()))
    return tuple(_pbs_node(child, 1) for child in _list("root_children", below))


def _pbs_node(document: object, depth: int) -> Node:
    name, fields, children = _vertex(document, depth, _pbs_node)
    return Node(name, _shares(name, fields), _usage(name, fields), children)


def _vertex(
    document: object, depth: int, read: Callable[[object, int], Node]
) -> tuple[str, Mapping[str, object], tuple[Node, ...]]:
    """Read a vertex's name, its fields, and its children (by calling `read`)."""
    if depth > DEEPEST:
        raise InvalidInputError("tree", f"at most {DEEPEST} levels", depth)
    fields = _mapping("tree", document)
    name = _name(fields)
    below = _list(f"{name}.children", fields.get("children", ()))
    return name, fields, tuple(read(child, depth + 1) for child in below)


def _name(fields: Mapping[str, object], default: str = "") -> str:
    name = fields.get("name", default)
    if not isinstance(name, str) or not (name or default):
        raise InvalidInputError("tree.name", "a name", name)
    return name


def _shares(name: str, fields: Mapping[str, object]) -> float:
    return _number(f"{name}.shares", fields.get("shares", 1.0))


def _usage(name: str, fields: Mapping[str, object]) -> float | None:
    usage = fields.get("usage")
    return None if usage is None else _number(f"{name}.usage", usage)


def associations_of(document: object) -> list[Association]:
    """Read rows of {id, parent, account, user, shares: a number or "parent", usage_own}."""
    rows = list[Association]()
    for where, row in _rows("associations", document):
        shares = row.get("shares", 1)
        if shares != PARENT:
            shares = _whole(_number(f"{where}.shares", shares))
        parent, user = row.get("parent"), row.get("user")
        rows.append(
            Association(
                str(row.get("id", len(rows))),
                None if parent is None else str(parent),
                str(row.get("account", "")),
                None if user is None else str(user),
                shares if isinstance(shares, (int, float)) else PARENT,
                _number(f"{where}.usage_own", row.get("usage_own") or 0.0),
            )
        )
    return rows


def maui_rows_of(document: object) -> list[Credential]:
    """Read rows of {section, name, target, mode, windows}, newest window first."""
    return [
        Credential(
            str(row.get("section", "USER")),
            str(row.get("name", "")),
            target_of(row.get("target"), row.get("mode")),
            tuple(_numbers(f"{where}.windows", row.get("windows", ()))),
        )
        for where, row in _rows("rows", document)
    ]


def target_of(amount: object, mode: object = None) -> Target | None:
    """Read a target given as a number and the name of its mode, or in Maui's notation ("12.5+"). None: no target.

    >>> target_of(10.0, "floor"), target_of("10+"), target_of(None)
    (Target(amount=10.0, mode=<TargetMode.FLOOR: '+'>), Target(amount=10.0, mode=<TargetMode.FLOOR: '+'>), None)
    """
    if amount is None:
        return None
    if isinstance(amount, str):
        return parse_target(amount)
    return Target(_number("target", amount), TargetMode.PLAIN if mode is None else _mode_of(mode))


def _mode_of(mode: object) -> TargetMode:
    """Return a target's mode, given its name or Maui's sign."""
    signs = {sign.value: sign for sign in TargetMode}
    if not isinstance(mode, str) or mode not in {**MODES, **signs}:
        raise InvalidInputError("mode", "one of " + ", ".join(MODES), mode)
    return {**signs, **MODES}[mode]


def _mapping(where: str, document: object) -> Mapping[str, object]:
    if not isinstance(document, Mapping):
        raise InvalidInputError(where, "an object", document)
    return document


def _list(where: str, document: object) -> Sequence[object]:
    if isinstance(document, (str, bytes)) or not isinstance(document, Iterable) or isinstance(document, Mapping):
        raise InvalidInputError(where, "a list", document)
    return list(document)


def _rows(where: str, document: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Return the objects of a list, each with its label for error messages."""
    for number, row in enumerate(_list(where, document)):
        yield f"{where}[{number}]", _mapping(f"{where}[{number}]", row)


def _numbers(where: str, document: object) -> list[float]:
    return [_number(where, one) for one in _list(where, document)]


def _number(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= LARGEST:
        raise InvalidInputError(where, f"a number from 0 to {LARGEST:g}", value)
    return float(value)


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


# ---- the tables


@dataclass(frozen=True, slots=True)
class EmulatedTable:
    """Columns and rows, as printed."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def emulate(system: str, document: object) -> EmulatedTable:
    """Return the system's table for input in its format. Raises InvalidInputError naming the error.

    flux: a tree of {name, kind, shares, usage, children}. slurm: {associations} for Fair Tree, otherwise a tree {name,
    shares, usage, children} for the classic algorithm, with `dampening`. pbs: {root_children, min_usage}. maui: {decay,
    total_per_window, rows: {section, name, target, mode, windows}}. nci: {jobs: {id, owner, cpus}, held, slots}.

    >>> tree = {"name": "root", "children": [{"name": "ann", "usage": 3}, {"name": "bob", "usage": 1}]}
    >>> emulate("flux", tree).rows
    (('bob', '1', '2'), ('ann', '0.5', '0.666667'))
    """
    if system not in SYSTEMS:
        raise InvalidInputError("system", "one of " + ", ".join(SYSTEMS), system)
    if not isinstance(document, Mapping):
        raise InvalidInputError("document", "a JSON object", document)
    table = SYSTEMS[system](document)
    if not table.rows:
        raise InvalidInputError("document", NEEDS[system], "none")
    return table


def _flux(document: Mapping[str, object]) -> EmulatedTable:
    shares = flux_shares(flux_tree_of(document.get("tree", document)))
    best_first = sorted(shares.fairshare.items(), key=lambda one: -one[1])
    rows = ((name, figure(fairshare), figure(shares.user_weight[name])) for name, fairshare in best_first)
    return EmulatedTable(("user", "fairshare", "weight"), tuple(rows))


def _slurm(document: Mapping[str, object]) -> EmulatedTable:
    if "associations" in document:
        rows = fair_tree(associations_of(document["associations"]))
        columns = tuple(one.name for one in fields(FairTreeRow))
        return EmulatedTable(
            columns, tuple(tuple("" if cell is None else cell for cell in astuple(row)) for row in rows)
        )
    damping = _number("dampening", document.get("dampening", 1.0))
    found = classic(slurm_tree_of(document.get("tree", document)), damping=damping)
    columns = ("name", "norm_shares", "norm_usage", "effective_usage", "fairshare")
    return EmulatedTable(columns, tuple((name, *(f"{one:.6f}" for one in astuple(row))) for name, row in found.items()))


def _pbs(document: Mapping[str, object]) -> EmulatedTable:
    tree = document.get("tree", document)
    top = pbs_tree_of(tree)
    least = tree.get("min_usage", MIN_USAGE) if isinstance(tree, Mapping) else MIN_USAGE
    shares = pbs_shares(top, min_usage=_number("min_usage", least))
    columns = ("name", "fairshare_perc", "fairshare_tree_usage", "fairshare_factor")
    figures = ((name, one.norm_shares, one.effective_usage, one.fairshare) for name, one in shares.items())
    return EmulatedTable(columns, tuple((name, *(f"{figure:.4f}" for figure in of)) for name, *of in figures))


def _maui(document: Mapping[str, object]) -> EmulatedTable:
    totals = _numbers("total_per_window", document.get("total_per_window", ()))
    decay = _number("decay", document.get("decay", 1.0))
    credentials = maui_rows_of(document.get("rows", ()))
    for number, one in enumerate(credentials):
        if len(one.windows) != len(totals):
            expected = f"{len(totals)} windows, one per entry of total_per_window"
            raise InvalidInputError(f"rows[{number}].windows", expected, len(one.windows))
    found = fair_share_table(credentials, totals, decay=decay)
    rows = []
    for one in credentials:
        target = "-------" if one.target is None else f"{one.target.amount:.2f}{one.target.mode}"
        percent, is_starred = found[one.key]
        windows = (f"{percent:.2f}" for percent in one.windows)
        rows.append((one.section, one.name + "*" * is_starred, f"{percent:.2f}", target, *windows))
    return EmulatedTable(
        ("section", "name", "percent", "target", *(str(age) for age in range(len(totals)))), tuple(rows)
    )


def _nci(document: Mapping[str, object]) -> EmulatedTable:
    """Return the jobs in equal-access order: owners with less work in progress or ahead go first."""
    jobs = [job for _, job in _rows("jobs", document.get("jobs", ()))]
    owners = {str(job.get("owner", "")): number for number, job in reversed(list(enumerate(jobs)))}
    claims = [
        Claim(
            BatchId(place),
            owners[str(job.get("owner", ""))],
            int(_number(f"jobs[{place}].tier", job.get("tier", 1))),
            _number(f"jobs[{place}].cpus", job.get("cpus", 1)),
            1,
            Instant(place),
            int(_number(f"jobs[{place}].bypassed", job.get("bypassed", 0))),
        )
        for place, job in enumerate(jobs)
    ]
    held = document.get("held", {})
    if not isinstance(held, Mapping):
        raise InvalidInputError("held", "an object of CPUs by owner", held)
    standing = {owners[name]: _number(f"held.{name}", cpus) for name, cpus in held.items() if name in owners}
    order = shuffled(claims, held_pe=standing, slots=len(claims))
    rows = ((str(jobs[place].get("id", place)), str(jobs[place].get("owner", ""))) for place in order)
    return EmulatedTable(("job", "owner"), tuple(rows))


NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "flux": "users below `children`",
        "slurm": "users below `children`, or `associations`",
        "pbs": "users in `root_children`",
        "maui": "credentials in `rows`",
        "nci": "jobs in `jobs`",
    }
)
SYSTEMS: Mapping[str, Callable[[Mapping[str, object]], EmulatedTable]] = MappingProxyType(
    {"flux": _flux, "slurm": _slurm, "pbs": _pbs, "maui": _maui, "nci": _nci}
)
