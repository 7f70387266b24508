"""Says which instances in progress a batch waits for, and why it will be late. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from administration.explain.verdict import counted
from administration.forecasts.words import risk_in_words
from domain.batches import Batch
from domain.formatting import roughly
from domain.units import HostId, Instant
from domain.views import ListedInstance
from muster_client import shapes

NAMED_HOSTS = 3  # hosts in a sentence


@dataclass(frozen=True, slots=True)
class Awaited:
    """The instances in progress of a batch whose instances have all been sent, and the hosts that have them.

    `overdue` of them are past their due dates, the first since `first_due_at`. `is_part`: more exist than were read.
    """

    instances: int
    host_ids: tuple[HostId, ...]
    oldest_sent_at: Instant
    first_due_at: Instant
    last_due_at: Instant
    overdue: int
    is_part: bool

    @property
    def hosts(self) -> int:
        return len(self.host_ids)


def awaited_of(read: Sequence[ListedInstance], in_progress: int, now: Instant) -> Awaited | None:
    """Return what a batch with `in_progress` instances in progress waits for, from those that were read, or None."""
    sent = [one.sent_at for one in read if one.sent_at is not None]
    due = [one.due_at for one in read if one.due_at is not None]
    if not sent or not due:
        return None
    hosts = tuple(sorted({one.host_id for one in read if one.host_id is not None}))
    overdue, is_part = sum(at < now for at in due), len(read) < in_progress
    return Awaited(max(len(read), in_progress), hosts, min(sent), min(due), max(due), overdue, is_part)


def awaited_in_words(awaited: Awaited, now: Instant) -> str:
    """Return which instances a batch waits for: how many, on which hosts, the oldest since when, and when due.

    >>> one = Awaited(1, (7,), Instant(0.0), Instant(3000.0), Instant(3000.0), 1, is_part=False)
    >>> awaited_in_words(one, Instant(3600.0))
    'It waits for 1 instance on host 7, sent 1 h ago and overdue for 10 min.'
    """
    many, oldest = awaited.instances > 1, roughly(max(0.0, now - awaited.oldest_sent_at))
    what = f"It waits for {counted(awaited.instances, 'instance')} on {_hosts(awaited)}"
    last, late = f"due in {roughly(awaited.last_due_at - now)}", roughly(now - awaited.first_due_at)
    if not many:
        return f"{what}, sent {oldest} ago and {f'overdue for {late}' if awaited.overdue else last}."
    least, longest = "at least " if awaited.is_part else "", ", the longest" if awaited.overdue > 1 else ""
    dues = [f"{least}{awaited.overdue} overdue{longest} for {late}"] if awaited.overdue else []
    if awaited.last_due_at >= now and not awaited.is_part:
        dues.append(f"the last is {last}")
    return "; ".join((f"{what}, the oldest sent {oldest} ago", *dues)) + "."


def _hosts(awaited: Awaited) -> str:
    if awaited.is_part or awaited.hosts > NAMED_HOSTS:
        return f"{'at least ' if awaited.is_part else ''}{counted(awaited.hosts, 'host')}"
    return f"host{'s' * (awaited.hosts > 1)} {', '.join(map(str, awaited.host_ids))}"


def expected_in_words(batch: Batch, now: Instant) -> str:
    """Return when the forecast expects the batch's end; "" without a forecast, or once its latest end has passed."""
    about, latest = batch.completion_q50_at, batch.completion_q90_at
    if about is None or latest is None or latest <= now:
        return ""
    when = f"in {roughly(about - now)}" if about > now else "at any moment"
    return f"The forecast expects its end {when}, at the latest in {roughly(latest - now)}."


def late_in_words(risk: shapes.RiskShown | None, cause: str) -> str:
    """Return that a batch has missed or may miss its deadline, with the cause; "" without a risk.

    >>> risk = {"deadline_at": 0.0, "late_by_s": 840.0, "probability": 1.0, "missed": True}
    >>> late_in_words(risk, "2 instances on 1 host are overdue")
    'It missed its deadline by 14 min: 2 instances on 1 host are overdue.'
    """
    if risk is None:
        return ""
    words = risk_in_words(risk).partition(";")[0]
    return f"It {'' if risk['missed'] else 'is '}{words}{f': {cause}' if cause else ''}."
