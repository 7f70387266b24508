"""Looks up and takes over instances that a client has under another record of its computer. Rare.

The client was restored from a snapshot, or is a copy of another client: see Admission.may_take_over and
docs/protocol.md#request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from domain.dispatch import Report, Reported, RequestView, TakeOver
from domain.jobs import InstanceState
from domain.units import HostId, InstanceId, JobId
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
        self._is_known = admission.case is HostCase.KNOWN
        self._moving: Mapping[InstanceId, Reported] = {}
        self._errors: frozenset[InstanceId] = frozenset()

    async def instances(self, ids: Sequence[InstanceId]) -> Mapping[InstanceId, Reported]:
        """Return the instances that another record of the computer has. Usually this makes no query."""
        if not ids or not self._may_take_over:
            return {}
        return (await self._ledger.read(replace(self._key, instance_ids=tuple(ids), of_computer=True))).reported

    async def with_reported(self, known: Mapping[InstanceId, Reported]) -> Mapping[InstanceId, Reported]:
        """Return the records of the instances that the request reports, including instances of other host records."""
        self._moving = await self.instances([i for i in self._key.instance_ids if i not in known])
        return {**known, **self._moving} if self._moving else known

    def counts(self, report: Report) -> bool:
        """Return whether a report of an instance of another record may count. A success always does.

        An abort does not: a copy of the client that was told to drop the job reports it while the original is still
        running it. An error counts only for the client of the named record, if it moves the instance.
        """
        if report.to_state is InstanceState.REPORTED:
            return True
        if report.instance_id in self._moving:
            return report.to_state is not InstanceState.ABORTED and self._is_known
        return report.instance_id not in self._of_named

    def errors_of_host(self, reports: Sequence[Report]) -> tuple[Report, ...]:
        """Return the reports, the errors among those of other records as the host's: written only if they move."""
        if not self._moving:
            return tuple(reports)
        ours = [one for one in reports if one.instance_id in self._moving]
        self._errors = frozenset([one.instance_id for one in ours if one.to_state is not InstanceState.REPORTED])
        host_id = self._admission.host.host_id
        return tuple([_moved_to(host_id, one) if one.instance_id in self._errors else one for one in reports])

    def to_repeat(self, left_out: frozenset[InstanceId], moved: frozenset[InstanceId]) -> frozenset[InstanceId]:
        """Return the instances whose reports were not written and must be repeated. An error is not, unless its
        instance moved: the client of the record in use goes on with the job.
        """
        return left_out - (self._errors - moved) if self._errors else left_out

    def take_over(self, reports: Sequence[Report], review: HeldReview) -> tuple[TakeOver, ...]:
        """Return the instances that move to the host: one per job, preferably one that is reported as a success.

        To a known record, an instance without a success moves only from an unused one.
        """
        ours = [one.instance_id for one in reports if one.instance_id in self._moving]
        ours.sort(key=lambda instance_id: instance_id in self._errors)
        held = [self._moving[instance_id].held for instance_id in ours]
        claims: dict[JobId, TakeOver] = {}
        for one in (*held, *review.taken_over):
            unused_only = self._is_known and (one.instance_id in self._errors or one.instance_id not in self._moving)
            claims.setdefault(one.job_id, TakeOver(one.instance_id, one.host_id, unused_only=unused_only))
        return tuple(claims.values())

    def taken_over(self, review: HeldReview, moved: frozenset[InstanceId]) -> HeldReview:
        """Return the review after the instances in `moved` were committed as this host's."""
        if not review.taken_over:
            return review
        log.info("instances taken over", host_id=self._admission.host.host_id, instances=len(moved))
        return review.moved(moved)


def _moved_to(host_id: HostId, report: Report) -> Report:
    """Return the report as the host's. The sample of an earlier time-out stays with the record that had it."""
    event = report.hav_event
    if event is not None:
        event = replace(event, host_id=host_id, replaces=None, replaces_at=None)
    return replace(report, host_id=host_id, hav_event=event, turnaround_sample=None)
