"""The manual, the dashboard and the alert rules refer to existing metrics."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from runtime.metrics.catalogue import BY_NAME, METRICS, Metric, MetricKind

ROOT = Path(__file__).parents[4]
DASHBOARD = ROOT / "deploy/grafana/muster.json"
RULES = ROOT / "deploy/prometheus/muster.rules.yml"
SCRAPED = {"instance", "job", "le"}  # labels added by Prometheus


def row_of(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.shown_labels) or "-"
    across = {"sum": "sum", "most": "largest", "each": "each its own"}[metric.across.value]
    return f"| `{metric.name}` | {metric.kind.value} | {labels} | {across} | {metric.meaning} |"


def expressions() -> list[tuple[str, str]]:
    """Return the expressions of the dashboard and the rules, with their titles."""
    dashboard = json.loads(DASHBOARD.read_text())
    panels = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())]
    rules = [(rule["alert"], rule["expr"]) for group in alert_groups() for rule in group["rules"]]
    return panels + rules


def alert_groups() -> list[dict[str, Any]]:
    yaml: Any = importlib.import_module("yaml")  # installed with the linters
    found: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
    return found


def metric_named(name: str) -> Metric | None:
    if name in BY_NAME:
        return BY_NAME[name]
    whole = BY_NAME.get(re.sub(r"_(bucket|sum|count)$", "", name))
    return whole if whole is not None and whole.kind is MetricKind.HISTOGRAM else None


def test_the_manual_has_every_metric_and_no_other() -> None:
    manual = (ROOT / "docs/metrics.md").read_text()

    rows = [line for line in manual.splitlines() if line.startswith("| `muster_")]

    assert rows == [row_of(metric) for metric in METRICS]


@pytest.mark.parametrize(("where", "expression"), expressions())
def test_every_metric_that_is_asked_for_exists_with_its_labels(where: str, expression: str) -> None:
    names = re.findall(r"\bmuster_\w+", expression)
    metrics = [metric_named(name) for name in names]

    assert names
    assert None not in metrics, names
    known = SCRAPED.union(*(metric.shown_labels for metric in metrics if metric is not None))
    grouped = re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expression)
    asked = {label.strip() for group in grouped for label in group.split(",") if label.strip()}
    asked |= set(re.findall(r"[{,]\s*(\w+)\s*(?:=|!=)", " ".join(re.findall(r"\{[^}]*\}", expression))))
    assert asked <= known, where


def test_an_alert_says_how_bad_it_is_and_what_to_do() -> None:
    rules = [rule for group in alert_groups() for rule in group["rules"]]

    assert len({rule["alert"] for rule in rules}) == len(rules) >= 10
    for rule in rules:
        assert rule["labels"]["severity"] in {"page", "warn"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert re.fullmatch(r"\d+[mh]", rule["for"])


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels) >= 15
    assert {panel["datasource"]["uid"] for panel in panels if panel["type"] != "row"} == {"${datasource}"}
    assert [variable["name"] for variable in dashboard["templating"]["list"]] == ["datasource", "instance"]
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
