"""What an explanation reads. Nothing of it is ever written."""

from __future__ import annotations

from typing import Protocol

from administration.ports import Applications, Insight, Views
from domain.dispatch import RequestKey, RequestView
from feeder.ports import WaitingWork


class ExplainReads(Protocol):
    """The reading half of the ledger."""

    async def read(self, key: RequestKey) -> RequestView: ...


class ExplainStore(Protocol):
    """The database as explanations see it."""

    @property
    def ledger(self) -> ExplainReads: ...
    @property
    def waiting(self) -> WaitingWork: ...
    @property
    def applications(self) -> Applications: ...
    @property
    def views(self) -> Views: ...
    @property
    def insight(self) -> Insight: ...
