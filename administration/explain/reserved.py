"""What is set aside for big jobs, as JSON and in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from domain.formatting import in_words
from domain.reservations import Kept, Lease
from domain.units import Instant

Document = Mapping[str, Any]  # Any: a JSON document


def lease_as_json(lease: Lease | None, now: Instant, *, supposed: bool = False) -> dict[str, object] | None:
    """A host's last lease; `holds`: it is not over. `supposed`: the host has none, its next request would make this."""
    if lease is None:
        return None
    return {
        "batch_id": lease.batch_id,
        "host_id": lease.host_id,
        "processor_type": lease.processor_type,
        "cores": lease.cores,
        "made_at": lease.made_at,
        "start_at": lease.start_at,
        "starts_in_s": lease.start_at - now,
        "expires_at": lease.expires_at,
        "holds": lease.holds(now),
        "supposed": supposed,
        "ended_at": lease.ended_at,
        "because": lease.because,
    }


def kept_as_json(kept: Kept | None, now: Instant) -> dict[str, object] | None:
    """The slot that is kept for a batch."""
    return None if kept is None else {"since": kept.since, "for_s": now - kept.since}


def lease_in_words(lease: Document | None) -> Iterator[str]:
    """One line, or none.

    >>> held = Lease(1, 2, 8.0, Instant(3600.0), 60.0, Instant(7200.0))
    >>> list(lease_in_words(lease_as_json(held, Instant(0.0))))
    ['host 2 is held for batch 1: 8 of its processors (cpu) from 1 h from now']
    >>> list(lease_in_words(lease_as_json(held, Instant(0.0), supposed=True)))
    ['host 2 would be held for batch 1: 8 of its processors (cpu) from 1 h from now']
    """
    if lease is None:
        return
    what = f"host {lease['host_id']}"
    if lease["holds"]:
        starts_s = lease["starts_in_s"]
        since = f"from {in_words(starts_s)} from now" if starts_s > 0 else f"since {in_words(-starts_s)} ago"
        processors = f"{lease['cores']:g} of its processors ({lease['processor_type']})"
        held = "would be held" if lease["supposed"] else "is held"
        yield f"{what} {held} for batch {lease['batch_id']}: {processors} {since}"
    else:
        why = lease["because"] or "it has expired"
        yield f"{what} was held for batch {lease['batch_id']} in vain, and is not again for a day: {why}"


def kept_in_words(kept: Document | None) -> Iterator[str]:
    """One line, or none."""
    if kept is not None:
        yield f"a slot of every job array is kept for it since {in_words(kept['for_s'])} ago"
