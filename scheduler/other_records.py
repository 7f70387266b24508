"""Looks up and takes over instances that a client has under another record of its computer. Rare.

The client was restored from a snapshot, or is a copy of another client: see Admission.may_take_over and
docs/protocol.md#request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from domain.dispatch import Report, Reported, RequestView, TakeOver
from domain.units import InstanceId
from scheduler.admission import Admission, Contact, HostCase
from scheduler.held import HeldReview
from scheduler.ports import Ledger

log = structlog.get_logger()


class OtherRecords:
    """The other records of the requesting computer. `named` is the record of the host that the request names."""

    def __init__(self, ledger: Ledger, contact: Contact, admission: Admission, named: RequestView) -> None:
        self._ledger = ledger
        self._key = contact.key
        self._admission = admission
        self._may_take_over = named.host is not None and admission.may_take_over(named.host)
        self._of_named = named.reported if admission.case is HostCase.CLONE else {}
        self._moving: Mapping[InstanceId, Reported] = {}

    async def instances(self, ids: Sequence[InstanceId]) -> Mapping[InstanceId, Reported]:
        """Return the instances that another record of the computer has. Usually this makes no query."""
        if not ids or not self._may_take_over:
            return {}
        return (await self._ledger.read(replace(self._key, instance_ids=tuple(ids), of_computer=True))).reported

    async def with_reported(self, known: Mapping[InstanceId, Reported]) -> Mapping[InstanceId, Reported]:
        """Return the records of the instances that the request reports, including instances of other host records."""
        self._moving = await self.instances([i for i in self._key.instance_ids if i not in known])
        return {**known, **self._moving} if self._moving else known

    def only_successes(self) -> frozenset[InstanceId]:
        """Return the reported instances of other records, of which only a success counts.

        A copy of the client that was told to drop them reports them as aborted while the original is still running
        them.
        """
        return frozenset((*self._moving, *self._of_named))

    def take_over(self, reports: Sequence[Report], review: HeldReview) -> tuple[TakeOver, ...]:
        """Return the instances that move to the host: one per job, preferably one that is reported as a success."""
        claims = {
            report.job_id: TakeOver(report.instance_id, self._moving[report.instance_id].held.host_id)
            for report in reports
            if report.instance_id in self._moving
        }
        is_known = self._admission.case is HostCase.KNOWN
        for held in review.taken_over:
            claims.setdefault(held.job_id, TakeOver(held.instance_id, held.host_id, unused_only=is_known))
        return tuple(claims.values())

    def taken_over(self, review: HeldReview, moved: frozenset[InstanceId]) -> HeldReview:
        """Return the review after the instances in `moved` were committed as this host's."""
        if not review.taken_over:
            return review
        log.info("instances taken over", host_id=self._admission.host.host_id, instances=len(moved))
        return review.moved(moved)
