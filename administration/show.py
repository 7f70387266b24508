"""Builds replies from domain objects. The API, the command line and the console use the same keys."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from enum import Enum
from typing import Any, NotRequired, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from batch_estimator.publish import Forecast
from domain.apps import App
from domain.batches import Account, Submitter
from domain.catalogue import Catalogue
from domain.forecasts import ForecastRecord, Method
from domain.ranking import HostStatisticsRun
from domain.settings import Settings, meaning_of
from domain.views import JobRow, SettingChange
from muster_client import shapes

Shape = TypeVar("Shape")


def shown(shape: type[Shape], *sources: object, **more: Any) -> Shape:
    """Return a reply of the given shape. Each key comes from `more`, or from the first source with such an attribute.

    Nested shapes, single or in sequences, are built in the same way. Raises AttributeError if no source has a required
    key.

    >>> from pathlib import Path
    >>> shown(shapes.UploadShown, Path("a/b"), nbytes=3, md5="d1")
    {'name': 'b', 'nbytes': 3, 'md5': 'd1'}
    """
    made: dict[str, Any] = {}
    for key, inner, needed in _keys(shape):  # type: ignore[arg-type]  # classes are hashable
        if key in more:
            made[key] = more[key]
            continue
        source = next((one for one in sources if hasattr(one, key)), None)
        if source is not None:
            made[key] = _inside(inner, getattr(source, key))
        elif needed:
            raise AttributeError(f"{shape.__name__}: no source has {key}")
    return made  # type: ignore[return-value]  # a TypedDict is a dict of its keys


@functools.cache
def _keys(shape: Any) -> Sequence[tuple[str, Any, bool]]:
    """Return the keys of a shape: for each one, its nested shape or None, and whether it is required."""
    found = []
    for key, hint in get_type_hints(shape, include_extras=True).items():
        needed = get_origin(hint) is not NotRequired
        parts = (hint, *get_args(hint))
        found.append((key, next((one for one in parts if is_typeddict(one)), None), needed))
    return found


def _inside(inner: type | None, value: Any) -> Any:
    if inner is None:
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Sequence):
        return [_inside(inner, one) for one in value]
    return value if value is None or isinstance(value, dict) else shown(inner, value)


def job_as_json(job: JobRow) -> shapes.JobShown:
    """Return a job with its instances."""
    return shown(shapes.JobShown, job)


def account_as_json(account: Account, names: dict[int, str]) -> shapes.AccountShown:
    parent = names.get(account.parent_id) if account.parent_id is not None else None
    return shown(shapes.AccountShown, account, parent=parent)


def submitter_as_json(submitter: Submitter, accounts: dict[int, str]) -> shapes.SubmitterShown:
    return shown(shapes.SubmitterShown, submitter, account=accounts[submitter.account_id])


def app_as_json(app: App, catalogue: Catalogue) -> shapes.AppShown:
    """Return an application with its current versions."""
    versions = [version.title for version in catalogue.current.get(app.app_id, ())]
    return shown(shapes.AppShown, app, versions=versions)


def run_as_json(run: HostStatisticsRun) -> shapes.RankingRunShown:
    """Return a run of the host statistics, with totals and the results per (app, processor type)."""
    return shown(shapes.RankingRunShown, run, seconds=round(run.seconds, 3))


def quantiles_as_json(made: ForecastRecord | Forecast) -> dict[str, object]:
    """Return q10, q50 and q90; null before the first results."""
    known = made.method is not Method.APRIORI
    return {name: getattr(made, name) if known else None for name in ("q10_at", "q50_at", "q90_at")}


def forecast_as_json(record: ForecastRecord) -> shapes.ForecastShown:
    """Return a forecast with its inputs and its effect on the published C(B)."""
    return shown(shapes.ForecastShown, record, **quantiles_as_json(record))


DEFAULTS = Settings().as_mapping()


def setting_as_json(key: str, value: object) -> shapes.SettingShown:
    """Return a setting with its value, default and meaning.

    >>> setting_as_json("deadline.p_tight", 0.8)["changed"]
    True
    """
    default = DEFAULTS[key]
    return {"key": key, "value": value, "default": default, "changed": value != default, "meaning": meaning_of(key)}


def change_as_json(change: SettingChange) -> shapes.SettingChangeShown:
    return {
        "changed_at": change.changed_at,
        "key": change.key,
        "from": change.from_value,
        "to": change.to_value,
        "by": change.changed_by,
        "why": change.why,
    }
