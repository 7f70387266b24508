"""What a batch waits for whose instances have all been sent."""

from __future__ import annotations

from dataclasses import replace

from administration.explain.batch import awaited_in_words, awaited_of, expected_in_words, quiet_in_words
from administration.forecasts.service import BatchEnd
from domain.batches import BatchCounts
from domain.forecasts import ForecastState
from domain.jobs import InstanceState
from domain.units import HOUR_S, HostId, InstanceId, JobId, later
from domain.views import ListedInstance
from tests.builders import NOW, a_batch
from tests.facts import missing


def sent(number: int, ago_s: float, due_in_s: float, host: int, copied: str | None = None) -> ListedInstance:
    times = (later(NOW, -ago_s), later(NOW, due_in_s), None)
    of = (InstanceId(number), JobId(number), InstanceState.IN_PROGRESS)
    return ListedInstance(*of, int(bool(copied)), False, False, later(NOW, -ago_s), HostId(host), *times, "", copied)


def counts(in_progress: int, *, over: int = 0) -> BatchCounts:
    return BatchCounts(jobs_total=in_progress + over, jobs_validated=over, in_progress=in_progress)


def words(*read: ListedInstance, in_progress: int = 0) -> str:
    found = awaited_of(read, 0, counts(in_progress or len(read), over=2), NOW)
    assert found is not None
    return awaited_in_words(found, NOW)


def test_last_instances_have_hosts_and_due_dates() -> None:
    said = words(sent(1, 2 * HOUR_S, -300.0, 19), sent(2, HOUR_S, 1200.0, 12))

    assert not missing(said, "2 instances", "hosts 12, 19", "2 h ago", "1 overdue for 5 min")
    assert not missing(words(sent(1, HOUR_S, 600.0, 7)), "1 instance on host 7", "1 h ago", "due in 10 min")


def test_many_hosts_are_counted() -> None:
    read = [sent(number, HOUR_S, -60.0 * number, number) for number in range(1, 6)]

    assert not missing(words(*read), "5 instances on 5 hosts", "5 overdue", "for 5 min")
    assert not missing(words(*read, in_progress=900), "900 instances", "at least 5 hosts", "at least 5 overdue")


def test_jobs_are_counted_before_their_instances_and_copies() -> None:
    """The reason is that of the copy sent first."""
    originals = [sent(number, 210.0, 900.0, 7) for number in (1, 2)]
    copies = [sent(number, 7.0, 900.0, 8, f"no result after {number} times") for number in (3, 4)]

    found = awaited_of([*originals, *copies], 0, replace(counts(4), jobs_total=20, jobs_validated=18), NOW)

    assert found is not None and (found.jobs, found.jobs_open, found.copies) == (20, 2, 2)
    said = awaited_in_words(found, NOW)
    assert not missing(said, "2 of 20 jobs", "4 instances", "3 min", "2 copies")
    assert not missing(words(*originals, copies[0]), "1 copy")
    assert not missing(words(copies[0]), "1 instance", "a copy: no result", "due in 15 min")
    assert "cop" not in words(*originals) and "cop" not in words(originals[0])


def test_nothing_in_progress_is_not_awaited() -> None:
    assert awaited_of([], 0, counts(0), NOW) is None


def test_forecast_end_is_told_until_it_has_passed() -> None:
    shown = BatchEnd(ForecastState.SHOWN, later(NOW, -60.0), later(NOW, HOUR_S), None)
    paused = BatchEnd(ForecastState.PAUSED, None, None, None)

    assert not missing(expected_in_words(shown, NOW), "in 1 h")
    assert expected_in_words(shown, later(NOW, HOUR_S)) == expected_in_words(paused, NOW) == ""


def test_batch_is_quiet_two_minutes_after_its_last_new_job() -> None:
    def said(first_unsent: int, ago_s: float | None) -> str:
        last_at = None if ago_s is None else later(NOW, -ago_s)
        return quiet_in_words(a_batch(last_first_dispatch_at=last_at), first_unsent, NOW)

    assert not missing(said(1, 240.0), "4 min")
    assert said(1, None) and not said(1, 60.0) and not said(0, 240.0)
