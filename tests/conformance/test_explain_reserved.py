"""Tests explanations of reservations for big jobs, on every store."""

from __future__ import annotations

from administration.explain.words import batch_in_words, host_in_words
from domain.dispatch import RequestWrites
from domain.reservations import Kept, LeaseEnd
from domain.units import Instant, later
from tests.builders import NOW
from tests.conformance.test_explain import a_calling_host, explain
from tests.conformance.test_reserving import a_lease
from tests.facts import missing
from tests.stores import Store
from tests.worlds import a_registered_version, a_submitted_batch


async def test_lease_and_slot_are_shown_for_host_and_batch(store: Store) -> None:
    await a_registered_version(store)
    big, small = await a_submitted_batch(store, jobs=3), await a_submitted_batch(store, jobs=3)
    host = await a_calling_host(store, ncpus=8)
    lease = a_lease(host, big.batch_id)
    await store.ledger.write(RequestWrites(host.host, lease=lease))
    kept = [Kept(big.batch_id, later(NOW, -120.0))]
    await store.reserving.reserve(kept, [], forget_before=Instant(0.0), now=NOW)

    shown_host = await explain(store).host(host.host_id)
    shown_batch = await explain(store).batch(big.batch_id)
    other = await explain(store).batch(small.batch_id)

    held = (f"host {host.host_id}", f"leased to batch {big.batch_id}:", "8 of its processors (cpu)", "in 1 h")
    assert not missing(host_in_words(shown_host), *held)
    assert not missing(batch_in_words(shown_batch), *held, "slot of every job array", "reserved")
    assert (other["kept"], other["lease"]) == (None, None)

    end = LeaseEnd(host.host_id, big.batch_id, "expired 5 s ago", of_use=False)
    await store.reserving.reserve([], [end], forget_before=Instant(0.0), now=NOW)

    words = host_in_words(await explain(store).host(host.host_id))
    assert not missing(words, f"leased to batch {big.batch_id}", "without effect", end.because)
    assert (await explain(store).batch(big.batch_id))["lease"] is None
