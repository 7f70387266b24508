"""Notifications: kinds of events, subscriptions to them, and deliveries with their retries. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.settings import NotificationSettings
from domain.units import DAY_S, HOUR_S, MINUTE_S, BatchId, DeliveryId, Instant, PersonId, Seconds, SubscriptionId


class EventKind(StrEnum):
    """What people can subscribe to; the last two are sent to a single subscription."""

    BATCH_DONE = "batch_done"  # complete or aborted
    BATCH_AT_RISK = "batch_at_risk"  # the forecast is later than the deadline
    BATCH_MISSED = "batch_missed"  # the deadline has passed
    APP_FAILING = "app_failing"  # many results failed in a quarter of an hour
    WORK_STUCK = "work_stuck"  # no active host can run jobs of a batch
    CONFIRM = "confirm"
    TEST = "test"


KINDS = tuple(EventKind)[:-2]


class Channel(StrEnum):
    EMAIL = "email"
    WEBHOOK = "webhook"


class DeliveryState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


WINDOW_S = Seconds(15 * MINUTE_S)  # in which the failures of an app are counted
ENDED_LATELY_S = DAY_S  # a batch that ended earlier, before an upgrade or an outage, raises no event
KEPT_S = Seconds(30 * DAY_S)  # events and deliveries
UNCONFIRMED_S = Seconds(7 * DAY_S)  # subscriptions whose address is not confirmed
MOST_EVENTS = 100  # of a delivery
MOST_WAITING = 200  # events of a subscription
MOST_SUBSCRIPTIONS = 20  # of a person
MOST_INTERVAL_S = DAY_S
MOST_ATTEMPTS = 8  # over about a day
MOST_PAUSE_S = Seconds(6 * HOUR_S)


def pause_s(attempts: int) -> Seconds:
    """Return the time until the next attempt of a delivery that was attempted `attempts` times.

    >>> [pause_s(attempts) for attempts in (1, 2, 5, 7)]
    [60.0, 240.0, 15360.0, 21600.0]
    """
    return Seconds(min(MOST_PAUSE_S, MINUTE_S * 4.0 ** (attempts - 1)))


@dataclass(frozen=True, slots=True)
class RaisedEvent:
    """An event. `key` identifies it, so that it is raised once; `submitter_ids` own the batches concerned."""

    key: str
    kind: EventKind
    raised_at: Instant
    detail: Mapping[str, object] = field(default_factory=dict)
    batch_id: BatchId | None = None
    submitter_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Subscription:
    """Where and of what a person is notified. An e-mail subscription starts when its address is confirmed."""

    subscription_id: SubscriptionId
    person_id: PersonId
    person: str
    channel: Channel
    address: str
    kinds: tuple[str, ...]
    project_wide: bool
    interval_s: Seconds
    created_at: Instant
    confirmed_at: Instant | None = None
    paused: bool = False
    secret_serial: int = 1
    rotated_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message to a subscription. `outcome` describes the last attempt; `dropped` events did not fit in the queue."""

    delivery_id: DeliveryId
    key: str
    subscription_id: SubscriptionId
    made_at: Instant
    state: DeliveryState
    attempts: int
    next_at: Instant
    ended_at: Instant | None
    outcome: str
    dropped: int


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A delivery with the address and the number of its events, for lists."""

    delivery: Delivery
    channel: Channel
    address: str
    events: int


@dataclass(frozen=True, slots=True)
class BatchNews:
    """A batch that ended, or whose deadline is at risk or missed, with its latest forecast."""

    key: str
    batch_id: BatchId
    name: str
    app: str
    submitter: str
    submitter_id: int
    state: str
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    ended_at: Instant | None
    deadline_at: Instant | None
    q50_at: Instant | None
    q90_at: Instant | None


@dataclass(frozen=True, slots=True)
class AppFailures:
    """The failures of an app since an instant, and the results of the batches concerned."""

    app: str
    failures: int
    results: int
    hosts: int
    batch_ids: tuple[int, ...]
    submitter_ids: tuple[int, ...]

    def is_failing(self, settings: NotificationSettings) -> bool:
        """Return whether the failures are many, and a large share of the results.

        >>> [AppFailures("pi", n, 100, 3, (), ()).is_failing(NotificationSettings()) for n in (19, 49, 50)]
        [False, False, True]
        """
        return self.failures >= max(settings.app_errors, settings.app_error_fraction * self.results)
