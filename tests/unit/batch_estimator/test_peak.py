"""The capacity of an app whose history is sampled by row or by page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batch_estimator.peak import SampledInstances, in_progress
from batch_estimator.sending import capacity_of
from batch_estimator.snapshot import Floats, InstanceStanding, Ints, SentRows
from domain.units import DAY_S
from tests.unit.batch_estimator.snapshots import NOW, Sent, a_snapshot, hosts

DISPATCHES, LASTS_S, PAGE_ROWS, PAGES = 400_000, 600.0, 80, 200
NOTHING = np.zeros(0)


def history() -> tuple[Floats, Floats, Ints]:
    """Return dispatches at random times of 14 days, their ends, and the page of each: shared if they end together."""
    random = np.random.default_rng(1)
    sent_at = NOW - random.uniform(0.0, 14 * DAY_S, DISPATCHES)
    ended_at = sent_at + random.gamma(4.0, LASTS_S / 4, DISPATCHES)
    page = np.empty(DISPATCHES, np.int64)
    page[np.argsort(ended_at)] = np.arange(DISPATCHES) // PAGE_ROWS
    return sent_at, ended_at, page


SENT_AT, ENDED_AT, PAGE = history()
ARE_OUT = np.arange(1, DISPATCHES + 1) - np.searchsorted(np.sort(ENDED_AT), np.sort(SENT_AT), side="right")
PEAK = float(ARE_OUT.max())


def sampled(weight: int, *, by_page: bool, seed: int) -> Ints:
    """Return the positions of every `weight`-th dispatch, chosen at random among all, or among those on some pages."""
    random, rows = np.random.default_rng(seed), DISPATCHES // weight
    pages = random.choice(DISPATCHES // PAGE_ROWS, max(PAGES, rows // PAGE_ROWS), replace=False)
    among = np.flatnonzero(np.isin(PAGE, pages)) if by_page else np.arange(DISPATCHES)
    return random.choice(among, rows, replace=False)


@pytest.mark.parametrize("by_page", [False, True], ids=["rows", "pages"])
@pytest.mark.parametrize("weight", [1, 5, 50, 500])
def test_capacity_does_not_grow_with_the_weight(weight: int, by_page: bool) -> None:
    found = []
    for seed in range(1 if weight == 1 else 4):
        some = sampled(weight, by_page=by_page, seed=seed)
        ended_at = np.where(ENDED_AT > NOW, np.nan, ENDED_AT)[some]
        standing = np.where(np.isnan(ended_at), InstanceStanding.IN_PROGRESS, InstanceStanding.SUCCESS)
        rows = SentRows(some % 40, np.ones(len(some), np.int64), standing, SENT_AT[some], ended_at, PAGE[some])
        waiting = a_snapshot([Sent(0, InstanceStanding.UNSENT)], hosts(40), sent_weight=float(weight))
        found.append(capacity_of(replace(waiting, sent=rows), LASTS_S, LASTS_S).rate_per_s * LASTS_S / PEAK)

    assert min(found) > 0.6 and max(found) < 1.4
    assert np.mean(found) < 1.2


def test_rows_of_one_page_are_no_peak() -> None:
    """Forty rows for 50 instances each: one page shows less than forty pages, and own rows show all."""
    sent_at = np.concatenate([-DAY_S + np.arange(40.0), np.linspace(-14 * DAY_S, -LASTS_S, 400)])
    ended_at, apart = sent_at + LASTS_S, np.arange(440)
    together = np.where(apart < 40, 0, apart)

    def most(sample: SampledInstances, sent_at: Floats = NOTHING, ended_at: Floats = NOTHING) -> float:
        return in_progress(sent_at, ended_at, sample, since=-14 * DAY_S, now=0.0, lasts_s=LASTS_S).most

    one_page, many = [most(SampledInstances(sent_at, ended_at, pages, 50.0)) for pages in (together, apart)]
    own = most(SampledInstances(NOTHING, NOTHING, np.zeros(0, np.int64), 1.0), sent_at, ended_at)

    assert one_page < 400.0 < 1000.0 < many < 40 * 50.0
    assert own == pytest.approx(40.0)
