"""Which tree does a JSON document describe? Reads trees as other systems' sites write them down. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from domain.errors import InvalidInputError
from priority.systems.fair_tree import PARENT, Association
from priority.systems.flux import FluxNode
from priority.systems.maui import Credential
from priority.systems.pbs import PbsNode
from priority.systems.slurm import SlurmNode
from priority.targets import Target, TargetMode, parse_target

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
