"""The conclusion of an explanation, from made-up answers of hosts."""

from __future__ import annotations

from dataclasses import replace

from administration.explain.host import silence_in_words
from administration.explain.verdict import (
    HostAnswer,
    calling_hosts,
    class_conditions,
    conclusion,
    host_conclusion,
    suggestion_of,
)
from domain.dispatch import RequestKey
from domain.insight import Caller, WorkAhead
from domain.ranking import Gate, Percentile
from domain.refusals import Need, Refusal, RefusalCode
from domain.settings import Settings
from domain.units import HostId, Instant, Seconds
from scheduler.deadline.inputs import below_gate, busy_below_gate, too_slow
from tests.facts import missing

HOUR_S = 3600.0


def memory(has: float, asked: float = 1e13) -> Refusal:
    sentence = "{0} of RAM, host offers {1}"
    return Refusal(RefusalCode.MEMORY, sentence, (asked, has), Need.BYTES)


def refused(*refusals: Refusal, host_id: int = 1, rate: float = 1.0) -> HostAnswer:
    return HostAnswer(host_id, rate, 0, 0.0, refusals)


def taker(free_s: float = 0.0) -> HostAnswer:
    return HostAnswer(9, 1.0, 2, free_s, ())


def busy(before_s: float, own_s: float = HOUR_S) -> Refusal:
    return too_slow("queued work", before_s, "runtime", own_s, 10 * HOUR_S)


def test_verdict_names_the_value_that_hosts_have() -> None:
    answers = [refused(memory(64e9)) for _ in range(12)] + [refused(memory(8e9)) for _ in range(30)]

    found = calling_hosts(answers)

    [condition] = found.held_back
    assert condition.suggestion is not None
    assert [(one.value, one.passes) for one in condition.suggestion.options] == [(64e9, 12), (8e9, 42)]
    said = conclusion(found, WorkAhead())
    assert not missing(said, "None of 42 hosts", "10 TB", "12 hosts", "64 GB", "submit")


def test_hosts_that_finish_their_work_in_time_are_busy() -> None:
    """47 of 60 hosts are fast enough once their queue is shorter; the first in 30 min."""
    answers = [refused(busy(9.5 * HOUR_S)), *(refused(busy(20 * HOUR_S)) for _ in range(46))]
    answers += [refused(busy(0.0, 30 * HOUR_S), rate=9.0) for _ in range(13)]

    found = calling_hosts(answers)

    assert (found.waiting, found.takers, found.free_s) == (47, 0, 0.5 * HOUR_S)
    assert not missing(conclusion(found, WorkAhead()), "47 of 60 hosts", "are fast enough", "busy", "30 min")


def test_hosts_that_used_up_their_quota_are_not_busy() -> None:
    quota = Refusal(RefusalCode.DAILY_QUOTA, "50 jobs sent today, the daily quota is 50")

    said = conclusion(calling_hosts([refused(quota), *(refused(memory(8e9)) for _ in range(3))]), WorkAhead())

    assert not missing(said, "None of 4 hosts", "1 has used up") and "busy" not in said


def test_takers_without_an_idle_processor_are_busy() -> None:
    found = calling_hosts([taker(600.0), taker(7200.0), refused(memory(8e9))])

    assert (found.takers, found.idle, found.free_s, found.jobs) == (2, 0, 600.0, 4)
    assert not missing(conclusion(found, WorkAhead()), "2 of 3 hosts", "busy", "10 min")


def test_idle_takers_wait_for_the_work_ahead() -> None:
    found = calling_hosts([taker(), taker(50.0)])

    assert found.idle == 1
    assert not missing(conclusion(found, WorkAhead(3, 70)), "2 of 2 hosts", 1, "3 batches")
    assert "batches" not in conclusion(found, WorkAhead())
    assert not missing(
        conclusion(found, WorkAhead(), sent_first="sent first, as it is due"), "and it is sent first, as"
    )
    assert not missing(conclusion(found, WorkAhead(2, 5), sent_first="sent first"), "2 batches")


def test_verdict_says_why_nothing_is_sent() -> None:
    """The work ahead uses up the share of each host's jobs that may be behind a gate."""
    settings = Settings().changed("scheduler.urgent_share_fraction", 0.25).as_mapping()
    gated, free = replace(taker(), shared=True), taker()

    most, some = (calling_hosts(hosts, settings) for hosts in ([gated, gated, free], [gated, free, free]))

    assert not missing(
        conclusion(most, WorkAhead(1, 214), quiet="Nothing was sent"), "Nothing was sent, because", "1 batch"
    )
    assert (most.gated_share, some.gated_share) == (0.25, 1.0)


def test_a_condition_of_most_hosts_is_why_nothing_is_sent() -> None:
    """Four instances ahead alone would not keep the batch for minutes."""
    most = conclusion(calling_hosts([taker(), *[refused(memory(8e9))] * 3]), WorkAhead(1, 4), quiet="Nothing was sent")
    some = conclusion(calling_hosts([taker(), taker(), refused(memory(8e9))]), WorkAhead(1, 4), quiet="Nothing")

    assert not missing(most, "because 3 of 4 hosts", "memory and 1 batch")
    assert not missing(some, "because 1 batch")


def test_limit_that_blocks_the_batch_comes_first() -> None:
    found = calling_hosts([taker()])

    assert not missing(conclusion(found, WorkAhead(1, 1), blocked="MAXPROC 4 of 4"), "blocked", "MAXPROC 4 of 4")
    pause = conclusion(found, WorkAhead(), blocked="queue bonus is paused by ada: the disk is full")
    assert not missing(pause, "None of its jobs", "queue bonus", "the disk is full")


def test_host_counts_under_each_reason_once() -> None:
    platform = Refusal(RefusalCode.PLATFORM, "no version")

    found = calling_hosts([refused(memory(1e9), memory(1e9), platform), refused(platform, rate=5.0)])

    counts = [(one.code.value, one.hosts, one.calls_per_hour) for one in found.held_back]
    assert counts == [("platform", 2, 6.0), ("memory", 1, 1.0)]
    assert found.held_back[0].suggestion is None


def test_closest_class_of_a_host_counts() -> None:
    found = suggestion_of([[memory(8e9, 64e9), memory(8e9, 16e9)], [memory(12e9, 64e9)]])

    assert found is not None
    assert (found.asked, [(one.value, one.passes) for one in found.options]) == (16e9, [(12e9, 1), (8e9, 2)])


def test_submitted_jobs_are_submitted_again_with_the_value() -> None:
    large = [[memory(32e9, 100e9)], [memory(16e9, 100e9)]]

    submitted, planned = suggestion_of(large), suggestion_of(large, is_submitted=False)

    assert submitted is not None and planned is not None and submitted.options == planned.options
    assert not missing(submitted.words, "submit", "at most 32 GB", "16 GB") and missing(submitted.words, "memory_bytes")
    assert missing(planned.words, "submit") and not missing(planned.words, "lower memory_bytes", "32 GB", "16 GB")


def test_only_the_most_frequent_gate_counts() -> None:
    tight = [[below_gate(Percentile(p), Gate.TIGHT, 0.9)] for p in (0.8, 0.85)]
    late = [[below_gate(Percentile(0.3), Gate.LATE, 0.5)]]
    newcomer = [[below_gate(Percentile(None), Gate.TIGHT, 0.9)]]

    found = suggestion_of([*late, *tight, *newcomer])

    assert found is not None and found.key == "deadline.p_tight"
    assert [(one.value, one.passes) for one in found.options] == [(0.85, 1), (0.8, 2)]


def test_lowered_gate_tells_the_value_set() -> None:
    tight = [[below_gate(Percentile(p), Gate.TIGHT, 0.5)] for p in (0.3, 0.35)]

    found = suggestion_of(tight, {"deadline.p_tight": 0.9})

    assert found is not None and (found.asked, found.set_to) == (0.5, 0.9)
    assert not missing(found.words, "p_tight", 0.5, 0.9, 0.35)


def test_gate_as_set_tells_one_value() -> None:
    found = suggestion_of([[below_gate(Percentile(0.3), Gate.TIGHT, 0.9)]], {"deadline.p_tight": 0.9})

    assert found is not None and found.asked == found.set_to == 0.9
    assert missing(found.words, "0.5")


def test_change_that_adds_few_requests_is_not_offered() -> None:
    slow = refused(below_gate(Percentile(0.2), Gate.TIGHT, 0.5), rate=3.64)
    busy_hosts = [HostAnswer(9, rate, 2, 0.0, ()) for rate in (35.3, 30.0)]

    [little] = calling_hosts([slow, *busy_hosts]).held_back
    [much] = calling_hosts([slow, HostAnswer(9, 30.0, 2, 0.0, ())]).held_back

    assert little.suggestion is not None and little.suggestion.options == ()
    assert not missing(little.suggestion.words, 3.6, 65.3)
    assert much.suggestion is not None and [one.value for one in much.suggestion.options] == [0.2]


def test_silence_of_a_host_is_told_with_its_usual_interval() -> None:
    """Within an hour, nothing is told. A host with a single request has no interval."""
    host = Caller(HostId(7), RequestKey(b"", HostId(7)), Instant(0.0), Seconds(HOUR_S))
    single = replace(host, rpc_interval_s=None)

    said, soon, alone = (
        silence_in_words("swan (7)", *one)
        for one in ((host, Instant(14.5 * HOUR_S)), (host, Instant(HOUR_S)), (single, Instant(25.0 * HOUR_S)))
    )

    assert not missing(said, "swan (7)", "14 h 30 min", "1 h") and not missing(alone, "1 d 1 h") and soon == ""


def test_host_headline_has_the_reason_of_most_groups() -> None:
    groups = [[memory(67e6)], *([memory(67e6, 1e8)] for _ in range(7))]

    found = class_conditions(groups)
    said = host_conclusion("220", refused(), found, batches=0, groups=9)

    assert [one.groups for one in found] == [8]
    assert not missing(said, "Host 220", "8 of 9 groups", "100 MB to 10 TB", "67 MB")
    assert not missing(found[0].help, "7 groups", "100 MB", "8", "10 TB")


def test_missing_and_low_ranks_are_two_conditions() -> None:
    """What helps differs: results for one, a threshold for the other, less queued work for a busy host."""
    low, none = Percentile(0.3), Percentile(None)
    busy = busy_below_gate(low, Gate.AFAP, 0.5, 9.0 * HOUR_S, 2.0 * HOUR_S)

    found = class_conditions([[below_gate(low, Gate.AFAP, 0.5)], [below_gate(none, Gate.AFAP, 0.5)], [busy]])

    asked = {one.code: one.suggestion and one.suggestion.key for one in found}
    gate = "deadline.p_afap"
    assert asked == {"below_gate": gate, "busy_below_gate": gate, "no_rank": None}
    assert [HostAnswer(1, 1.0, 0, 0.0, (one,)).wait_s for one in (busy, below_gate(low, Gate.AFAP, 0.5))] == [
        7.0 * HOUR_S,
        None,
    ]


def test_host_headline_counts_one_condition_once() -> None:
    sentence = "app {0} has no version for {2}, only for {1}"
    apps = [
        [Refusal(RefusalCode.PLATFORM, sentence, (app, "linux", "windows_x86_64", ("windows_x86_64",)))]
        for app in ("pi", "sieve", "sieve")
    ]

    [found] = class_conditions(apps)
    said = host_conclusion("7", refused(), [found], batches=0, groups=4)

    assert said.count("groups") == 1 and not missing(said, "app sieve", "3 of 4 groups")
    assert not missing(found.help, "pi", "sieve", "windows_x86_64")


def test_reasons_agree_with_the_number_of_hosts() -> None:
    banned = Refusal(RefusalCode.BANNED, "banned")

    one, two = (conclusion(calling_hosts([refused(banned)] * hosts), WorkAhead()) for hosts in (1, 2))

    assert not missing(one, "1 is banned") and not missing(two, "2 are banned")
