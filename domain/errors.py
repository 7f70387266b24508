"""The exceptions of the project. A class's docstring is its message where none is given."""

from __future__ import annotations

import copyreg


class MusterError(Exception):
    """Something went wrong."""

    def __str__(self) -> str:
        return super().__str__() or (type(self).__doc__ or "").strip()

    def __reduce__(self) -> tuple[object, ...]:
        """Copies of it are made without __init__, whose arguments differ: it crosses processes as it is."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InvalidInputError(MusterError):
    """Input is wrong. `field` names it; `expected` and `got` say what was wanted and what came.

    >>> str(InvalidInputError("jobs.count", "a whole number from 1 to 1000000", -5))
    'jobs.count: expected a whole number from 1 to 1000000, got -5'
    """

    def __init__(self, field: str, expected: str, got: object) -> None:
        self.field = field
        self.expected = expected
        self.got = got
        shown = repr(got)
        if len(shown) > 200:
            shown = shown[:197] + "..."
        super().__init__(f"{field}: expected {expected}, got {shown}")


class NotFoundError(MusterError):
    """The thing asked for does not exist.

    >>> str(NotFoundError("batch", 7))
    'no batch 7'
    """

    def __init__(self, kind: str, key: object) -> None:
        self.kind = kind
        self.key = key
        super().__init__(f"no {kind} {key}")


class AlreadyExistsError(MusterError):
    """A thing of that name exists already.

    >>> str(AlreadyExistsError("app", "pi"))
    "app 'pi' exists already"
    """

    def __init__(self, kind: str, key: object) -> None:
        self.kind = kind
        self.key = key
        super().__init__(f"{kind} {key!r} exists already")


class ConflictError(MusterError):
    """It is otherwise than the caller takes it to be."""


class IllegalTransitionError(MusterError):
    """The life-cycle has no such step."""


class TooManyHostsError(MusterError):
    """No more new computers are taken today. The message is for the volunteer."""


class UnavailableError(MusterError):
    """The database or the node cannot serve now; nothing was written. Try again later."""
