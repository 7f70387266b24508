"""What would another system's fair-share say of a tree given as JSON? Pure.

The dry run behind `muster fairshare emulate --system flux|slurm|pbs|maui|nci`: nothing is read or changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, fields
from types import MappingProxyType

from domain.errors import InvalidInputError
from domain.units import BatchId, Instant
from priority.displays import figure
from priority.equal_access import Claim, shuffled
from priority.systems import flux, maui, pbs, slurm
from priority.systems.fair_tree import FairTreeRow, fair_tree
from priority.systems.trees import (
    associations_of,
    flux_tree_of,
    maui_rows_of,
    number_of,
    numbers_of,
    pbs_tree_of,
    rows_of,
    slurm_tree_of,
)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows, as printed."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def emulate(system: str, document: object) -> Table:
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


def _flux(document: Mapping[str, object]) -> Table:
    shares = flux.fair_shares(flux_tree_of(document.get("tree", document)))
    best_first = sorted(shares.fairshare.items(), key=lambda one: -one[1])
    rows = ((name, figure(fairshare), figure(shares.user_weight[name])) for name, fairshare in best_first)
    return Table(("user", "fairshare", "weight"), tuple(rows))


def _slurm(document: Mapping[str, object]) -> Table:
    if "associations" in document:
        rows = fair_tree(associations_of(document["associations"]))
        columns = tuple(one.name for one in fields(FairTreeRow))
        return Table(columns, tuple(tuple("" if cell is None else cell for cell in astuple(row)) for row in rows))
    damping = number_of("dampening", document.get("dampening", 1.0))
    classic = slurm.classic(slurm_tree_of(document.get("tree", document)), damping=damping)
    columns = ("name", "norm_shares", "norm_usage", "effective_usage", "fairshare")
    return Table(columns, tuple((name, *(f"{one:.6f}" for one in astuple(row))) for name, row in classic.items()))


def _pbs(document: Mapping[str, object]) -> Table:
    tree = document.get("tree", document)
    top = pbs_tree_of(tree)
    least = tree.get("min_usage", pbs.MIN_USAGE) if isinstance(tree, Mapping) else pbs.MIN_USAGE
    shares = pbs.fair_shares(top, min_usage=number_of("min_usage", least))
    columns = ("name", "fairshare_perc", "fairshare_tree_usage", "fairshare_factor")
    return Table(columns, tuple((name, *(f"{one:.4f}" for one in astuple(share))) for name, share in shares.items()))


def _maui(document: Mapping[str, object]) -> Table:
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
    return Table(("section", "name", "percent", "target", *(str(age) for age in range(len(totals)))), tuple(rows))


def _nci(document: Mapping[str, object]) -> Table:
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
    return Table(("job", "owner"), tuple(rows))


NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "flux": "users below `children`",
        "slurm": "users below `children`, or `associations`",
        "pbs": "users in `root_children`",
        "maui": "credentials in `rows`",
        "nci": "jobs in `jobs`",
    }
)
SYSTEMS: Mapping[str, Callable[[Mapping[str, object]], Table]] = MappingProxyType(
    {"flux": _flux, "slurm": _slurm, "pbs": _pbs, "maui": _maui, "nci": _nci}
)
