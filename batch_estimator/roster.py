"""What is known of each (host, app version) that the batch or its app has met? Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Floats, Ints, Snapshot, Standing


@dataclass(frozen=True, slots=True, eq=False)
class Roster:
    """One entry per (host, app version), and which entry each instance belongs to.

    Sums are those of the app's other work, zero where there is none. `n_lost` counts time-outs and what was aborted
    after its due date: where copies finish the jobs of lost instances, these do not time out. `last_contact_at` is the
    latest contact known: the host's last request, or a sending or reply of this batch.
    """

    host_id: Ints
    n_success: Floats
    sum_ln: Floats
    n_lost: Floats
    n_due: Floats
    last_contact_at: Floats
    of_instance: Ints  # -1 for an unsent instance
    of_sent: Ints


def roster_of(snapshot: Snapshot) -> Roster:
    """Join the sums, the batch's instances and the sample by (host, app version)."""
    instances, havs, sent = snapshot.instances, snapshot.havs, snapshot.sent
    was_sent = np.flatnonzero(instances.standing != Standing.UNSENT)
    hosts = np.concatenate([havs.host_id, instances.host_id[was_sent], sent.host_id])
    versions = np.concatenate([havs.app_version_id, instances.app_version_id[was_sent], sent.app_version_id])
    span = int(versions.max(initial=0)) + 2
    keys, entry = np.unique(hosts * span + versions + 1, return_inverse=True)
    of_hav, of_batch, of_sent = np.split(entry, [len(havs.host_id), len(havs.host_id) + len(was_sent)])
    of_instance = np.full(len(instances.job), -1, dtype=np.int64)
    of_instance[was_sent] = of_batch

    def column(values: Ints | Floats) -> Floats:
        return np.bincount(of_hav, weights=values, minlength=len(keys)).astype(np.float64)

    contact = np.full(len(keys), -np.inf)
    np.fmax.at(contact, of_hav, havs.last_rpc_at)
    np.fmax.at(contact, of_batch, np.fmax(instances.sent_at[was_sent], instances.reported_at[was_sent]))
    return Roster(
        keys // span,
        column(havs.n_success),
        column(havs.sum_ln),
        column(np.maximum(havs.n_timeout, havs.n_due - havs.n_success - havs.n_error)),
        column(havs.n_due),
        contact,
        of_instance,
        of_sent,
    )
