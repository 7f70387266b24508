"""Cases of fair-share trees, usage and windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from domain.errors import InvalidInputError
from priority.emulate import associations_of, flux_tree_of, maui_rows_of, pbs_tree_of, slurm_tree_of
from priority.standings import used_fraction
from priority.systems import (
    MIN_USAGE,
    PathShare,
    classic,
    fair_share_table,
    fair_tree,
    flux_shares,
    pbs_shares,
)
from tests.cases.comparing import Checked, same_text
from tests.cases.reference import flux as flux_usages
from tests.cases.reference import pbs as pbs_jobs
from tests.cases.reference.pbs import evaluate

Inputs = Mapping[str, Any]


def flux_tree(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    shares = flux_shares(flux_tree_of(inputs["tree"]))
    return {
        "order": _in_any_order_of_equals(shares.fairshare),
        "fairshare": dict(shares.fairshare),
        "account_weight": dict(shares.account_weight),
        "user_weight": dict(shares.user_weight),
    }


def flux_tree_set(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    answers: dict[str, dict[str, Any]] = {}
    for name, tree in inputs["trees"].items():
        try:
            found = flux_tree({"tree": tree}, {})
        except InvalidInputError as error:
            found = {"error": Checked(str(error), lambda _: True)}
        for figure, value in found.items():
            answers.setdefault(figure, {})[name] = value
    return answers


def _in_any_order_of_equals(numbers: Mapping[str, float]) -> Checked:
    """Sort best first; equal numbers may be in any order."""

    def accepts(expected: Any) -> bool:
        if not isinstance(expected, list) or not all(name in numbers for name in expected):
            return False
        found = [numbers[name] for name in expected]
        return found == sorted(found, reverse=True) and len(set(expected)) == len(expected)

    return Checked(sorted(numbers, key=lambda name: -numbers[name]), accepts)


def flux_usage(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    usage = flux_usages.usage_now(
        inputs.get("jobs", []), inputs.get("past_bins_newest_first", []), inputs.get("decay", flux_usages.DECAY)
    )
    return {
        "current": usage.current,
        "past_decayed": list(usage.past_decayed),
        "past": usage.past,
        "historical": usage.historical,
        "weighted": [flux_usages.job_usage(**job) for job in inputs.get("weighted", [])],
        "n_bins": [flux_usages.bins_of(**period) for period in inputs.get("periods", [])],
    }


ROLLS = {"new_jobs_same_period": False, "idle_period_rolls": True, "new_jobs_new_period": True}


def flux_usage_sequence(inputs: Inputs, expected: Inputs) -> Mapping[str, Any]:
    sums = {}
    for one in inputs.get("sequences", []):
        steps = [(ROLLS[step["op"]], flux_usages.usage_of(step.get("jobs", []))) for step in one["steps"]]
        sums[one["id"]] = flux_usages.history(one["bins"], one["decay"], steps)
    stated = expected.get("by_stated_formula", {})
    # The other product's own figures count some usage twice: where its documented rule differs, the rule is compared.
    return {
        "historical_after_each_step": sums | {name: Checked(None, lambda _: True) for name in stated},
        "by_stated_formula": sums,
        "weighted": [flux_usages.job_usage(**job) for job in inputs.get("weighted", [])],
    }


def slurm_fair_tree(inputs: Inputs, expected: Inputs) -> Mapping[str, Any]:
    rows = {(row.account, row.user): row for row in fair_tree(associations_of(inputs["associations"]))}
    also = {(row["account"], row.get("user")): row for row in expected.get("accept_also", [])}

    def unlike(row: Inputs) -> list[str]:
        key = (row["account"], row.get("user"))
        computed = rows.get(key)
        if computed is None:
            return [f"{key}: none"]
        second = also.get(key, {})
        return [
            f"{key} {name}: {getattr(computed, name, None)!r}"
            for name, value in row.items()
            if not _printed(value, getattr(computed, name, None))
            and not (name in second and _printed(second[name], getattr(computed, name, None)))
        ]

    wrong = [said for row in expected.get("rows", []) for said in unlike(row)]
    return {"rows": Checked(wrong, lambda _: not wrong), "accept_also": Checked([], lambda _: True)}


def _printed(expected: Any, computed: Any) -> bool:
    return same_text(expected, computed, 1e-6)


def slurm_classic(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    rows = classic(slurm_tree_of(inputs["tree"]), damping=inputs.get("dampening", 1.0))
    fields = ("norm_shares", "norm_usage", "effective_usage", "fairshare")
    users = {name: {field: getattr(row, field) for field in fields} for name, row in rows.items()}
    return {
        "users": users,
        "accounts": users,
        "order": _in_any_order_of_equals({name: row.fairshare for name, row in rows.items()}),
    }


PBS_FIGURES = {
    "fairshare_perc": "norm_shares",
    "fairshare_tree_usage": "effective_usage",
    "fairshare_factor": "fairshare",
}


def pbs(inputs: Inputs, expected: Inputs) -> Mapping[str, Any]:
    tree = inputs.get("tree", {})
    least = tree.get("min_usage", inputs.get("min_usage", MIN_USAGE))
    top = pbs_tree_of(tree)
    shares = pbs_shares(top, min_usage=least)
    factors = {name: share.fairshare for name, share in shares.items()}
    answers: dict[str, Any] = {
        figure: {name: getattr(share, field) for name, share in shares.items()} for figure, field in PBS_FIGURES.items()
    }
    for key in expected:
        if key == "order" or key.startswith("factor_order"):
            submitted = _names_in(key.partition("submitted_")[2], factors) or pbs_jobs.users(top)
            answers[key] = pbs_jobs.in_order((name, factors[name]) for name in submitted)
    mixed = {job["id"]: _mixed(job, inputs["mixed_formula"], shares) for job in inputs.get("mixed_jobs", [])}
    answers |= {"mixed": mixed, "mixed_order": pbs_jobs.in_order(mixed.items())}
    if "decay_floor" in expected:
        usage = expected["decay_floor"]["usage"]
        factor = inputs.get("fairshare_decay_factor", pbs_jobs.DECAY_FACTOR)
        answers["decay_floor"] = {
            "usage": usage,
            "after_decay": pbs_jobs.decayed(usage, factor=factor, min_usage=least),
        }
    return answers


def _mixed(job: Inputs, formula: str, shares: Mapping[str, PathShare]) -> float:
    share = shares[job["user"]]
    numbers = {name.removesuffix("_s"): value for name, value in job.items() if isinstance(value, (int, float))}
    figures = {figure: getattr(share, field) for figure, field in PBS_FIGURES.items()}
    return evaluate(formula, numbers | figures)


def _names_in(joined: str, known: Iterable[str]) -> list[str]:
    """Return the known names that a key joins with underscores, which names may contain themselves."""
    names = list[str]()
    longest_first = sorted(known, key=len, reverse=True)
    while joined:
        name = next((one for one in longest_first if joined == one or joined.startswith(one + "_")), None)
        if name is None:
            return []
        names.append(name)
        joined = joined[len(name) + 1 :]
    return names


def maui_fs_usage(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    used, total = inputs["user"], inputs["total"]
    return {"fraction": used_fraction(used, total, decay=inputs["fsdecay"], depth=inputs.get("fsdepth"))}


def mdiag_f(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    found: dict[str, tuple[float, bool]] = {}
    for table in inputs.get("sets", [inputs]):
        totals: Sequence[float] = table["total_per_window"]
        found |= fair_share_table(maui_rows_of(table["rows"]), totals, decay=inputs["decay"])
    return {
        "percent": {key: percent for key, (percent, _) in found.items()},
        "starred": [key for key, (_, starred) in found.items() if starred],
    }
