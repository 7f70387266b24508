"""Limits on submitters, accounts, apps and queues, and the limits that block a batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Scope(StrEnum):
    SUBMITTER = "submitter"
    ACCOUNT = "account"
    APP = "app"
    QUEUE = "queue"


class Quantity(StrEnum):
    """A quantity that can be limited."""

    BATCHES = "batches"  # active batches; checked at submission
    JOBS = "jobs in progress"
    PE = "processor equivalents in progress"
    PE_SECONDS = "processor seconds outstanding"
    IDLE_JOBS = "unsent jobs in the job array"
    JOB_PE = "processor equivalents per job"
    JOB_RUNTIME_S = "seconds per job"


SIZE_LIMITS = frozenset({Quantity.JOB_PE, Quantity.JOB_RUNTIME_S})  # standby work is exempt from these limits


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit for one scope. A batch over `soft` is sorted behind batches within it; a batch over `hard` is blocked.

    `name` is the submitter, account, app or queue; None is the default for those without a limit of their own.
    """

    scope: Scope
    quantity: Quantity
    name: str | None = None
    soft: float | None = None
    hard: float | None = None


Counts = Mapping[tuple[Scope, str, Quantity], float]


@dataclass(frozen=True, slots=True)
class RequestedAmounts:
    """The amounts that one more job of a batch would use. `names` are the batch's submitter, account, app and queue."""

    names: Mapping[Scope, str]
    amounts: Mapping[Quantity, float]
    standby: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """One limit that a batch exceeds: its bound, the current amount, and the amount that one more job would add."""

    limit: Limit
    name: str
    bound: float
    has: float
    wants: float
    hard: bool

    def sentence(self) -> str:
        """Return the reason in one sentence, with both numbers."""
        kind = "hard" if self.hard else "soft"
        amount = f"{self.wants:g}" if self.limit.quantity in SIZE_LIMITS else f"{self.has:g} + {self.wants:g}"
        return f"{kind} limit of {self.limit.scope} {self.name}: {amount} > {self.bound:g} {self.limit.quantity}"


@dataclass(frozen=True, slots=True)
class Holds:
    """All limits that a batch exceeds."""

    hard: tuple[Hold, ...] = ()
    soft: tuple[Hold, ...] = ()
    others: tuple[str, ...] = field(default=())

    def reason(self) -> str | None:
        """Return why the batch is blocked, with all reasons in one sentence; None if it is not blocked."""
        said = [*self.others, *(hold.sentence() for hold in self.hard)]
        return "; ".join(said) if said else None
