"""What setting aside for big jobs needs from the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from domain.host_classes import AlikeHosts, HostClasses
from domain.ordered_work import Reference
from domain.ordering import Request
from domain.reservations import BigBatch, Kept, LeaseEnd, LeaseStanding, Reserved
from domain.units import AppId, Flop, Instant


class ReservedWork(Protocol):
    async def reference(self) -> Reference | None:
        """What a host is like, as the last ordering found it."""
        ...

    async def big_batches(self, least: Request, app_ids: Sequence[AppId], limit: int) -> Sequence[BigBatch]:
        """The first waiting batches in order, of these apps or with a job that asks for as much as `least` of anything.

        Batches that a limit holds are left out.
        """
        ...

    async def reserved(self) -> Reserved:
        """What is kept and leased now."""
        ...

    async def standing_leases(self) -> Sequence[LeaseStanding]:
        """Leases that are not over, by host."""
        ...

    async def reserve(
        self, kept: Sequence[Kept], ends: Sequence[LeaseEnd], *, forget_before: Instant, now: Instant
    ) -> None:
        """Keep these slots and no others, end these leases, and forget those that ended before an instant.

        A lease that was of use is forgotten at once. Requests go by all of it once the catalogue was read again.
        """
        ...


class RedundantWork(Protocol):
    async def redundant_lines(self) -> Mapping[tuple[AppId, int], Mapping[int, Flop]]:
        """(app, hr_type) of waiting jobs whose replicas need hosts alike: per class, unsent work committed to it."""
        ...

    async def alike_hosts(self, *, active_since: Instant) -> Sequence[AlikeHosts]:
        """Hosts that called since then, in groups that say the same of themselves; looks at all of them."""
        ...

    async def note_classes(self, classes: HostClasses) -> None:
        """Requests go by it once the catalogue was read again."""
        ...
