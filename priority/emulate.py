"""Computes the fair-share of other systems for a tree given as JSON, in their forms. Pure.

The dry run behind `muster fairshare emulate --system flux|slurm|pbs|maui|nci`: nothing is read or changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from types import MappingProxyType

from domain.errors import InvalidInputError
from domain.units import BatchId, Instant
from priority.displays import figure
from priority.equal_access import Claim, shuffled
from priority.standings import Target, TargetMode, parse_target
from priority.systems import flux, maui, pbs, slurm
from priority.systems.flux import FluxNode
from priority.systems.maui import Credential
from priority.systems.pbs import PbsNode
from priority.systems.slurm import PARENT, Association, FairTreeRow, SlurmNode, fair_tree

# ---- reading documents

DEEPEST = 100  # levels of a tree
LARGEST = 1e100  # figure that is taken: sums and products stay finite
MODES = {
    "target": TargetMode.PLAIN,
    "plain": TargetMode.PLAIN,
    "floor": TargetMode.FLOOR,
    "ceiling": TargetMode.CEILING,
}
MODES |= {"cap": TargetMode.CAP, "hard_cap": TargetMode.HARD_CAP}


def flux_tree_of(document: object, depth: int = 0) -> FluxNode:
    """A tree of {name, kind: account|user, shares, usage, children}. Raises InvalidInputError naming the field.

    >>> flux_tree_of({"name": "root", "kind": "account", "children": [{"name": "ann", "usage": 3}]}).children[0].usage
    3.0
    """
    name, fields = _vertex(document, depth)
    children = tuple(flux_tree_of(child, depth + 1) for child in _list(f"{name}.children", fields.get("children", ())))
    kind = fields.get("kind", "account" if "children" in fields or depth == 0 else "user")
    if kind not in ("account", "user"):
        raise InvalidInputError(f"{name}.kind", "account or user", kind)
    usage = fields.get("usage")
    shares = _number(f"{name}.shares", fields.get("shares", 1.0))
    return FluxNode(name, shares, None if usage is None else _number(f"{name}.usage", usage), children, kind == "user")


def slurm_tree_of(document: object, depth: int = 0) -> SlurmNode:
    """A tree of {name, shares, usage, children}; only users' usage counts where there are children."""
    name, fields = _vertex(document, depth)
    children = tuple(slurm_tree_of(child, depth + 1) for child in _list(f"{name}.children", fields.get("children", ())))
    usage = 0.0 if children else _number(f"{name}.usage", fields.get("usage") or 0.0)
    return SlurmNode(name, _number(f"{name}.shares", fields.get("shares", 1.0)), usage, children)


def pbs_tree_of(document: object) -> tuple[PbsNode, ...]:
    """The vertices below the root: {root_children: [{name, shares, usage, children}]}, or a tree with a root."""
    _, fields = _vertex(document, 0, "root")
    below = fields.get("root_children", fields.get("children", ()))
    return tuple(_pbs_node(child, 1) for child in _list("root_children", below))


def _pbs_node(document: object, depth: int) -> PbsNode:
    name, fields = _vertex(document, depth)
    children = tuple(_pbs_node(child, depth + 1) for child in _list(f"{name}.children", fields.get("children", ())))
    usage = fields.get("usage")
    shares = _number(f"{name}.shares", fields.get("shares", 1.0))
    return PbsNode(name, shares, None if usage is None else _number(f"{name}.usage", usage), children)


def associations_of(document: object) -> list[Association]:
    """Rows of {id, parent, account, user, shares: a number or "parent", usage_own}."""
    rows = list[Association]()
    for number, row in enumerate(_list("associations", document)):
        where = f"associations[{number}]"
        fields = _mapping(where, row)
        shares = fields.get("shares", 1)
        if shares != PARENT:
            shares = _whole(_number(f"{where}.shares", shares))
        parent, user = fields.get("parent"), fields.get("user")
        rows.append(
            Association(
                str(fields.get("id", number)),
                None if parent is None else str(parent),
                str(fields.get("account", "")),
                None if user is None else str(user),
                shares if isinstance(shares, (int, float)) else PARENT,
                _number(f"{where}.usage_own", fields.get("usage_own") or 0.0),
            )
        )
    return rows


def maui_rows_of(document: object) -> list[Credential]:
    """Rows of {section, name, target, mode, windows}, newest window first."""
    rows = list[Credential]()
    for number, row in enumerate(_list("rows", document)):
        fields = _mapping(f"rows[{number}]", row)
        windows = _list(f"rows[{number}].windows", fields.get("windows", ()))
        rows.append(
            Credential(
                str(fields.get("section", "USER")),
                str(fields.get("name", "")),
                target_of(fields.get("target"), fields.get("mode")),
                tuple(_number(f"rows[{number}].windows", one) for one in windows),
            )
        )
    return rows


def target_of(amount: object, mode: object = None) -> Target | None:
    """A target given as a number with a mode's name, or as Maui writes it ("12.5+"). None: no target.

    >>> target_of(10.0, "floor"), target_of("10+"), target_of(None)
    (Target(amount=10.0, mode=<TargetMode.FLOOR: '+'>), Target(amount=10.0, mode=<TargetMode.FLOOR: '+'>), None)
    """
    if amount is None:
        return None
    if isinstance(amount, str):
        return parse_target(amount)
    return Target(_number("target", amount), TargetMode.PLAIN if mode is None else _mode_of(mode))


def _mode_of(mode: object) -> TargetMode:
    """A target's meaning by its name or by Maui's sign."""
    signs = {sign.value: sign for sign in TargetMode}
    if not isinstance(mode, str) or mode not in {**MODES, **signs}:
        raise InvalidInputError("mode", "one of " + ", ".join(MODES), mode)
    return {**signs, **MODES}[mode]


def number_of(where: str, value: object) -> float:
    """A number from 0 to 1e100. Raises InvalidInputError."""
    return _number(where, value)


def rows_of(where: str, document: object) -> list[Mapping[str, object]]:
    """A list of objects. Raises InvalidInputError."""
    return [_mapping(f"{where}[{number}]", row) for number, row in enumerate(_list(where, document))]


def numbers_of(where: str, document: object) -> list[float]:
    """A list of numbers."""
    return [_number(where, one) for one in _list(where, document)]


def _vertex(document: object, depth: int, default: str = "") -> tuple[str, Mapping[str, object]]:
    if depth > DEEPEST:
        raise InvalidInputError("tree", f"at most {DEEPEST} levels", depth)
    fields = _mapping("tree", document)
    name = fields.get("name", default)
    if not isinstance(name, str) or not (name or default):
        raise InvalidInputError("tree.name", "a name", name)
    return name, fields


def _mapping(where: str, document: object) -> Mapping[str, object]:
    if not isinstance(document, Mapping):
        raise InvalidInputError(where, "an object", document)
    return document


def _list(where: str, document: object) -> Sequence[object]:
    if isinstance(document, (str, bytes)) or not isinstance(document, Iterable) or isinstance(document, Mapping):
        raise InvalidInputError(where, "a list", document)
    return list(document)


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
    """The system's table for a document in its form. Raises InvalidInputError naming what is wrong.

    flux: a tree of {name, kind, shares, usage, children}. slurm: {associations} for Fair Tree, else a tree {name,
    shares, usage, children} for the classic form, with `dampening`. pbs: {root_children, min_usage}. maui: {decay,
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
    shares = flux.fair_shares(flux_tree_of(document.get("tree", document)))
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
    damping = number_of("dampening", document.get("dampening", 1.0))
    classic = slurm.classic(slurm_tree_of(document.get("tree", document)), damping=damping)
    columns = ("name", "norm_shares", "norm_usage", "effective_usage", "fairshare")
    return EmulatedTable(
        columns, tuple((name, *(f"{one:.6f}" for one in astuple(row))) for name, row in classic.items())
    )


def _pbs(document: Mapping[str, object]) -> EmulatedTable:
    tree = document.get("tree", document)
    top = pbs_tree_of(tree)
    least = tree.get("min_usage", pbs.MIN_USAGE) if isinstance(tree, Mapping) else pbs.MIN_USAGE
    shares = pbs.fair_shares(top, min_usage=number_of("min_usage", least))
    columns = ("name", "fairshare_perc", "fairshare_tree_usage", "fairshare_factor")
    return EmulatedTable(
        columns, tuple((name, *(f"{one:.4f}" for one in astuple(share))) for name, share in shares.items())
    )


def _maui(document: Mapping[str, object]) -> EmulatedTable:
    totals = numbers_of("total_per_window", document.get("total_per_window", ()))
    decay = number_of("decay", document.get("decay", 1.0))
    credentials = maui_rows_of(document.get("rows", ()))
    for number, one in enumerate(credentials):
        if len(one.windows) != len(totals):
            expected = f"{len(totals)} windows, one for each of total_per_window"
            raise InvalidInputError(f"rows[{number}].windows", expected, len(one.windows))
    found = maui.fair_share_table(credentials, totals, decay=decay)
    rows = []
    for one in credentials:
        target = "-------" if one.target is None else f"{one.target.amount:.2f}{one.target.mode}"
        standing = found[one.key]
        windows = (f"{percent:.2f}" for percent in one.windows)
        rows.append(
            (one.section, one.name + ("*" if standing.starred else ""), f"{standing.percent:.2f}", target, *windows)
        )
    return EmulatedTable(
        ("section", "name", "percent", "target", *(str(age) for age in range(len(totals)))), tuple(rows)
    )


def _nci(document: Mapping[str, object]) -> EmulatedTable:
    """Jobs in order of the work their owners hold in front of them."""
    jobs = rows_of("jobs", document.get("jobs", ()))
    owners = {str(job.get("owner", "")): number for number, job in reversed(list(enumerate(jobs)))}
    claims = [
        Claim(
            BatchId(place),
            owners[str(job.get("owner", ""))],
            int(number_of(f"jobs[{place}].tier", job.get("tier", 1))),
            number_of(f"jobs[{place}].cpus", job.get("cpus", 1)),
            1,
            Instant(place),
            int(number_of(f"jobs[{place}].bypassed", job.get("bypassed", 0))),
        )
        for place, job in enumerate(jobs)
    ]
    held = document.get("held", {})
    if not isinstance(held, Mapping):
        raise InvalidInputError("held", "an object of CPUs by owner", held)
    standing = {owners[name]: number_of(f"held.{name}", cpus) for name, cpus in held.items() if name in owners}
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
