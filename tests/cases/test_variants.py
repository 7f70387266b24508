"""Other inputs for every kind, computed by other means: degenerate trees, no usage, one user, ties, missing fields."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cases.runner import judged, main

DATA = Path(__file__).parent / "data"
SEEDS = range(25)
JUNK: list[Any] = [None, True, -1, 0, 1e308, 10**400, float("nan"), "", "x", [], {}, [[]], {"a": 1}, [None], "parent"]


def verdict(kind: str, inputs: Any, expected: Any, tolerance: float = 1e-9) -> str:
    case = {"id": "it", "kind": kind, "inputs": inputs, "expected": expected, "tolerance": tolerance}
    return judged(case, "it").line()


# ---------------------------------------------------------------------- windows and displays


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_of_windows(seed: int) -> None:
    chance = random.Random(seed)
    depth = chance.choice([1, 2, 7])
    totals = [chance.choice([0.0, round(chance.uniform(1, 500), 1)]) for _ in range(depth)]
    decay = chance.choice([0.0, 0.3, 1.0])
    rows: list[dict[str, Any]] = [
        {
            "section": "USER",
            "name": f"u{n}",
            "target": chance.choice([None, 10.0]),
            "windows": [round(chance.uniform(0, 100), 2) for _ in totals],
        }
        for n in range(3)
    ]
    whole = sum(total * decay**n for n, total in enumerate(totals))
    percent = {
        f"USER/{row['name']}": round(
            sum(share * total * decay**n for n, (share, total) in enumerate(zip(row["windows"], totals, strict=True)))
            / whole,
            2,
        )
        if whole
        else 0.0
        for row in rows
    }
    off = {key: abs(percent[key] - 10.0) for key in percent}
    starred = [f"USER/{r['name']}" for r in rows if r["target"] is not None and off[f"USER/{r['name']}"] > 5.0]
    near = any(abs(one - 5.0) < 0.02 for one in off.values())
    inputs = {"decay": decay, "total_per_window": totals, "rows": rows}

    assert verdict("mdiag_f", inputs, {"percent": percent}, 0.011) == "pass it"
    assert near or verdict("mdiag_f", inputs, {"starred": starred}) == "pass it"
    assert verdict("mdiag_f", {"decay": decay, "sets": [inputs]}, {"percent": percent}, 0.011) == "pass it"


def test_exactly_five_points_off_is_no_star() -> None:
    row = {"section": "USER", "name": "ada", "target": 10.0, "windows": [15.0]}
    inputs = {"decay": 0.5, "total_per_window": [80.0], "rows": [row]}

    assert verdict("mdiag_f", inputs, {"percent": {"USER/ada": 15.0}, "starred": []}) == "pass it"


@pytest.mark.parametrize("seed", SEEDS)
def test_priorities_and_percentages_of_components(seed: int) -> None:
    chance = random.Random(seed)
    weights = {name: chance.randint(-3, 9) for name in ("Cred", "FS", "Serv")}
    rows, priority, percent = [], {}, {}
    for n in range(4):
        parts = {
            name: [chance.choice([0, chance.randint(-40, 90)]) for _ in range(chance.randint(0, 3))] for name in weights
        }
        rows.append({"job": f"j{n}", **parts})
        points = [weights[name] * sum(values) for name, values in parts.items()]
        whole = sum(map(abs, points))
        priority[f"j{n}"] = sum(points)
        percent[f"j{n}"] = [round(100 * abs(one) / whole, 1) if whole else 0.0 for one in points]
    inputs = {"tables": [{"component_weights": weights, "rows": rows}]}

    assert verdict("mdiag_p", inputs, {"priority": priority, "percent": percent}, 0.11) == "pass it"


def test_a_component_a_row_leaves_out_counts_nothing() -> None:
    table = {"component_weights": {"Cred": 2, "FS": 1, "Serv": 1}, "rows": [{"job": "a", "Cred": [5]}]}

    assert verdict("mdiag_p", {"tables": [table]}, {"priority": {"a": 10}, "percent": {"a": [100.0, 0.0, 0.0]}}) == (
        "pass it"
    )


def test_the_resource_part_of_a_priority_of_zero_is_zero() -> None:
    weights = {"queuetime_per_minute": 1, "xfactor": 1, "resource": 10, "proc": 3}
    jobs = [{"job": "a", "priority": 0, "procs": 4}, {"job": "b", "priority": 480, "procs": 4}]

    assert verdict("diagnose_p", {"weights": weights, "jobs": jobs}, {"resource_percent": {"a": 0.0, "b": 25.0}}) == (
        "pass it"
    )


# ---------------------------------------------------------------------- usage


@pytest.mark.parametrize("seed", SEEDS)
def test_usage_through_steps(seed: int) -> None:
    chance = random.Random(seed)
    decay = chance.choice([0.0, 0.25, 0.5, 1.0])
    bins = [chance.choice([0, chance.randint(1, 300)]) for _ in range(chance.randint(1, 5))]
    ages: list[float] = [*bins]
    steps, sums = [], []
    for _ in range(chance.randint(0, 6)):
        op = chance.choice(["new_jobs_same_period", "idle_period_rolls", "new_jobs_new_period"])
        jobs = [{"nnodes": chance.randint(0, 4), "elapsed_s": chance.randint(0, 99)} for _ in range(2)]
        step: dict[str, Any] = {"op": op} if op == "idle_period_rolls" else {"op": op, "jobs": jobs}
        steps.append(step)
        if op != "new_jobs_same_period":
            ages = [0.0, *(one * decay for one in ages[:-1])]
        if op != "idle_period_rolls":
            ages[0] += sum(job["nnodes"] * job["elapsed_s"] for job in jobs)
        sums.append(sum(ages))
    sequence = {"id": "s", "decay": decay, "bins": bins, "steps": steps}

    assert verdict("flux_usage_sequence", {"sequences": [sequence]}, {"by_stated_formula": {"s": sums}}, 1e-6) == (
        "pass it"
    )
    stated = {"historical_after_each_step": {"s": sums}}
    assert verdict("flux_usage_sequence", {"sequences": [sequence]}, stated, 1e-6) == "pass it"


def test_unknown_operation_fails_by_name() -> None:
    sequence = {"id": "s", "decay": 0.5, "bins": [1], "steps": [{"op": "forget"}]}

    assert "forget" in verdict("flux_usage_sequence", {"sequences": [sequence]}, {"by_stated_formula": {"s": [1]}})


# ---------------------------------------------------------------------- trees


def children(chance: random.Random, depth: int, name: str) -> dict[str, Any]:
    """Generate a random tree of accounts and users; shares and usage avoid accidental ties of weights."""
    vertex: dict[str, Any] = {"name": name, "shares": chance.choice([0, 1, 2, 7])}
    if depth == 0 or chance.random() < 0.3:
        return {**vertex, "usage": chance.choice([0, chance.randint(1, 10**6)])}
    below = [children(chance, depth - 1, f"{name}{n}") for n in range(chance.randint(1, 3))]
    return {**vertex, "children": below}


def used(vertex: dict[str, Any]) -> float:
    return sum(map(used, vertex["children"])) if "children" in vertex else float(vertex["usage"])


@pytest.mark.parametrize("seed", SEEDS)
def test_classic_fair_share_down_a_tree(seed: int) -> None:
    chance = random.Random(seed)
    tree = {"name": "root", "children": [children(chance, 2, f"n{n}") for n in range(3)]}
    whole, users = used(tree), {}

    def walk(vertex: dict[str, Any], share: float, effective: float, *, top: bool) -> None:
        siblings = sum(child["shares"] for child in vertex["children"])
        for child in vertex["children"]:
            own = child["shares"] / siblings if siblings else 0.0
            actual = used(child) / whole if whole else 0.0
            counted = actual if top else actual + (effective - actual) * own
            s = share * own
            factor = 2 ** (-counted / s) if s else 0.0
            users[child["name"]] = {"norm_shares": s, "effective_usage": counted, "fairshare": factor}
            if "children" in child:
                walk(child, s, counted, top=False)

    walk(tree, 1.0, 1.0, top=True)

    assert verdict("slurm_classic", {"tree": tree}, {"users": users}) == "pass it"


@pytest.mark.parametrize("seed", SEEDS)
def test_pbs_down_a_tree(seed: int) -> None:
    chance = random.Random(seed)
    least = chance.choice([1, 2.5])
    top = [children(chance, 1, f"n{n}") for n in range(3)]

    def clean(vertex: dict[str, Any]) -> None:
        for child in vertex.get("children", []):
            clean(child)
        if "usage" in vertex and not vertex["usage"]:
            vertex["usage"] = None  # never set

    def set_below(vertex: dict[str, Any]) -> float:
        return (vertex.get("usage") or 0) + sum(map(set_below, vertex.get("children", [])))

    def of(vertex: dict[str, Any]) -> float:
        own = vertex.get("usage")
        return (least if own is None else own) + sum(map(set_below, vertex.get("children", [])))

    for vertex in top:
        clean(vertex)
    whole, factors = least + sum(map(set_below, top)), {}

    def walk(siblings: list[dict[str, Any]], perc: float, above: float | None) -> None:
        shares = sum(one["shares"] for one in siblings)
        for one in siblings:
            own = one["shares"] / shares if shares else 0.0
            u = of(one) / whole
            tree_usage = u if above is None else u + (above - u) * own
            factors[one["name"]] = 2 ** (-tree_usage / (perc * own)) if perc * own else 0.0
            walk(one.get("children", []), perc * own, tree_usage)

    walk(top, 1.0, None)
    inputs = {"tree": {"root_children": top, "min_usage": least}}

    assert verdict("pbs_fairshare", inputs, {"fairshare_factor": factors}) == "pass it"


def test_equal_factors_keep_submission_order() -> None:
    users = [{"name": name, "shares": 1, "usage": 5} for name in ("a_b", "a", "b_c_d")]
    expected = {"factor_order_submitted_b_c_d_a_a_b": ["b_c_d", "a", "a_b"]}

    assert verdict("pbs_fairshare", {"tree": {"root_children": users}}, expected) == "pass it"


@pytest.mark.parametrize("seed", SEEDS)
def test_flux_orders_depth_first_by_weight(seed: int) -> None:
    chance = random.Random(seed)
    primes = iter([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37])
    accounts: list[dict[str, Any]] = [
        {
            "name": f"a{n}",
            "kind": "account",
            "shares": chance.randint(1, 5),
            "children": [
                {"name": f"u{n}{m}", "kind": "user", "shares": 1, "usage": next(primes) ** 3} for m in range(3)
            ],
        }
        for n in range(3)
    ]
    chance.shuffle(accounts)

    def weight(one: dict[str, Any], siblings: list[dict[str, Any]]) -> float:
        share: float = one["shares"] / sum(other["shares"] for other in siblings)
        return share / (used(one) / sum(map(used, siblings)))

    best_first = sorted(accounts, key=lambda one: -weight(one, accounts))
    order = [
        user["name"]
        for account in best_first
        for user in sorted(account["children"], key=lambda one: -weight(one, account["children"]))
    ]
    fairshare = {name: (9 - place) / 9 for place, name in enumerate(order)}

    tree = {"name": "root", "kind": "account", "children": accounts}
    assert verdict("flux_fairshare_tree", {"tree": tree}, {"order": order, "fairshare": fairshare}) == "pass it"


@pytest.mark.parametrize(
    ("vertex", "fairshare"),
    [
        ([{"name": "ann", "usage": 0}], {"ann": 1.0}),
        ([{"name": "ann", "usage": 5, "shares": 0}], {"ann": 1.0}),
        ([{"name": "ann"}, {"name": "bob"}], {"ann": 1.0, "bob": 1.0}),
        ([{"name": "ann", "shares": 0}, {"name": "bob", "usage": 1e9}], {"ann": 0.5, "bob": 1.0}),
        (
            [{"name": "ann", "usage": 3}, {"name": "bob", "usage": 3}, {"name": "cyd"}],
            {"cyd": 1, "ann": 2 / 3, "bob": 2 / 3},
        ),
    ],
)
def test_flux_trees_without_usage_or_shares_or_with_one_user(vertex: list[Any], fairshare: dict[str, Any]) -> None:
    tree = {"name": "root", "kind": "account", "children": vertex}

    assert verdict("flux_fairshare_tree", {"tree": tree}, {"fairshare": fairshare}) == "pass it"


def test_fair_tree_of_one_user_and_without_usage() -> None:
    root = {"id": "r", "parent": None, "account": "root"}
    alone = [root, {"id": "u", "parent": "r", "account": "root", "user": "ann", "shares": 3, "usage_own": 0}]
    row = {"account": "root", "user": "ann", "norm_shares": "1.000000", "level_fs": "inf", "fairshare": "1.000000"}
    assert verdict("slurm_fair_tree", {"associations": alone}, {"rows": [row]}) == "pass it"

    two = [*alone, {"id": "v", "parent": "r", "account": "root", "user": "bob", "shares": 1}]
    rows = [{**row, "norm_shares": "0.750000"}, {**row, "user": "bob", "norm_shares": "0.250000"}]
    assert verdict("slurm_fair_tree", {"associations": two}, {"rows": rows}) == "pass it"


@pytest.mark.parametrize("seed", SEEDS)
def test_fair_tree_levels(seed: int) -> None:
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = [{"id": "r", "parent": None, "account": "root", "user": None}]
    levels: list[tuple[str, str, float]] = []
    shares = [chance.randint(1, 9) for _ in range(4)]
    usage = [chance.randint(1, 10**5) for _ in range(4)]
    for n, (part, spent) in enumerate(zip(shares, usage, strict=True)):
        rows.append(
            {"id": f"u{n}", "parent": "r", "account": "root", "user": f"u{n}", "shares": part, "usage_own": spent}
        )
        levels.append(("root", f"u{n}", (part / sum(shares)) / (spent / sum(usage))))
    ranked = sorted(levels, key=lambda one: -one[2])
    expected = [
        {"account": "root", "user": user, "level_fs": f"{level:.6f}", "fairshare": f"{(4 - place) / 4:.6f}"}
        for place, (_, user, level) in enumerate(ranked)
    ]

    assert verdict("slurm_fair_tree", {"associations": rows}, {"rows": expected}) == "pass it"


# ---------------------------------------------------------------------- sums


def test_partitions_without_priority_and_memory_alone() -> None:
    inputs = {
        "partition": {"weight": 50, "priority": {"a": 0, "b": 0}},
        "tres_weights": {"mem_gib": 0.25},
        "jobs_sum": [[9, 8]],
        "jobs_max": [[9, 8], [1, 0]],
    }
    expected = {"normalised": {"a": 0, "b": 0}, "raw": {"a": 0, "b": 0}, "billed_sum": [2.0], "billed_max": [2.0, 0.0]}

    assert verdict("slurm_misc", inputs, expected) == "pass it"
    assert verdict("slurm_misc", {"jobs_sum": []}, {"billed_sum": []}) == "pass it"


@pytest.mark.parametrize("seed", SEEDS)
def test_backfill_never_delays_a_promise(seed: int) -> None:
    """Started jobs fit on the host, and the first that does not fit is promised its actual start."""
    chance = random.Random(seed)
    jobs = [{"id": n, "cores": chance.randint(1, 8), "limit_min": chance.randint(1, 60)} for n in range(1, 7)]
    free, started, ends = 8, [], []
    blocked: dict[str, Any] | None = None
    for job in jobs:
        if job["cores"] > free:
            blocked = job
            break
        free -= job["cores"]
        started.append(job["id"])
        ends.append((job["limit_min"], job["cores"]))
    if blocked is None:
        assert verdict("backfill_policy", {"cores": 8, "jobs": jobs}, {"started_first": started, "reserved": []}) == (
            "pass it"
        )
        return
    at, there = 0, free
    for end, cores in sorted(ends):
        if there >= blocked["cores"]:
            break
        at, there = end, there + cores
    expected = {"reserved": [blocked["id"]], "reserved_at_min": {str(blocked["id"]): at}}

    assert verdict("backfill_policy", {"cores": 8, "jobs": jobs}, expected) == "pass it"


# ---------------------------------------------------------------------- what is no case


def spoiled(value: Any, chance: random.Random) -> Any:
    """Return a copy with something removed or replaced."""
    if chance.random() < 0.08:
        return copy.deepcopy(chance.choice(JUNK))
    if isinstance(value, dict):
        return {key: spoiled(one, chance) for key, one in value.items() if chance.random() > 0.05}
    if isinstance(value, list):
        return [spoiled(one, chance) for one in value if chance.random() > 0.05]
    return value


@pytest.mark.parametrize("file", sorted(DATA.glob("*.json")), ids=lambda file: file.stem)
def test_a_spoiled_case_is_judged_in_one_line(file: Path) -> None:
    case = json.loads(file.read_text())
    chance = random.Random(file.stem)
    for _ in range(60):
        wrong = {**case, "inputs": spoiled(case["inputs"], chance)}
        line = judged(wrong, "it").line()
        assert line.split(" ")[0] in ("pass", "fail", "unsupported")


@pytest.mark.parametrize("kind", [None, [], {}, 3, "tea_leaves"])
def test_what_is_no_kind_is_unsupported(kind: object) -> None:
    assert judged({"id": "it", "kind": kind, "expected": {"a": 1}}, "it").word == "unsupported"


def test_a_file_nested_beyond_reason_fails_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)

    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith("fail deep")
