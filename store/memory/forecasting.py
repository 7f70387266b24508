"""Reads the completion estimator's input for a batch from memory. Unchanged data are not read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from domain.apps import CPU, VersionState
from domain.batches import BatchState
from domain.catalogue import Catalogue, current_versions
from domain.forecasting import (
    ACTIVE_WITHIN_S,
    FORECAST_HAV_FIELDS,
    INSTANCE_FIELDS,
    NEVER_MOVED,
    OTHERS_MOST,
    SAMPLED_HAV_FIELDS,
    SENT_FIELDS,
    SENT_MOST,
    SENT_WITHIN_S,
    STANDINGS,
    AppTables,
    BatchTables,
    BatchTerms,
    SendPlace,
    SendRank,
    counted_since,
    moved_ahead,
)
from domain.hosts import HostAppVersion
from domain.restrictions import pause_of
from domain.settings import Settings
from domain.units import AppId, AppVersionId, BatchId, HostId, Instant
from store.binary_copy import Table, native_dtype
from store.memory.columns import BatchColumns, Pair
from store.memory.rows import StoredBatch, StoredInstance
from store.memory.work import Dispatches, OnTables
from store.settings import PAUSE

NAN = float("nan")
LOOKED_AT = 2 * SENT_MOST  # number of an app's recent dispatches read, evenly spaced;
LOOKED_AT_MORE, LEAST_SENT = 20 * LOOKED_AT, 200  # used if these include fewer from other batches


class MemoryForecasting(OnTables):
    """Implements batch_estimator's ForecastTables. A sample takes every n-th row."""

    async def of_batch(self, batch_id: BatchId, *, now: Instant) -> BatchTables[Table] | None:
        batch = self._work.batches.get(batch_id)
        if batch is None or batch.state is not BatchState.ACTIVE:
            return None
        columns = self._columns(batch)
        jobs, instances = columns.jobs(), columns.instances()
        app_id = batch.new.app_id
        sent, sent_weight = self._sent(app_id, batch, now)
        return BatchTables(
            self._terms(batch, now, begun=bool((instances["host_id"] >= 0).any())),
            jobs,
            instances,
            self._havs(instances, sent),
            self._others(self._versions(app_id)),
            1.0,
            sent,
            sent_weight,
        )

    async def of_app(self, app_id: AppId, place: SendPlace, *, now: Instant) -> AppTables[Table] | None:
        if app_id not in self._registry.apps:
            return None
        sent, sent_weight = self._sent(app_id, None, now)
        catalogue = self._catalogue()
        rank = place.rank(app_id, catalogue, now)
        return AppTables(
            *self._active(now),
            self._havs(np.empty(0, native_dtype(INSTANCE_FIELDS)), sent),
            self._others(self._versions(app_id)),
            1.0,
            sent,
            sent_weight,
            *_ahead(
                [other for other in self._ready(catalogue) if _rank(other, catalogue, now) < rank], app_id, catalogue
            ),
            place.first_from(app_id, catalogue),
            self._withdrawn(app_id),
        )

    def _catalogue(self) -> Catalogue:
        """Return the apps with their current versions, the settings and cut points only."""
        settings, _ = Settings.from_stored(self._registry.changed_settings)
        apps, current = self._registry.apps, current_versions(self._registry.versions)
        return Catalogue(apps, current=current, cut_points=self._registry.cut_points, settings=settings)

    def _columns(self, batch: StoredBatch) -> BatchColumns:
        if not isinstance(batch.columns, BatchColumns):
            batch.columns = BatchColumns(batch, self._work.jobs)
        return batch.columns

    def _versions(self, app_id: AppId) -> set[AppVersionId]:
        return {version.app_version_id for version in self._registry.versions.values() if version.app_id == app_id}

    def _withdrawn(self, app_id: AppId) -> frozenset[int]:
        gone = VersionState.WITHDRAWN, VersionState.ABORTED
        versions = self._registry.versions.values()
        return frozenset(int(one.app_version_id) for one in versions if one.app_id == app_id and one.state in gone)

    def _active(self, now: Instant) -> tuple[int, float, float]:
        """Return the number of active hosts, their median speed, and the number of their available processors."""
        hosts = self._work.host_columns.of_hosts()
        active = hosts[hosts["last_rpc_at"] >= now - ACTIVE_WITHIN_S]
        median = float(np.median(active["flop_per_s"])) if active.size else NAN
        return active.size, median, float(np.sum(active["ncpus"] * active["cpu_fraction"]))

    def _terms(self, batch: StoredBatch, now: Instant, *, begun: bool) -> BatchTerms:
        held = batch.hold is not None or self._is_paused(batch)
        moved_at = counted_since(batch.moved_at, now, submitted_at=batch.new.created_at)
        is_served = begun and not held and moved_at == NEVER_MOVED
        catalogue = self._catalogue()
        return BatchTerms(
            batch.batch_id,
            batch.new.app_id,
            batch.new.created_at,
            max(one.delay_bound_s for one in batch.classes),
            batch.new.qos,
            *self._active(now),
            *_ahead([] if is_served else self._ahead_of(batch, catalogue, now), batch.new.app_id, catalogue),
            held,
            moved_at,
            _place(batch).first_from(batch.new.app_id, catalogue),
            moved_ahead(batch.new.order_tier, batch.foremost_tier),
            self._withdrawn(batch.new.app_id),
        )

    def _is_paused(self, batch: StoredBatch) -> bool:
        pauses = self._registry.restrictions
        is_down = self._registry.changed_settings.get(PAUSE) is True
        return is_down or (bool(pauses) and pause_of(pauses, batch.as_batch()) is not None)

    def _ahead_of(self, batch: StoredBatch, catalogue: Catalogue, now: Instant) -> list[StoredBatch]:
        own = _rank(batch, catalogue, now)
        return [one for one in self._ready(catalogue) if _rank(one, catalogue, now) < own]

    def _ready(self, catalogue: Catalogue) -> list[StoredBatch]:
        """Return the ready batches of the apps whose jobs are sent."""
        apps = catalogue.sent_apps()
        return [one for _, _, batch_id in self._work.ready if (one := self._work.batches[batch_id]).new.app_id in apps]

    def _sent(self, app_id: AppId, batch: StoredBatch | None, now: Instant) -> tuple[Table, float]:
        """Return SENT_FIELDS for a sample of recent dispatches from other batches, and the weight of each."""
        sent = self._work.dispatches.get(app_id) or Dispatches()
        since = Instant(now - SENT_WITHIN_S)
        rows: list[StoredInstance] = []
        step = 0
        for looked_at in (LOOKED_AT, LOOKED_AT_MORE):
            if len(rows) < LEAST_SENT and step != 1:
                step = max(1, -(-sent.since(since) // looked_at))
                rows = self._dispatched(sent.every(step, since), batch)
        most = max(1, -(-len(rows) // SENT_MOST))
        table = np.array([(*_sent(row), len(rows), row.instance_id) for row in rows[::most]], native_dtype(SENT_FIELDS))
        return table, float(max(1, step))

    def _dispatched(self, sent: Iterable[tuple[float, int]], batch: StoredBatch | None) -> list[StoredInstance]:
        """Return the instances except those of this batch, purged instances, and instances sent again since."""
        instances, purged = self._work.instances, self._work.purged
        return [
            row
            for at, number in sent
            if (row := instances[number - 1]).sent_at == at
            and (job := row.job).batch is not batch
            and job.job_id not in purged
        ]

    def _others(self, versions: set[AppVersionId]) -> Table:
        found = self._work.host_columns.of_versions(versions)
        some = found[:: max(1, -(-found.size // OTHERS_MOST))]
        table = np.empty(some.size, native_dtype(SAMPLED_HAV_FIELDS))
        for name, _ in FORECAST_HAV_FIELDS:
            table[name] = some[name]
        table["found"] = found.size
        return table

    def _havs(self, instances: Table, sent: Table) -> Table:
        """Return FORECAST_HAV_FIELDS for each (host, app version) in either table."""
        both = [instances[instances["host_id"] >= 0], sent]
        keys = [rows["host_id"].astype(np.int64) << 32 | rows["app_version_id"].astype(np.int64) for rows in both]
        every = np.unique(np.concatenate(keys)).tolist()
        pairs: list[Pair] = [(HostId(key >> 32), AppVersionId(key & 0xFFFFFFFF)) for key in every]
        found, missing = self._work.host_columns.of_pairs(pairs)
        table = np.empty(found.size, native_dtype(FORECAST_HAV_FIELDS))
        for name, _ in FORECAST_HAV_FIELDS:
            table[name] = found[name]
        if not missing:
            return table
        return np.concatenate([table, np.array([self._unknown(pair) for pair in missing], table.dtype)])

    def _unknown(self, pair: Pair) -> tuple[object, ...]:
        """Return the fields of FORECAST_HAV_FIELDS for a pair without a row."""
        row, last_rpc_at = HostAppVersion(*pair), self._work.hosts[pair[0]].host.last_rpc_at
        return (*pair, row.log_n, row.log_sum, row.log_sum_sq, row.n_error, row.n_timeout, row.n_due, last_rpc_at)


def _place(batch: StoredBatch) -> SendPlace:
    new = batch.new
    return SendPlace(new.qos, new.deadline_at, new.unpaid, new.order_tier, new.order_key, batch.batch_id)


def _rank(batch: StoredBatch, catalogue: Catalogue, now: Instant) -> SendRank:
    return _place(batch).rank(batch.new.app_id, catalogue, now)


def _ahead(batches: Sequence[StoredBatch], app_id: AppId, catalogue: Catalogue) -> tuple[int, int, float]:
    """Return the unsent instances of the app, those of other apps, and what the latter need of CPUs in flop."""
    others = [one for one in batches if one.new.app_id != app_id]
    of_app = sum(one.counts.unsent for one in batches if one.new.app_id == app_id)
    return (
        of_app,
        sum(one.counts.unsent for one in others),
        sum(
            one.counts.unsent * one.instance_flop for one in others if CPU in catalogue.processor_types(one.new.app_id)
        ),
    )


def _sent(row: StoredInstance) -> tuple[object, ...]:
    """Return the fields of SENT_FIELDS except `found` and `page`."""
    reported_at = NAN if row.reported_at is None else row.reported_at
    return (
        row.host_id,
        row.app_version_id,
        STANDINGS[row.state],
        row.sent_at,
        reported_at,
        row.job.job_class.fpops_est_flop,
    )
