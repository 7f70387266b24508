"""What the volunteers' pages need from the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from administration.explain.ports import ExplainStore
from administration.ports import Volunteers
from domain.units import HostId, VolunteerId
from domain.views import ListedInProgress
from domain.volunteers import Outcome, OwnHost, OwnResult, OwnTotals, ResultPlace


class Belongings(Protocol):
    """What belongs to one volunteer, and nothing of others."""

    async def hosts(self, volunteer_id: VolunteerId, *, before: HostId | None, limit: int) -> Sequence[OwnHost]:
        """Newest first."""
        ...

    async def host(self, volunteer_id: VolunteerId, host_id: HostId) -> OwnHost:
        """NotFoundError, for somebody else's too."""
        ...

    async def held(
        self, volunteer_id: VolunteerId, *, host_id: HostId | None, limit: int
    ) -> Sequence[ListedInProgress]:
        """What is in progress, by due date."""
        ...

    async def results(
        self,
        volunteer_id: VolunteerId,
        *,
        outcome: Outcome | None,
        host_id: HostId | None,
        after: ResultPlace | None,
        limit: int,
    ) -> Sequence[OwnResult]:
        """What is over and not in the history yet, the last one sent first.

        Where some are chosen they are looked for among so many of the last that it takes no longer.
        """
        ...

    async def totals(self, volunteer_id: VolunteerId) -> OwnTotals: ...


class SiteStore(ExplainStore, Protocol):
    """The database as the volunteers' pages see it."""

    @property
    def belongings(self) -> Belongings: ...
    @property
    def volunteers(self) -> Volunteers: ...
