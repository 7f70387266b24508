"""Reads views of batches, jobs, hosts and lists from PostgreSQL, paged by key, and a volunteer's own data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import msgspec

from domain.batches import Batch
from domain.forecasting import MOVED_S
from domain.forecasts import SENT_S
from domain.host_lists import (
    LOOKED_AT,
    RESULTS_LOOKED_AT,
    HostChoice,
    HostInstance,
    HostInstances,
    HostKind,
    HostList,
    HostPlace,
    HostSort,
    ListedHost,
    SlowWith,
)
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceState, JobClass
from domain.refusals import Whys
from domain.units import AccountId, AppId, BatchId, HostId, InstanceId, Instant, JobId, SubmitterId, VolunteerId
from domain.views import (
    ALL_SENT,
    MOST_EXTRAS,
    ActiveCounts,
    ActiveTotal,
    BatchChoice,
    BatchPlace,
    BatchSort,
    InstancePlace,
    JobRow,
    ListedBatch,
    ListedInProgress,
    ListedInstance,
    NotSent,
    Returned,
    UnsentExtras,
    Whose,
)
from domain.volunteers import OUTCOMES, Outcome, OwnHost, OwnResult, OwnTotals, ResultPlace
from store import rows
from store.pool import OnDatabase
from store.rows import mapper, or_empty

LAST_ID = 2**63 - 1
LAST_HOST_ID = 2**31 - 1
MOST_RETRIES = 2**15
MOST_ID = 2**63 - 1


_active_counts = mapper(ActiveCounts)
_active_total = mapper(ActiveTotal, app="app_name")
held_instance = mapper(ListedInProgress, app="app_name")
_extras = mapper(UnsentExtras)
_instance = mapper(ListedInstance, reason=or_empty("reason"))
_listed = mapper(
    ListedBatch,
    batch=rows.batch,
    app="app_name",
    submitter="submitter_name",
    account="account_name",
    left_out=["place"],
)
_place = mapper(BatchPlace)
_whose = mapper(Whose)


def _refused(row: rows.Row) -> Whys:
    return () if row["refused"] is None else msgspec.json.decode(row["refused"], type=Whys)


def _last_refused(row: rows.Row) -> Whys:
    return _refused(row) if row["refused_at"] is not None and row["refused_at"] >= row["last_rpc_at"] else ()


_listed_host = mapper(
    ListedHost, host=rows.host, credit=rows.credit_of, refused=_last_refused, left_out=["slow", "failures"]
)
_slow_with = mapper(SlowWith)
_host_instance = mapper(
    HostInstance,
    app="app_name",
    est_runtime_s=lambda row: row["est_runtime_s"] or 0.0,
    reason=or_empty("reason"),
)
_own_host = mapper(
    OwnHost,
    host=rows.host,
    credit=rows.credit_of,
    refused=_refused,
)
_own_result = mapper(OwnResult, app="app_name", reason=or_empty("reason"))
_own_totals = mapper(OwnTotals, credit=rows.credit_of)


def _by_id(sort: BatchSort, after: BatchPlace | None) -> tuple[BatchId, bool]:
    """Return the id after which a list by id continues, and whether it descends."""
    newest = sort is BatchSort.NEWEST
    start = BatchId(LAST_ID if newest else 0)
    return start if after is None else after.batch_id, newest


def _filters(choice: BatchChoice) -> tuple[object, ...]:
    return choice.qos, choice.app_id, choice.submitter_id, choice.account_id, choice.queue, choice.text.lower()


class PostgresListings(OnDatabase):
    """Implements the console's Listings."""

    async def batches(
        self,
        choice: BatchChoice,
        sort: BatchSort,
        *,
        after: BatchPlace | None,
        limit: int,
        until: BatchPlace | None = None,
        not_sent: NotSent = ALL_SENT,
        first: Collection[BatchId] = (),
    ) -> Sequence[ListedBatch]:
        """Return a page of batches. Orders other than by id contain only active batches.

        `until`: the place of the last batch to look at, in a list by id. `first`: the batches that are sent first, in
        sequence.
        """
        place = BatchPlace(BatchId(0), -inf, -inf) if after is None else after
        chosen = _filters(choice)
        if sort.key != "id" or choice.active_only:
            keys = (sort.key, sort.sign, place.first, place.second, place.batch_id)
            more = (choice.at_risk_at, choice.blocked, choice.ids, choice.failed)
            stopped = (not_sent.all, list(not_sent.batch_ids), list(not_sent.app_ids), list(not_sent.queues))
            asked = (*keys, limit, *chosen, *more, MOVED_S, *stopped, list(first), SENT_S)
            places = [_place(row) for row in await self._database.fetch("active_batches_sorted", *asked)]
        else:
            last = None if until is None else until.batch_id
            by_id = (*_by_id(sort, after), limit, choice.state, *chosen, last, choice.failed)
            places = [BatchPlace(row["batch_id"]) for row in await self._database.fetch("batches_by_id", *by_id)]
        found = {one.batch.batch_id: one for one in await self.listed([one.batch_id for one in places])}
        return [replace(found[one.batch_id], place=one) for one in places if one.batch_id in found]

    async def place_at(self, sort: BatchSort, *, after: BatchPlace | None, number: int) -> BatchPlace | None:
        """Return the place of the batch that is this `number` after a place, in a list of all batches by id."""
        row = await self._database.fetch_one("batch_at", *_by_id(sort, after), number - 1)
        return None if row is None else BatchPlace(BatchId(row["batch_id"]))

    async def listed(self, batch_ids: Sequence[BatchId]) -> Sequence[ListedBatch]:
        """Return batches in the given order, without missing ones."""
        if not batch_ids:
            return []
        by_id = {row["batch_id"]: _listed(row) for row in await self._database.fetch("listed_batches", list(batch_ids))}
        return [by_id[one] for one in batch_ids if one in by_id]

    async def counts(self, choice: BatchChoice, now: Instant, attention: Collection[BatchId]) -> ActiveCounts:
        """Count active batches by the choice's QoS, app, owner, queue and name; `attention`: those that need it."""
        row = await self._database.fetch_first("active_counts", now, *_filters(choice), sorted(attention))
        return _active_counts(row)

    async def names(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, str]:
        return {row["batch_id"]: row["name"] for row in await self._database.fetch("batch_names", list(batch_ids))}

    async def totals(self) -> Sequence[ActiveTotal]:
        return [_active_total(row) for row in await self._database.fetch("active_totals")]

    async def instances(
        self, batch_id: BatchId, states: Collection[InstanceState], *, after: InstancePlace | None, limit: int
    ) -> Sequence[ListedInstance]:
        """Return instances. The history is read last: an instance moved in between is found twice, never missed."""
        place = InstancePlace(MOST_RETRIES, InstanceId(0)) if after is None else after
        asked = (batch_id, sorted(states), -place.retries, place.instance_id, limit)
        found = await self._database.fetch("instances_of_batch", *asked)
        moved = await self._database.fetch("finished_instances_of_batch", *asked)
        by_id = {row["instance_id"]: _instance(row) for row in (*moved, *found)}
        return sorted(by_id.values(), key=lambda one: (-one.retries, one.instance_id))[:limit]

    async def latest(
        self, batch_id: BatchId, states: Collection[InstanceState], *, before: InstanceId | None, limit: int
    ) -> Sequence[ListedInstance]:
        """Return instances that were sent, newest first. As in `instances`, the history is read last."""
        asked = (batch_id, sorted(states), MOST_ID if before is None else before, limit)
        found = await self._database.fetch("latest_instances_of_batch", *asked)
        moved = await self._database.fetch("latest_finished_instances", *asked)
        by_id = {row["instance_id"]: _instance(row) for row in (*moved, *found)}
        return [by_id[one] for one in sorted(by_id, reverse=True)[:limit]]

    async def extras(self, batch_id: BatchId) -> UnsentExtras:
        return _extras(await self._database.fetch_first("unsent_extras", batch_id, MOST_EXTRAS))

    async def held_by(self, host_id: HostId, *, limit: int) -> Sequence[ListedInProgress]:
        return [held_instance(row) for row in await self._database.fetch("held_instances", host_id, limit)]


class PostgresViews(OnDatabase):
    """Read-only views of batches, jobs and hosts."""

    async def batch(self, batch_id: BatchId) -> Batch:
        return rows.batch(await self._database.fetch_known("batch_by_id", batch_id, kind="batch"))

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]:
        """Return the batches with these ids, without missing ones, in order of id."""
        return [rows.batch(row) for row in await self._database.fetch("batches_with", list(ids))]

    async def classes_of_batch(self, batch_id: BatchId) -> Sequence[JobClass]:
        return [rows.job_class(row) for row in await self._database.fetch("classes_of_batch", batch_id)]

    async def jobs(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[JobRow]:
        """Return jobs in order of id, without instances.

        The history is read last: a job moved in between is found twice, never missed.
        """
        found = await self._database.fetch("list_jobs", batch_id, limit, after or 0)
        moved = await self._database.fetch("list_finished_jobs", batch_id, limit, after or 0)
        by_id = {row["job_id"]: rows.job_row(row) for row in (*moved, *found)}
        return [by_id[job_id] for job_id in sorted(by_id)[:limit]]

    async def job(self, job_id: JobId) -> JobRow:
        """Return a job with its instances. All jobs have instances; a job without any was just moved to the history."""
        row = await self._database.fetch_one("job_by_id", job_id)
        instances = [] if row is None else await self._database.fetch("instances_of_job", job_id)
        if row is None or not instances:
            row = await self._database.fetch_known("finished_job_by_id", job_id, kind="job")
            instances = await self._database.fetch("finished_instances_of_job", job_id, row["batch_id"])
        return rows.job_row(row, tuple(rows.instance_row(instance) for instance in instances))

    async def job_of_instance(self, instance_id: InstanceId) -> JobRow:
        """Return the job of an instance of any age, with all its instances. Raises NotFoundError."""
        found = await self._database.fetch_known("job_of_instance", instance_id, kind="instance")
        return await self.job(found["job_id"])

    async def returned(self, batch_id: BatchId, instances: Sequence[InstanceId]) -> Mapping[InstanceId, Returned]:
        """Return what hosts returned for these instances, with recorded outputs in order of name.

        The history is read last, to find an instance that was moved in between.
        """
        found = list(await self._database.fetch("returned_instances", list(instances)))
        left = set(instances).difference(row["instance_id"] for row in found)
        if left:
            found += await self._database.fetch("returned_finished_instances", batch_id, sorted(left))
        return {row["instance_id"]: rows.returned(row) for row in found}

    async def hosts(self, *, limit: int, after: HostId | None = None) -> Sequence[Host]:
        return [rows.host(row) for row in await self._database.fetch("list_hosts", limit, after or 0)]

    async def host(self, host_id: HostId) -> tuple[Host, Sequence[HostAppVersion]]:
        host = rows.host(await self._database.fetch_known("host_by_id", host_id, kind="host"))
        found = await self._database.fetch("versions_of_hosts", [host_id])
        return host, [rows.host_app_version(row) for row in found]

    async def whose(self, ids: Sequence[BatchId]) -> Mapping[BatchId, Whose]:
        """Return the owners of these batches, without missing batches."""
        return {row["batch_id"]: _whose(row) for row in await self._database.fetch("whose_batches", list(ids))}

    async def account_name(self, account_id: AccountId) -> str:
        return str((await self._database.fetch_known("account_name", account_id, kind="account"))["name"])

    async def submitter_name(self, submitter_id: SubmitterId) -> str:
        return str((await self._database.fetch_known("submitter_name", submitter_id, kind="submitter"))["name"])

    async def app_name(self, app_id: AppId) -> str:
        return str((await self._database.fetch_known("app_name", app_id, kind="app"))["name"])

    async def check_counters(self) -> Sequence[str]:
        """Return a message for each (batch, shard) whose counters differ from its rows. This reads every instance."""
        return [
            f"batch {row['batch_id']}: counted {row['counted']}, rows say {row['expected']}"
            for row in await self._database.fetch("counters_that_differ")
        ]


Entry = tuple[HostPlace, SlowWith | None]  # a host in a list, and why it is slow


class PostgresHostLists(OnDatabase):
    """Implements the console's HostLists."""

    async def hosts(
        self, choice: HostChoice, *, after: HostPlace | None, limit: int, looked_at: int = LOOKED_AT
    ) -> HostList:
        match choice.kind:
            case HostKind.ALL | HostKind.WITHOUT_WORK | HostKind.SILENT:
                return await self._selected(choice, after, limit, looked_at)
            case HostKind.SLOW:
                return await self._page(await self._slow(after, limit + 1), limit)
            case HostKind.FAILING:
                raise ValueError("failing hosts are listed by AttentionViews")
            case HostKind.RESTRICTED:
                before = LAST_HOST_ID if after is None else after.host_id
                found = await self._database.fetch("restricted_hosts", before, limit + 1)
                return await self._page([(HostPlace(row["host_id"]), None) for row in found], limit)

    async def listed(self, host_ids: Sequence[HostId]) -> Mapping[HostId, ListedHost]:
        found = await self._database.fetch("listed_hosts", list(host_ids))
        return {row["host_id"]: _listed_host(row) for row in found}

    async def instances(
        self,
        host_id: HostId,
        volunteer_id: VolunteerId,
        *,
        state: InstanceState | None,
        after: ResultPlace | None,
        limit: int,
        looked_at: int = RESULTS_LOOKED_AT,
    ) -> HostInstances:
        begin = (float("inf"), LAST_ID) if after is None else (after.sent_at, after.instance_id)
        looked = await self._database.fetch("results_looked_at", volunteer_id, *begin, looked_at - 1)
        is_end = len(looked) < 2  # that one, and the next
        end = (float("-inf"), 0) if is_end else (looked[0]["sent_at"], looked[0]["instance_id"])
        found = await self._database.fetch("instances_of_host", host_id, volunteer_id, *begin, *end, state, limit + 1)
        instances = [_host_instance(row) for row in found[:limit]]
        if len(found) > limit:
            return HostInstances(instances, ResultPlace(instances[-1].sent_at, instances[-1].instance_id))
        return HostInstances(instances, None if is_end else ResultPlace(*end))

    async def names(self, host_ids: Sequence[HostId]) -> Mapping[HostId, str]:
        """Return the names that the hosts' clients report, without missing hosts."""
        found = await self._database.fetch("host_names", host_ids)
        return {row["host_id"]: row["domain_name"] for row in found}

    async def named(self, name: str, *, limit: int) -> Sequence[HostId]:
        """Return the first hosts whose clients report this name, in upper or lower case, by id."""
        return [row["host_id"] for row in await self._database.fetch("hosts_named", name, limit)]

    async def _slow(self, after: HostPlace | None, limit: int) -> list[Entry]:
        place = (-1.0, 0, 0) if after is None else (after.key, after.host_id, after.second)
        return [
            (HostPlace(row["host_id"], row["x"], row["app_version_id"]), _slow_with(row))
            for row in await self._database.fetch("slow_hosts", *place, limit)
        ]

    async def _selected(self, choice: HostChoice, after: HostPlace | None, limit: int, looked_at: int) -> HostList:
        """Return hosts, newest first. A filter reads at most `looked_at` hosts, so a page may be short."""
        since = choice.since if choice.kind is HostKind.SILENT else None
        called_since = choice.since if choice.kind is HostKind.WITHOUT_WORK else None
        having = (choice.platform.lower(), choice.label)
        if choice.text or choice.sort is not HostSort.NEWEST:
            start = (-inf, 0) if after is None else (after.key, after.host_id)
            asked = (choice.sort.key, choice.sort.sign, *start, limit + 1, since, *having)
            more = (choice.email.lower(), choice.text.lower(), called_since)
            found = await self._database.fetch("sorted_hosts", *asked, *more)
            return await self._page([(HostPlace(row["host_id"], row["key"]), None) for row in found], limit)
        before, last, is_end = LAST_HOST_ID if after is None else after.host_id, HostId(0), True
        if choice.email:
            found = await self._database.fetch("hosts_of_email", choice.email.lower(), before, limit + 1, *having)
        else:
            if choice.kind is not HostKind.ALL or any(having):
                looked = await self._database.fetch("hosts_looked_at", before, looked_at - 1)
                is_end = len(looked) < 2  # that one, and the next
                last = last if is_end else HostId(looked[0]["host_id"])
            found = await self._database.fetch("selected_hosts", before, last, since, limit + 1, *having, called_since)
        page = await self._page([(HostPlace(row["host_id"]), None) for row in found], limit)
        return page if page.after or is_end else HostList(page.hosts, HostPlace(last))

    async def _page(self, entries: Sequence[Entry], limit: int) -> HostList:
        """Return a page of entries, which include one extra entry."""
        shown = entries[:limit]
        hosts = await self.listed([place.host_id for place, _ in shown]) if shown else {}
        found = [replace(hosts[place.host_id], slow=slow) for place, slow in shown if place.host_id in hosts]
        return HostList(found, shown[-1][0] if len(entries) > limit else None)


OWN_RESULTS_LOOKED_AT = 5000  # results of all kinds, from which those to show are selected


class PostgresVolunteerViews(OnDatabase):
    """Reads the data of one volunteer only."""

    async def hosts(self, volunteer_id: VolunteerId, *, before: HostId | None, limit: int) -> Sequence[OwnHost]:
        """Return the volunteer's hosts, newest first."""
        last = LAST_HOST_ID if before is None else before
        return [_own_host(row) for row in await self._database.fetch("hosts_of_volunteer", volunteer_id, last, limit)]

    async def host(self, volunteer_id: VolunteerId, host_id: HostId) -> OwnHost:
        """Raises NotFoundError, also for another volunteer's host."""
        row = await self._database.fetch_known("host_of_volunteer", volunteer_id, host_id, kind="computer", key=host_id)
        return _own_host(row)

    async def held(
        self, volunteer_id: VolunteerId, *, host_id: HostId | None, limit: int
    ) -> Sequence[ListedInProgress]:
        """Return instances in progress, in order of due date."""
        found = await self._database.fetch("held_of_volunteer", volunteer_id, host_id, limit)
        return [held_instance(row) for row in found]

    async def results(
        self,
        volunteer_id: VolunteerId,
        *,
        outcome: Outcome | None,
        host_id: HostId | None,
        after: ResultPlace | None,
        limit: int,
    ) -> Sequence[OwnResult]:
        """Return finished results that are not in the history yet, the last sent first.

        Filters search only a limited number of the newest results, so that the time is bounded.
        """
        place: tuple[Any, ...] = (float("inf"), LAST_ID) if after is None else (after.sent_at, after.instance_id)
        states = None if outcome is None else [state for state, meant in OUTCOMES.items() if meant is outcome]
        looked_at = limit if outcome is None and host_id is None else OWN_RESULTS_LOOKED_AT
        found = await self._database.fetch(
            "results_of_volunteer", volunteer_id, *place, looked_at, host_id, states, limit
        )
        return [_own_result(row) for row in found]

    async def totals(self, volunteer_id: VolunteerId) -> OwnTotals:
        return _own_totals(await self._database.fetch_first("totals_of_volunteer", volunteer_id))
