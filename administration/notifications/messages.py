"""Builds the messages of deliveries: JSON for webhooks, text for e-mail. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from domain.notifications import Delivery, EventKind, RaisedEvent, Subscription
from domain.refusals import RefusalCode, traits_of
from domain.settings import ProjectSettings
from domain.units import utc

MOST_SUBJECT_CHARS = 150
FOOTER = """
You get this message because {person} subscribed this address to notifications of {project}.
To stop them, open {stop}
"""
CONFIRM = """{person} asks to send notifications of {project} to this address.
To get them, open this address and choose "Get notifications":

{stop}

Otherwise ignore this message; you will get no other.
"""


def sentence(event: RaisedEvent) -> str:
    """Return what happened, in one sentence.

    >>> done = {"batch": "big", "state": "complete", "jobs_total": 9, "jobs_validated": 8, "jobs_failed": 1}
    >>> sentence(RaisedEvent("k", EventKind.BATCH_DONE, 0.0, done, batch_id=7))
    'Batch 7 (big) is complete: 8 of 9 jobs are valid, 1 failed.'
    """
    detail: Mapping[str, Any] = event.detail  # Any: a JSON document
    batch = f"Batch {event.batch_id}" + (f" ({detail['batch']})" if detail.get("batch") else "")
    match event.kind:
        case EventKind.BATCH_DONE:
            counts = (
                f"{detail['jobs_validated']} of {detail['jobs_total']} jobs are valid, {detail['jobs_failed']} failed"
            )
            return f"{batch} {'is complete' if detail['state'] == 'complete' else 'was aborted'}: {counts}."
        case EventKind.BATCH_AT_RISK:
            latest = f"its forecast is {_time(detail['q50_at'])}, at the latest {_time(detail['q90_at'])}"
            return f"{batch} may miss its deadline {_time(detail['deadline_at'])}: {latest}."
        case EventKind.BATCH_MISSED:
            counts = f"{detail['jobs_validated']} of {detail['jobs_total']} jobs are valid"
            return f"{batch} missed its deadline {_time(detail['deadline_at'])}: {counts}."
        case EventKind.APP_FAILING:
            counts = f"{detail['failures']} of {detail['results']} results failed, on {detail['hosts']} hosts"
            return f"App {detail['app']} is failing: in 15 minutes, {counts}."
        case EventKind.WORK_STUCK if detail["code"] == RefusalCode.NO_APP_VERSION and not detail["hosts"]:
            return f"{batch} is stuck: its app has no version for new work."
        case EventKind.WORK_STUCK:
            traits = traits_of(str(detail["code"]))
            advice = f" {traits.advice}" if traits is not None and traits.advice else ""
            return (
                f"{batch} is stuck: none of {detail['hosts']} active hosts can run its jobs ({detail['code']}).{advice}"
            )
        case EventKind.TEST:
            return "This is a test of the subscription."
        case EventKind.CONFIRM:
            return "Confirm this address."


def link_of(event: RaisedEvent, url: str) -> str:
    """Return the address of the page about the event, below the master URL."""
    if event.batch_id is not None:
        return f"{url}console/batches/{event.batch_id}{'/why' if event.kind is EventKind.WORK_STUCK else ''}"
    if event.kind is EventKind.APP_FAILING:
        return f"{url}console/apps/{quote(str(event.detail['app']), safe='')}"
    return f"{url}console/notifications"


def webhook_body(delivery: Delivery, events: Sequence[RaisedEvent], project: ProjectSettings) -> bytes:
    """Return the JSON message. It is the same at every attempt."""
    shown = [
        {
            "kind": one.kind.value,
            "key": one.key,
            "raised_at": one.raised_at,
            "text": sentence(one),
            "url": link_of(one, project.url),
            "batch_id": one.batch_id,
            "detail": one.detail,
        }
        for one in events
    ]
    head = {"delivery": delivery.key, "project": project.name, "made_at": delivery.made_at}
    return msgspec.json.encode({**head, "dropped": delivery.dropped, "events": shown})


def mail_text(
    subscription: Subscription, delivery: Delivery, events: Sequence[RaisedEvent], project: ProjectSettings, stop: str
) -> tuple[str, str]:
    """Return subject and text. `stop` is the address that ends the subscription."""
    name = " ".join(project.name.split())
    names = {"person": subscription.person, "project": name, "stop": stop}
    if any(one.kind is EventKind.CONFIRM for one in events):
        return f"{name}: notifications to this address?", CONFIRM.format(**names)
    subject = sentence(events[0]).rstrip(".") if len(events) == 1 else f"{len(events)} events"
    lines = [f"{sentence(one)}\n{link_of(one, project.url)}\n" for one in events]
    if delivery.dropped:
        lines.append(f"{delivery.dropped} further events were dropped, because too many waited.\n")
    return f"{name}: {' '.join(subject.split())}"[:MOST_SUBJECT_CHARS], "\n".join(lines) + FOOTER.format(**names)


def _time(at: float | None) -> str:
    """Return an instant as text.

    >>> _time(0.0)
    '1970-01-01 00:00 UTC'
    """
    return "unknown" if at is None else f"{utc(at):%Y-%m-%d %H:%M} UTC"
