"""Finds further errors in the description of a batch, so that its author can correct all in one go. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from domain.batches import QoS
from domain.bounds import BOUNDS
from domain.errors import InvalidInputError

MOST_FLAWS = 10  # errors reported together
MOST_TABLES = 1000  # [[job]] tables of a batch that is parsed again for each error
_PATH = re.compile(r"[\w-]+(\[[0-9]{1,6}\])?(\.[\w-]+(\[[0-9]{1,6}\])?)*")
_STEP = re.compile(r"([\w-]+)|\[([0-9]+)\]")


def with_others(
    first: InvalidInputError, values: Mapping[str, object], parse: Callable[[Mapping[str, object]], object]
) -> InvalidInputError:
    """Return the first error with the others that `parse` raises once each earlier one is corrected.

    A wrong value is left out or, if it is required, replaced by one that fits to the rest. An error that remains then,
    or is about the table around it, ends the search: what follows from it says nothing about the file. A batch of more
    than MOST_TABLES tables is not searched.
    """
    tables = values.get("job")
    if isinstance(tables, list) and len(tables) > MOST_TABLES:
        return first
    corrected: dict[str, Any] = copy.deepcopy(dict(values))
    found = [first]
    while len(found) < MOST_FLAWS and _corrected(corrected, found[-1].field):
        try:
            parse(corrected)
            break
        except InvalidInputError as error:
            around = f"{error.field}.", f"{error.field}["
            if any(one.field == error.field or one.field.startswith(around) for one in found):
                break
            found.append(error)
    first.others = tuple(found[1:])
    return first


def _corrected(values: dict[str, Any], field: str) -> bool:
    """Leave a field out or replace it; return whether that is possible: not without jobs.

    >>> values = {"qos": "soon", "deadline_s": 60.0, "job": [{"cuont": 1}, {"count": 0}]}
    >>> [_corrected(values, field) for field in ("qos", "job[0].cuont", "job[1].count", "job[7].count")], values
    ([True, True, True, False], {'qos': 'short_deadline', 'deadline_s': 60.0, 'job': [{}, {'count': 1}]})
    """
    if field in ("jobs", "job", "jobs_csv") or not _PATH.fullmatch(field):
        return False
    *steps, last = [name or int(place) for name, place in _STEP.findall(field)]
    if steps == ["jobs"]:
        values.setdefault("jobs", {})
    table: Any = values
    for step in steps:
        try:
            table = table[step]
        except (LookupError, TypeError):
            return False
    if not isinstance(table, dict):
        return False
    required = {
        "app": "app",
        "submitter": "submitter",
        "qos": (QoS.SHORT_DEADLINE if "deadline_s" in values else QoS.THROUGHPUT).value,
        "deadline_s": BOUNDS["deadline_s"].low if values.get("qos") == QoS.SHORT_DEADLINE else None,
        "fpops_est": BOUNDS["fpops_est"].low,
        "kind": "tolerance" if "tolerance" in table else None,
        "count": None if steps == ["jobs"] and ("jobs_csv" in values or "job" in values) else 1,
    }
    value = required.get(str(last))
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value
    return True
