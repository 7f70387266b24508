"""Restrictions set by operators: bans and limits of volunteers and hosts, pauses of apps, queues and batches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.apps import App
from domain.batches import Batch
from domain.hosts import Host
from domain.units import AppId, Instant


class Restricted(StrEnum):
    """What a restriction is about."""

    VOLUNTEER = "volunteer"
    HOST = "host"
    APP = "app"
    QUEUE = "queue"
    BATCH = "batch"

    @property
    def is_work(self) -> bool:
        """Return whether it is paused, not banned or limited."""
        return self in (Restricted.APP, Restricted.QUEUE, Restricted.BATCH)


@dataclass(frozen=True, slots=True)
class Restriction:
    """A restriction. `name` is the id in digits, or the name of a queue.

    `max_jobs` is the maximum number of jobs in progress per host. 0 is a ban, and for work a pause. `abort`: a ban that
    also ends the jobs in progress. `set_at`: since when this maximum applies; `why` and `set_by` may be newer.
    """

    kind: Restricted
    name: str
    max_jobs: int
    why: str
    set_by: str
    set_at: Instant
    abort: bool = False


Restrictions = Mapping[tuple[Restricted, str], Restriction]


def name_of(one: Restriction, apps: Mapping[AppId, App]) -> str:
    """Return the name of the object: an app's name, the others' key."""
    app = apps.get(AppId(int(one.name))) if one.kind is Restricted.APP else None
    return one.name if app is None else app.name


def limit_of(restrictions: Restrictions, host: Host) -> Restriction | None:
    """Return the stricter restriction of a host and its volunteer; None if there is none."""
    if not restrictions:
        return None
    return min(_of_host(restrictions, host), key=lambda one: one.max_jobs, default=None)


def drops_jobs(restrictions: Restrictions, host: Host) -> bool:
    """Return whether a ban asks the host to drop its jobs in progress."""
    return bool(restrictions) and any(one.abort and not one.max_jobs for one in _of_host(restrictions, host))


def _of_host(restrictions: Restrictions, host: Host) -> list[Restriction]:
    keys = (Restricted.HOST, str(host.host_id)), (Restricted.VOLUNTEER, str(host.volunteer_id))
    return [restrictions[key] for key in keys if key in restrictions]


def pause_of(restrictions: Restrictions, batch: Batch) -> Restriction | None:
    """Return the pause of a batch, its queue or its app; None if there is none."""
    if not restrictions:
        return None
    keys = (Restricted.BATCH, str(batch.batch_id)), (Restricted.QUEUE, batch.queue), (Restricted.APP, str(batch.app_id))
    return next((restrictions[key] for key in keys if key in restrictions), None)
