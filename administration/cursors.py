"""Converts list positions to cursors, for page links and the API, and back. Pure."""

from __future__ import annotations

from dataclasses import astuple
from math import inf
from sys import float_info
from typing import Any, TypeVar

from domain.errors import InvalidInputError
from domain.host_lists import HostPlace
from domain.views import BatchPlace, InstancePlace
from domain.volunteers import ResultPlace

Place = TypeVar("Place", ResultPlace, InstancePlace, HostPlace, BatchPlace)

_ID = (1, 2**62 - 1)
_SMALL_ID = (1, 2**31 - 1)
_FINITE = (-float_info.max, float_info.max)
_RANGES: dict[type[Any], tuple[tuple[Any, Any], ...]] = {  # of the fields in order; integer fields have integer bounds
    ResultPlace: (_FINITE, _ID),
    InstancePlace: ((0, 2**15 - 1), _ID),
    HostPlace: (_SMALL_ID, _FINITE, (0, 2**31 - 1)),
    BatchPlace: (_ID, (-inf, inf), (-inf, inf)),
}


def place_of(kind: type[Place], text: str) -> Place | None:
    """Return the position given by the query parameter `after`, None for the first page. Raises InvalidInputError.

    >>> place_of(HostPlace, "7~0.5~3"), place_of(InstancePlace, "")
    (HostPlace(host_id=7, key=0.5, second=3), None)
    """
    if not text:
        return None
    try:
        values = [_read(one, *bounds) for one, bounds in zip(text.split("~"), _RANGES[kind], strict=True)]
    except ValueError:
        raise InvalidInputError("after", "the cursor in the link to the next page", text) from None
    return kind(*values)


def cursor_of(place: ResultPlace | InstancePlace | HostPlace | BatchPlace) -> str:
    """Return the cursor of a position.

    >>> cursor_of(HostPlace(7, 0.5, 3))
    '7~0.5~3'
    """
    return "~".join(repr(value) for value in astuple(place))


def _read(text: str, low: Any, high: Any) -> Any:  # Any: an integer or a float, like its bounds
    value = type(low)(text)
    if not low <= value <= high:
        raise ValueError
    return value
