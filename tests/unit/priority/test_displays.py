"""Priorities as displayed."""

from __future__ import annotations

import json

import pytest

from domain.errors import InvalidInputError
from domain.ordered_work import LeafStanding
from domain.ordering import BatchFacts, QueueClock
from domain.ordering_settings import OrderingSettings
from domain.units import AccountId, BatchId, Instant, Seconds, SubmitterId
from priority.displays import Format, figure, printed, shown, sprio_weights, verbose
from priority.emulate import SYSTEMS, emulate
from priority.order import BatchOrder
from priority.policies import policy_of
from priority.scheme import PolicyContext
from tests.facts import states

LEAF = (SubmitterId(1), AccountId(1))
MOMENT = PolicyContext(Instant(1_000.0), {LEAF: LeafStanding(0.453217, 1.0, user_delta=-3.337)})


def breakdowns(policy: str = "multifactor", **settings: object):  # type: ignore[no-untyped-def]  # list[Breakdown]
    batches = [
        BatchFacts(BatchId(n), *LEAF, Instant(0.0), user_priority=-37 * n, clock=QueueClock(Seconds(1234.567 * n)))
        for n in (1, 2, 3)
    ]
    order = BatchOrder(policy_of(OrderingSettings(policy=policy, **settings)), batches, MOMENT)  # type: ignore[arg-type]
    return [order.breakdown(place.batch_id) for place in order.places]


@pytest.mark.parametrize("layout", [Format.TABLE, Format.SPRIO])
def test_printed_parts_sum_to_the_printed_total(layout: Format) -> None:
    heading, *rows = shown(breakdowns(), layout)
    for row in rows:
        parts = [
            cell
            for name, cell in zip(heading, row, strict=True)
            if name.lower() in {"wait", "user", "level", "queue", "fairshare"}
        ]
        [total] = [cell for name, cell in zip(heading, row, strict=True) if name in {"total", "PRIORITY"}]
        assert sum(round(float(cell) * 100) for cell in parts) == round(float(total) * 100)


def test_mdiag_components_add_up_and_percentages_are_absolute() -> None:
    weights = "QUEUETIMEWEIGHT=1 USERPRIOWEIGHT=0.3 FSUSERWEIGHT=1.7"
    heading, of_weights, *rows, foot = shown(breakdowns("components", components=weights), Format.MDIAG)

    assert heading == ["batch", "priority", "SERVICE(QUEUETIME:USERPRIO)", "FS(FSUSER)"]
    assert of_weights == ["Weights", "", "(1:0.3)", "(1.7)"]
    for row in rows:
        assert sum(int(cell.split()[0]) for cell in row[2:]) == int(row[1])
        for cell in row[2:]:
            assert sum(map(int, cell.split("(")[1].strip(")").split(":"))) == int(cell.split()[0])
        assert all(float(cell.split()[1].split("%")[0]) >= 0.0 for cell in row[2:])
    assert foot[0] == "Percent Contribution"


def test_terms_without_weight_are_hidden() -> None:
    assert "size" not in shown(breakdowns(), Format.TABLE)[0]
    assert "size" in shown(breakdowns(size_weight=1.0), Format.TABLE)[0]


def test_verbose_has_formula_numbers_products_and_result() -> None:
    lines = verbose(breakdowns()[0]).splitlines()

    assert lines[1].startswith("  priority = wait * wait_weight + level * level_weight")
    assert "0.5 * 100000" in lines[2]
    assert lines[3].count(" + ") + lines[3].count(" - ") == 4
    assert float(lines[4].split("= ")[1]) == pytest.approx(breakdowns()[0].total, abs=0.005)


def test_a_total_below_its_bound_says_both() -> None:
    [first, *_] = breakdowns(level_weight=0.0, fairshare_weight=0.0, wait_weight=0.0)

    assert first.total < 0.0
    assert first.result == 0.0
    assert "-> 0 (at least 0)" in verbose(first)


def test_the_stored_record_is_json_and_adds_up() -> None:
    record = json.loads(json.dumps(breakdowns()[0].as_record()))

    assert record["policy"] == "multifactor"
    assert sum(one["points"] for one in record["components"]) == pytest.approx(record["total"])
    assert {"name", "raw", "unit", "value", "cap", "weight", "points", "note"} <= set(record["components"][0])


def test_large_figures_are_not_cut_off() -> None:
    assert figure(100000.0) == "100000"
    assert figure(4294967295.0) == "4294967295"


def test_weights_are_those_the_priorities_were_made_with() -> None:
    heading, row = sprio_weights(breakdowns(wait_weight=123.0))

    assert dict(zip(heading, row, strict=True))["WAIT"] == "123"


@pytest.mark.parametrize("system", sorted(SYSTEMS))
@pytest.mark.parametrize(
    "document", [None, [], 3, {"tree": 3}, {"root_children": 1, "rows": 2, "jobs": 3, "children": 4}]
)
def test_a_document_that_is_no_tree_is_refused_by_field(system: str, document: object) -> None:
    if system == "maui" and isinstance(document, dict):
        document = {"rows": 2}
    with pytest.raises(InvalidInputError):
        emulate(system, document)


def test_an_unknown_system_names_those_there_are() -> None:
    with states(InvalidInputError, "flux", "slurm", "pbs", "maui", "nci", "'lsf'"):
        emulate("lsf", {})


def test_each_system_answers_in_its_own_columns() -> None:
    tree = {
        "name": "root",
        "children": [{"name": "ann", "shares": 1, "usage": 3}, {"name": "bob", "shares": 1, "usage": 1}],
    }
    rows = {"section": "USER", "name": "ann", "target": 10.0, "windows": [20.0]}

    assert emulate("slurm", tree).rows[0] == ("ann", "0.500000", "0.750000", "0.750000", "0.353553")
    assert emulate("pbs", tree).rows[0] == ("ann", "0.5000", "0.6000", "0.4353")
    assert emulate("maui", {"decay": 1, "total_per_window": [5], "rows": [rows]}).rows == (
        ("USER", "ann*", "20.00", "10.00", "20.00"),
    )
    jobs = [{"id": "a1", "owner": "ann"}, {"id": "a2", "owner": "ann"}, {"id": "b1", "owner": "bob"}]
    assert [job for job, _ in emulate("nci", {"jobs": jobs}).rows] == ["a1", "b1", "a2"]
    assert [job for job, _ in emulate("nci", {"jobs": jobs, "held": {"ann": 4}}).rows] == ["b1", "a1", "a2"]


def test_figures_beyond_a_doubles_precision_are_printed_at_once() -> None:
    parts, total = printed([1.7e23, 3.3e22 + 2e7, 0.25], 1.7e23 + (3.3e22 + 2e7) + 0.25)

    assert len(parts) == 3
    assert float(total) == pytest.approx(2.03e23)


def test_user_of_two_accounts_appears_twice_by_path() -> None:
    accounts = [
        {
            "name": name,
            "shares": shares,
            "children": [{"name": "ann", "usage": 5}, {"name": f"only-{name}", "usage": 1}],
        }
        for name, shares in (("a", 1), ("b", 3))
    ]
    tree = {"name": "root", "children": accounts}

    flux = {row[0]: row[1] for row in emulate("flux", tree).rows}
    classic = {row[0]: row[4] for row in emulate("slurm", tree).rows}
    pbs = {row[0]: row[3] for row in emulate("pbs", {"root_children": accounts}).rows}

    # Usage is equal in both accounts and b has three times the shares: all of b before all of a.
    assert flux == {"only-b": "1", "b/ann": "0.75", "only-a": "0.5", "a/ann": "0.25"}
    assert set(classic) == set(pbs) == {"a", "b", "a/ann", "b/ann", "only-a", "only-b"}
    assert float(classic["b/ann"]) > float(classic["a/ann"])


def test_two_children_of_one_account_with_one_name_are_refused() -> None:
    tree = {"name": "root", "children": [{"name": "ann"}, {"name": "ann"}]}
    for system in ("flux", "slurm", "pbs"):
        with pytest.raises(InvalidInputError, match=r"tree\.name: .*'ann'"):
            emulate(system, tree)


@pytest.mark.parametrize(
    ("system", "document", "field"),
    [
        ("flux", {"name": "root", "children": [{"name": "ann", "usage": 10**400}]}, "ann.usage"),
        ("flux", {"name": "root", "children": [{"name": "ann", "kind": ["user"]}]}, "ann.kind"),
        ("flux", {"name": "root", "children": [{"name": "ann", "shares": -1}]}, "ann.shares"),
        ("flux", {"name": "root", "children": []}, "tree"),
        ("slurm", {"associations": [{"id": "a"}, {"id": "a"}]}, "associations"),
        ("slurm", {"associations": [{"id": "a", "shares": "some"}]}, r"associations\[0\].shares"),
        ("pbs", {"root_children": [{"name": "ann", "usage": "3"}]}, "ann.usage"),
        ("maui", {"total_per_window": [1, 2], "rows": [{"name": "ann", "windows": [1]}]}, r"rows\[0\].windows"),
        ("maui", {"rows": [{"name": "ann", "target": 3, "mode": ["floor"]}]}, "mode"),
        ("maui", {}, "rows"),
        ("nci", {"jobs": [{"id": 1, "cpus": float("nan")}]}, r"jobs\[0\].cpus"),
        ("nci", {"jobs": []}, "jobs"),
    ],
)
def test_what_is_wrong_in_a_document_is_named(system: str, document: object, field: str) -> None:
    with pytest.raises(InvalidInputError, match=field):
        emulate(system, document)
