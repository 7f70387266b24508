"""An item that needs attention: its kind, facts and remedies, and how it is shown. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from administration.access.who import Person
from administration.show import shown
from administration.stopped import Stopped
from domain.access import Right
from domain.apps import AppVersion
from domain.attention import (
    FailingHost,
    FailingVersion,
    HostContacts,
    Upkeep,
)
from domain.batches import Batch
from domain.forecasts import ForecastRecord
from domain.insight import Short
from domain.units import AppId, BatchId, Instant, Seconds, SubmitterId
from domain.views import ProcessReport
from muster_client import shapes

HALF = 0.5  # from which fraction of failures or of silent hosts an item is severe


class AttentionKind(StrEnum):
    """Kinds of items, the most urgent first among items of one severity."""

    NO_BACKGROUND = "no_background"
    OVERDUE_TASK = "overdue_task"
    DISK = "disk"
    MISSED = "missed"
    AT_RISK = "at_risk"
    STUCK = "stuck"
    UNSCHEDULABLE = "unschedulable"
    FAILING_VERSION = "failing_version"
    FAILING_BATCH = "failing_batch"
    FAILING_HOSTS = "failing_hosts"
    FAILING_TASK = "failing_task"
    VALIDATION = "validation"
    SILENT_HOSTS = "silent_hosts"
    BACKUP = "backup"


ORDER = {kind: place for place, kind in enumerate(AttentionKind)}


@dataclass(frozen=True, slots=True)
class Remedy:
    """What may help. `link`: page of the console where it is done, below its root; "" if it is done elsewhere.

    `right`: what it requires; with SUBMIT, the batch must also be the user's own. `command`: the same as a command.
    """

    words: str
    link: str = ""
    right: Right = Right.READ
    command: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to look at. `severe`: users are affected now. `link`: page of the console, below its root, about the
    subject; `why`: the page that explains it, or "".

    `figures` are the numbers of the sentence. `weight` orders items of one kind, largest first. `submitter_id`: the
    owner of the batch.
    """

    kind: AttentionKind
    severe: bool
    subject: str
    link: str
    sentence: str
    remedies: Sequence[Remedy]
    since_at: Instant | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    batch_id: BatchId | None = None
    weight: float = 0.0
    why: str = ""
    submitter_id: SubmitterId | None = None

    def remedies_for(self, person: Person) -> Sequence[Remedy]:
        """Return the remedies that the user may apply. The owner of a batch also sees what operators could do."""
        owns = self.submitter_id is None or person.owns(self.submitter_id)
        may = [one for one in self.remedies if one.right in person.rights and (one.right is not Right.SUBMIT or owns)]
        asks = [one.words for one in self.remedies if one.right is Right.OPERATE not in person.rights]
        asked = [Remedy(f"ask an operator: {', or '.join(asks)}")] if asks and self.submitter_id and owns else []
        return [*may[:2], *asked, *may[2:]]


@dataclass(frozen=True, slots=True)
class AttentionFacts:
    """The facts. `last` are the latest forecasts of `batches`, `short` the limits that leave a batch without hosts,
    `stopped` the work that no active host can run and pauses, `waiting` the batches of both and those with nearly all
    failures of an app, `processes` the reports of running processes, `deadlines` those of the periodic tasks' next
    rounds. `backup_age_s`: 0 if backups are not checked. `all_sent`: those of `batches` of which only retries and
    copies wait. `first`: those that most requests take before the others, and whether level expedite would put them
    before more of these. `current`: the versions of apps that get jobs.
    """

    now: Instant
    batches: Sequence[Batch]
    last: Mapping[BatchId, ForecastRecord]
    short: Mapping[BatchId, Short]
    stopped: Stopped
    waiting: Mapping[BatchId, Batch]
    processes: Sequence[ProcessReport]
    deadlines: Mapping[str, Instant]
    versions: Sequence[FailingVersion]
    hosts: Sequence[FailingHost]
    contacts: HostContacts
    upkeep: Upkeep
    backup_age_s: Seconds
    all_sent: Collection[BatchId] = ()
    first: Mapping[BatchId, bool] = field(default_factory=dict)
    current: Mapping[AppId, Sequence[AppVersion]] = field(default_factory=dict)


def counts_of(items: Iterable[Item]) -> dict[AttentionKind, int]:
    """Return the number of items of each kind, 0 included."""
    counts = dict.fromkeys(AttentionKind, 0)
    for one in items:
        counts[one.kind] += 1
    return counts


def item_as_json(one: Item, person: Person) -> shapes.AttentionItemShown:
    remedy = remedies_in_words(one.remedies_for(person))
    return shown(shapes.AttentionItemShown, one, figures=dict(one.figures), remedy=remedy)


def remedies_in_words(remedies: Sequence[Remedy]) -> str:
    """Return the remedies as a sentence, "" for none.

    >>> remedies_in_words([Remedy("read the errors"), Remedy("withdraw it", command="muster app version withdraw 4")])
    'Read the errors; withdraw it (muster app version withdraw 4).'
    """
    said = "; ".join(one.words + (f" ({one.command})" if one.command else "") for one in remedies)
    return f"{said[:1].upper()}{said[1:]}." if said else ""
