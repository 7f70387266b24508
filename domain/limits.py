"""How much may a submitter, account, app or queue have, and what holds a batch? Pure."""

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
    """What is counted."""

    BATCHES = "batches"  # active; checked when one more is submitted
    JOBS = "jobs in progress"
    PE = "processor equivalents in progress"
    PE_SECONDS = "processor seconds outstanding"
    IDLE_JOBS = "unsent jobs in the job array"
    JOB_PE = "processor equivalents of one job"
    JOB_RUNTIME_S = "seconds of one job"


SIZE_LIMITS = frozenset({Quantity.JOB_PE, Quantity.JOB_RUNTIME_S})  # standby work is free of these


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of one scope: over `soft` a batch goes after those that are not, over `hard` it is held.

    `name` is the submitter's, account's, app's or queue's; None: everybody's, unless one has its own.
    """

    scope: Scope
    quantity: Quantity
    name: str | None = None
    soft: float | None = None
    hard: float | None = None


Counts = Mapping[tuple[Scope, str, Quantity], float]


@dataclass(frozen=True, slots=True)
class RequestedAmounts:
    """What sending one more job of a batch would take. `names` of its submitter, account, app and queue."""

    names: Mapping[Scope, str]
    amounts: Mapping[Quantity, float]
    standby: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """One limit a batch is over: what it says, what there is, and what one more would make of it."""

    limit: Limit
    name: str
    bound: float
    has: float
    wants: float
    hard: bool

    def sentence(self) -> str:
        """What holds it, with both numbers."""
        kind = "hard" if self.hard else "soft"
        more = f"{self.has:g} and {self.wants:g} more" if self.limit.quantity not in SIZE_LIMITS else f"{self.wants:g}"
        return f"{kind} limit of {self.limit.scope} {self.name}: {more} of at most {self.bound:g} {self.limit.quantity}"


@dataclass(frozen=True, slots=True)
class Holds:
    """Every limit a batch is over."""

    hard: tuple[Hold, ...] = ()
    soft: tuple[Hold, ...] = ()
    others: tuple[str, ...] = field(default=())

    def reason(self) -> str | None:
        """Why the batch is not eligible, all reasons in one sentence; None when it is."""
        said = [*self.others, *(hold.sentence() for hold in self.hard)]
        return "; ".join(said) if said else None
