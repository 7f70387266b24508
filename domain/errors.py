"""Exceptions of the project. A class's docstring is its default message."""

from __future__ import annotations

import copyreg
from enum import Enum


class MusterError(Exception):
    """Something went wrong."""

    def __str__(self) -> str:
        return super().__str__() or (type(self).__doc__ or "").strip()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the state without calling __init__, whose arguments differ."""
        made = copyreg.__newobj__  # type: ignore[attr-defined]  # typeshed lacks it
        return made, (type(self), *self.args), self.__dict__


class InvalidInputError(MusterError):
    """Invalid input. `field` names it; `expected` and `got` give the expectation and the value.

    `choose`: the user of a form made no choice; `expected` says of what. `others`: further errors found with it.

    >>> str(InvalidInputError("jobs.count", "a whole number from 1 to 1000000", -5))
    'jobs.count: expected a whole number from 1 to 1000000, got -5'
    """

    def __init__(self, field: str, expected: str, got: object, *, choose: bool = False) -> None:
        self.field = field
        self.choose = choose
        self.others: tuple[InvalidInputError, ...] = ()
        self.expected = expected
        self.got = got
        shown = repr(got.value if isinstance(got, Enum) else got)
        if len(shown) > 200:
            shown = shown[:197] + "..."
        super().__init__(f"{field}: expected {expected}, got {'no value' if got is None else shown}")


class NotFoundError(MusterError):
    """The requested object does not exist.

    >>> str(NotFoundError("batch", 7))
    'no batch 7'
    """

    def __init__(self, kind: str, key: object) -> None:
        self.kind = kind
        self.key = key
        super().__init__(f"no {kind} {key}")


class AlreadyExistsError(MusterError):
    """An object of that name already exists.

    >>> str(AlreadyExistsError("app", "pi"))
    "app 'pi' already exists"
    """

    def __init__(self, kind: str, key: object) -> None:
        self.kind = kind
        self.key = key
        super().__init__(f"{kind} {key!r} already exists")


class ConflictError(MusterError):
    """The state has changed or does not allow the operation."""


class IllegalTransitionError(MusterError):
    """The life cycle has no such step."""


class TooManyHostsError(MusterError):
    """No more new computers are accepted today. The message is for the volunteer."""


class UnavailableError(MusterError):
    """The database or the node is unavailable; nothing was written. Try again later."""
