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
_STEP = re.compile(r"([\w-]+)|\[(\d+)\]")


def with_others(
    first: InvalidInputError, values: Mapping[str, object], parse: Callable[[Mapping[str, object]], object]
) -> InvalidInputError:
    """Return the first error with the others that `parse` raises once each earlier one is corrected.

    A wrong value is left out or, if it is required, replaced by one that fits to the rest. An error that remains then
    ends the search: what follows from it says nothing about the file.
    """
    corrected: dict[str, Any] = copy.deepcopy(dict(values))
    found = [first]
    while len(found) < MOST_FLAWS and _corrected(corrected, found[-1].field):
        try:
            parse(corrected)
            break
        except InvalidInputError as error:
            if error.field in {one.field for one in found}:
                break
            found.append(error)
    first.others = tuple(found[1:])
    return first


def _corrected(values: dict[str, Any], field: str) -> bool:
    """Leave a field out or replace it; return whether there was a place for it.

    >>> values = {"qos": "soon", "deadline_s": 60.0, "job": [{"cuont": 1}, {"count": 0}]}
    >>> [_corrected(values, field) for field in ("qos", "job[0].cuont", "job[1].count", "job[7].count")], values
    ([True, True, True, False], {'qos': 'short_deadline', 'deadline_s': 60.0, 'job': [{}, {'count': 1}]})
    """
    *steps, last = [name or int(place) for name, place in _STEP.findall(field)] or [""]
    table: Any = values
    for step in steps:
        if step == "jobs":
            table.setdefault(step, {})
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
        "count": None if steps == ["jobs"] and ("jobs_csv" in values or "job" in values) else 1,
    }
    value = required.get(str(last))
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value
    return True
