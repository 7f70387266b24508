"""Checks a message by the facts it states: field, numbers, names. Its wording may change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from web.moments import FIXED

E = TypeVar("E", bound=Exception)


def missing(message: str, *facts: object) -> list[str]:
    """Return the facts that do not occur in the message as whole words or numbers.

    Spaces at which no line breaks count as spaces.

    >>> missing("jobs.count: expected a whole number from 1 to 1000000, got -5", "jobs.count:", "1 to 1000000", -5)
    []
    >>> missing("jobs.count: expected a whole number from 1 to 1000000, got -5", "count:", "1 to 100", 5)
    ['count:', '1 to 100', '5']
    """
    told = message.replace(FIXED, " ")
    known = [str(fact).replace(FIXED, " ") for fact in facts]
    return [fact for fact in known if not re.search(rf"(?<![\w.-]){re.escape(fact)}(?!\.?\w)", told)]


@contextmanager
def states(error: type[E], *facts: object) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error whose message contains the facts."""
    with pytest.raises(error) as caught:
        yield caught
    lacking = missing(str(caught.value), *facts)
    assert not lacking, f"not in {str(caught.value)!r}: {lacking}"
