"""Facts become items: which ones, how severe, with which numbers and links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from administration.access.who import Person
from administration.apps import LostVersion
from administration.attention.item import AttentionFacts, AttentionKind, Item, counts_of, item_as_json
from administration.attention.items import failing_alike, items_of
from administration.stopped import Stopped
from administration.unschedulable import RefusedByAll, by_batch
from domain.access import Act, Role
from domain.apps import VersionState
from domain.attention import LOOKED_AT, FailingHost, FailingVersion, HostContacts, Upkeep
from domain.batches import Batch, BatchCounts, BatchState, QoS
from domain.forecasts import ForecastHold, HoldKind, Method, Terms
from domain.insight import Short
from domain.ordering import ServiceLevel
from domain.restrictions import Restricted, Restriction
from domain.units import DAY_S, HOUR_S, AppVersionId, BatchId, HostId, Instant, Seconds, SubmitterId, later
from domain.views import ProcessReport
from tests.builders import NOW, a_batch, an_app_version
from tests.facts import missing
from tests.unit.administration.forecasts.test_words import RECORD

B = BatchId(1)
FORECAST = replace(RECORD, jobs_failed=0)
OLGA = Person("olga", Role.OPERATOR, Role.OPERATOR.rights)
PETRA = Person("petra", Role.SUBMITTER, Role.SUBMITTER.rights, submitter_id=a_batch().submitter_id)
JONAS = Person("jonas", Role.SUBMITTER, Role.SUBMITTER.rights, submitter_id=SubmitterId(99))


def a_background(*duties: dict[str, Any]) -> ProcessReport:
    return ProcessReport("a: background", "background", NOW, {"duties": list(duties)})


HEALTHY = AttentionFacts(
    NOW,
    batches=(),
    last={},
    short={},
    stopped=Stopped(),
    waiting={B: a_batch(name="trio")},
    processes=(a_background(),),
    deadlines={"sweeper": later(NOW, 10.0)},
    versions=(),
    hosts=(),
    contacts=HostContacts(100, 19),
    upkeep=Upkeep(later(NOW, -DAY_S), later(NOW, -9 * DAY_S), 5, 0),
    backup_age_s=Seconds(2 * DAY_S),
)


def a_failing_version(**changes: Any) -> FailingVersion:
    """Most of its failures are of no batch in particular."""
    version = FailingVersion(AppVersionId(3), "pi", "x86_64-pc-linux-gnu", 102, "", 340, 40, 25, B, 34)
    return replace(version, **changes)


def items(**changes: Any) -> list[Item]:
    return items_of(replace(HEALTHY, **changes))


def only(**changes: Any) -> Item:
    [found] = items(**changes)
    return found


def links(item: Item, person: Person) -> list[str]:
    return [one.link for one in item.remedies_for(person)]


def a_late_batch(deadline_s: float, **changes: Any) -> Batch:
    counts = BatchCounts(jobs_total=40, jobs_validated=28)
    values: dict[str, Any] = {"counts": counts, "name": "trio", **changes}
    return a_batch(qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, deadline_s), **values)


def test_a_healthy_project_needs_nothing() -> None:
    assert items() == []
    assert set(counts_of([]).values()) == {0}


def test_missed_deadline_has_its_delay_and_open_jobs() -> None:
    found = only(batches=[a_late_batch(-840.0)])

    assert (found.kind, found.severe, found.batch_id, found.since_at) == (AttentionKind.MISSED, True, B, NOW - 840.0)
    assert found.figures == {"late_by_s": 840.0, "probability": 1.0, "jobs_open": 12}
    assert not missing(found.sentence, "14 min", "12 of 40 jobs")
    assert (found.subject, found.link, found.why) == ("batch 1 trio", "batches/1", "batches/1/why")


@pytest.mark.parametrize(
    ("results", "sending_s", "helps"),
    [(0.95, 60.0, False), (0.95, 900.0, True), (0.7, 60.0, True), (0.0, 60.0, True)],
)
def test_level_is_no_remedy_if_the_results_take_longest(results: float, sending_s: float, helps: bool) -> None:
    """As on the page that says what holds the batch back. Sending may take longer than is left until the deadline."""
    terms = Terms(12, 0, Seconds(sending_s), 0.0, 0.0, 0.0, Seconds(60.0), 0.0)
    doubts = {HoldKind.IN_PROGRESS: results, HoldKind.NOT_SENT: 1.0 - results}
    holds = tuple(ForecastHold(kind, 5, doubt, (), "they take long") for kind, doubt in doubts.items() if doubt)
    last = replace(FORECAST, terms=terms, holds=holds)
    risky = a_late_batch(600.0, counts=BatchCounts(jobs_total=40, jobs_validated=28, unsent=9))

    found = only(batches=[risky], last={B: last})

    assert (found.kind, len(links(found, OLGA))) == (AttentionKind.AT_RISK, 4 if helps else 3)


def test_remedies_are_pages_that_the_user_may_use() -> None:
    counts = BatchCounts(jobs_total=40, jobs_validated=28, unsent=9)
    found = only(batches=[a_late_batch(-840.0, counts=counts)])

    form, end, why = "batches/1#h-act", "batches/1/abort", "batches/1/why"
    assert links(found, OLGA) == [why, form, form, end]
    assert links(found, PETRA) == [why, form, "", end]  # only operators set the level of any batch: ask one
    assert links(found, JONAS) == [why]
    assert item_as_json(found, JONAS)["remedy"].count(";") == 0
    assert "expedite" in item_as_json(found, OLGA)["remedy"]


def test_level_is_no_remedy_once_all_is_sent_or_expedite() -> None:
    unsent = BatchCounts(jobs_total=40, jobs_validated=28, unsent=9)
    sent, level, first, helped = (
        item_as_json(only(batches=[a_late_batch(-840.0, counts=unsent, **changes)], **facts), OLGA)["remedy"]
        for changes, facts in (
            ({}, {"all_sent": [B]}),  # what is unsent are retries or copies
            ({"level": ServiceLevel.EXPEDITE}, {}),
            ({}, {"first": {B: False}}),
            ({}, {"first": {B: True}}),
        )
    )
    assert all("set its level" not in one for one in (sent, level, first)) and "set its level" in helped


def test_late_batch_that_is_paused_can_be_resumed() -> None:
    pause = Restriction(Restricted.BATCH, "1", 0, "wrong input", "ada", NOW)

    found = only(batches=[a_late_batch(-840.0)], stopped=Stopped(restrictions={(Restricted.BATCH, "1"): pause}))

    assert not missing(found.sentence, "paused by ada") and "batches/1" in links(found, OLGA)


@pytest.mark.parametrize(("kind", "all_sent"), [(Restricted.APP, [B]), (Restricted.APP, []), (Restricted.BATCH, [B])])
def test_pause_of_an_app_is_told_unless_all_is_sent(kind: Restricted, all_sent: list[BatchId]) -> None:
    """As the batch's state in lists."""
    batch = a_batch(counts=BatchCounts(jobs_total=40, jobs_failed=28, unsent=12))
    pause = Restriction(kind, "1", 0, "wrong input", "ada", NOW)

    found = only(batches=[batch], stopped=Stopped(restrictions={(kind, "1"): pause}), all_sent=all_sent)

    assert ("paused by ada" in found.sentence) == (kind is Restricted.BATCH or not all_sent)
    assert "batches/1#restrict" not in links(found, OLGA)


@pytest.mark.parametrize("down", [True, False])
def test_paused_batch_keeps_its_risk_without_an_end(down: bool) -> None:
    pause = {} if down else {(Restricted.BATCH, "1"): Restriction(Restricted.BATCH, "1", 0, "wrong input", "ada", NOW)}
    counts = BatchCounts(jobs_total=40, jobs_validated=28, unsent=12)
    risky = a_late_batch(FORECAST.q50_at - NOW, counts=counts)
    late = a_late_batch(-840.0, counts=counts, completion_q50_at=later(NOW, HOUR_S))

    def sentences(stopped: Stopped) -> list[str]:
        return [only(batches=[one], last={B: FORECAST}, stopped=stopped).sentence for one in (risky, late)]

    plain, paused = sentences(Stopped()), sentences(Stopped(restrictions=pause, down=down))

    assert not missing(plain[0], "50 %", "4 h after it") and not missing(plain[1], "14 min", "to end in 1 h")
    assert not missing(paused[0], "50 %", "pause") and "after it" not in paused[0]
    assert "14 min" in paused[1] and "to end" not in paused[1]


def test_provisional_end_is_called_so() -> None:
    counts = BatchCounts(jobs_total=40, jobs_validated=28, unsent=12)
    late = a_late_batch(-840.0, counts=counts, completion_q50_at=later(NOW, HOUR_S))
    terms = Terms(12, 0, Seconds(60.0), 0.0, 0.0, 0.0, Seconds(60.0), 0.0, provisional=True)

    found = only(batches=[late], last={B: replace(FORECAST, terms=terms)})

    assert not missing(found.sentence, "to end in 1 h (provisional)")
    moved = only(batches=[late], last={B: replace(FORECAST, terms=terms, moved_at=FORECAST.made_at)})
    assert "to end" not in moved.sentence


def test_every_remedy_of_an_operator_is_a_page_or_a_command() -> None:
    disk = {"path": "/data", "free_bytes": 1e9, "total_bytes": 100e9}
    never = RefusedByAll(B, 1, False, 9, 9, (("platform", 9),), NOW, rotated_out=True, active_hosts=9)
    counts = BatchCounts(jobs_total=100, jobs_validated=5, jobs_failed=5)
    found = items(
        batches=[a_late_batch(-60.0, counts=counts)],
        short={B: Short("volunteer", 2, 3, hosts=4, volunteers=1)},
        stopped=Stopped(by_batch([never])),
        processes=(a_background(), ProcessReport("node1: worker", "worker", NOW, {"disks": [disk]})),
        versions=[a_failing_version()],
        hosts=[FailingHost(HostId(63), 18, 20)],
        contacts=HostContacts(100, 50),
    )

    assert len({one.kind for one in found}) == 8
    for item in found:
        assert all(one.link or one.command for one in item.remedies_for(OLGA)), item.kind
    assert "hosts/63#restrict" in links(next(one for one in found if one.kind == "failing_hosts"), OLGA)


def test_unschedulable_batch_names_the_version_withdrawn() -> None:
    version = an_app_version(state=VersionState.WITHDRAWN)
    act = Act(later(NOW, -600.0), "olga", "set_app_version", "app version 1", {"state": "withdrawn", "why": "crashes"})
    lost = LostVersion("pi", version, act)
    never = RefusedByAll(B, 0, False, 9, 0, (), NOW, rotated_out=False, active_hosts=0, lost=lost.words)

    found = only(stopped=Stopped(by_batch([never]), lost={version.app_id: lost}))

    assert not missing(found.sentence, "olga", version.title, "2027-01-15 07:50", "crashes")
    assert f"apps/pi/versions/{version.app_version_id}" in links(found, OLGA)
    assert links(found, PETRA) == ["batches/1/why", "batches/1/abort", ""]
    assert not missing(found.remedies_for(PETRA)[-1].words, "operator", version.title)
    assert links(found, JONAS) == ["batches/1/why"]


def test_deadline_at_risk_has_a_probability() -> None:
    batch = a_late_batch(FORECAST.q50_at - NOW)

    found = only(batches=[batch], last={B: FORECAST})

    assert (found.kind, found.severe, found.figures["probability"]) == (AttentionKind.AT_RISK, True, 0.5)
    less = only(batches=[a_late_batch(FORECAST.q50_at - NOW + 60.0)], last={B: FORECAST})
    assert not less.severe and 0.1 < less.figures["probability"] < 0.5
    assert items(batches=[batch], last={B: replace(FORECAST, method=Method.APRIORI)}) == []
    assert items(batches=[batch]) == []  # no forecast yet


@pytest.mark.parametrize(
    ("valid", "failed", "severe"), [(0, 4, None), (60, 6, None), (45, 5, False), (5, 5, True), (0, 5, True)]
)
def test_batch_fails_from_a_tenth_of_its_ended_jobs(valid: int, failed: int, severe: bool | None) -> None:
    counts = BatchCounts(jobs_total=100, jobs_validated=valid, jobs_failed=failed)

    found = items(batches=[a_batch(counts=counts)])

    assert [(one.kind, one.severe) for one in found] == (
        [] if severe is None else [(AttentionKind.FAILING_BATCH, severe)]
    )


def test_stuck_batch_names_the_hosts_it_waits_for() -> None:
    found = only(short={B: Short("volunteer", 2, 3, hosts=4, volunteers=1)})

    assert (found.kind, found.severe, found.subject) == (AttentionKind.STUCK, True, "batch 1 trio")
    assert "another volunteer" in found.sentence and found.remedies[1].command.endswith("--one-per-volunteer never")


def test_unschedulable_batch_counts_once_with_its_largest_class() -> None:
    small = RefusedByAll(B, 1, False, 2, 9, (("disk", 9),), NOW, rotated_out=True, active_hosts=40)
    large = replace(small, job_class_id=2, waiting=7, codes=(("too_slow", 8), ("disk", 1)))

    found = only(stopped=Stopped(by_batch([small, large])))

    assert (found.kind, found.link, found.why, found.figures) == (
        AttentionKind.UNSCHEDULABLE,
        "batches/1",
        "unschedulable",
        {"waiting": 7, "hosts": 9},
    )
    assert not missing(found.sentence, "7 instances", "9 of the 40", "8 cannot finish", "1 has too little disk")


def test_risk_of_a_deadline_precedes_work_without_one() -> None:
    never = RefusedByAll(BatchId(2), 1, False, 9, 9, (("disk", 9),), NOW, rotated_out=True, active_hosts=9)
    risk = a_late_batch(FORECAST.q50_at - NOW + 60.0)
    known = {BatchId(2): a_batch(batch_id=BatchId(2))}

    found = items(stopped=Stopped(by_batch([never])), batches=[risk], last={B: FORECAST}, waiting=known)
    due = items(
        stopped=Stopped(by_batch([never])),
        waiting={BatchId(2): a_late_batch(HOUR_S)},
        batches=[risk],
        last={B: FORECAST},
    )

    assert [one.batch_id for one in found] == [1, 2] and not found[1].severe
    assert [one.batch_id for one in due] == [2, 1] and due[0].severe


def test_hosts_that_fail_are_one_item() -> None:
    found = only(hosts=[FailingHost(HostId(63), 18, 20, "tin"), FailingHost(HostId(71), 12, 20)])

    assert (found.kind, found.severe, found.link) == (AttentionKind.FAILING_HOSTS, False, "hosts?show=failing")
    assert found.figures == {"hosts": 2, "failures": 30, "results": 40, "of_versions": 0}
    assert not missing(found.subject, "2 hosts") and not missing(found.sentence, "tin (63)", "18 of 20")
    [many] = items(hosts=[FailingHost(HostId(63), 223, 231, of_versions=84)])
    assert many.figures["of_versions"] == 84 and not missing(many.sentence, "223 of 231")


@pytest.mark.parametrize(("failing", "severe"), [(2, None), (10, False), (25, True)])
def test_version_fails_when_a_quarter_of_its_hosts_do(failing: int, severe: bool | None) -> None:
    found = items(versions=[a_failing_version(failing=failing)])

    assert [(one.kind, one.severe) for one in found] == (
        [] if severe is None else [(AttentionKind.FAILING_VERSION, severe)]
    )
    if found:
        assert (found[0].subject, found[0].figures["failures"]) == ("pi 1.02 x86_64-pc-linux-gnu", 340)
        assert (found[0].link, found[0].why) == ("apps/pi/versions/3", "apps/pi/versions/3#h-errors")
        assert all(one.startswith("apps/pi/versions/3") for one in links(found[0], OLGA))


def test_versions_of_one_app_that_fail_are_one_item() -> None:
    """They often have one cause."""
    some = [
        a_failing_version(app_version_id=AppVersionId(number), app=app, platform=platform, failing=failing)
        for number, (app, platform, failing) in enumerate(
            [("pi", "x86_64-pc-linux-gnu", 12), ("tau", "x86_64-pc-linux-gnu", 30), ("pi", "windows_x86_64", 25)], 1
        )
    ]

    tau, pi = items(versions=some)

    assert (tau.subject, tau.link) == ("tau 1.02 x86_64-pc-linux-gnu", "apps/tau/versions/2")
    assert (pi.subject, pi.link, pi.severe) == ("2 versions of pi", "apps/pi", True)
    assert pi.figures == {"versions": 2, "failures": 340, "hosts": 40, "hosts_failing": 25}
    assert not missing(pi.sentence, "1.02 windows_x86_64", "25 of the 40", "1.02 x86_64-pc-linux-gnu", "12 of 40")
    assert list(links(pi, OLGA)) == ["apps/pi/versions/3#h-errors", "apps/pi"]


def test_versions_that_fail_with_one_batch_are_in_its_item() -> None:
    """The batch's input may be wrong, or the versions: the item has the remedies of both."""
    windows = {"app_version_id": AppVersionId(4), "platform": "windows_x86_64"}
    some = [a_failing_version(batch_failures=340, **changes) for changes in ({}, windows)]
    failing = a_batch(counts=BatchCounts(jobs_total=40, jobs_failed=28))
    half = replace(failing, counts=BatchCounts(jobs_total=40, jobs_failed=14, jobs_validated=14))
    mixed = [some[0], replace(some[1], batch_failures=34)]

    def kinds(batch: Batch, versions: Sequence[FailingVersion]) -> list[AttentionKind]:
        return [one.kind for one in items(batches=[batch], versions=versions)]

    both = [AttentionKind.FAILING_VERSION, AttentionKind.FAILING_BATCH]
    assert kinds(failing, some) == kinds(failing, some[:1]) == [AttentionKind.FAILING_BATCH]
    assert kinds(half, some) == kinds(failing, mixed) == both
    found, single = only(batches=[failing], versions=some), only(batches=[failing], versions=some[:1])
    assert links(found, OLGA) == ["batches/1/errors", "batches/1#restrict", "batches/1/abort", "apps/pi"]
    assert links(single, OLGA)[-1] == "apps/pi/versions/3?state=withdrawn"


def test_failing_version_is_also_told_to_the_batchs_owner() -> None:
    known = {BatchId(1): a_batch()}
    found = only(waiting=known, versions=[a_failing_version(batch_failures=340)])

    assert (found.kind, found.batch_id, found.submitter_id) == (
        AttentionKind.FAILING_VERSION,
        1,
        known[BatchId(1)].submitter_id,
    )
    assert links(found, OLGA)[:3] == ["batches/1/errors", "batches/1#restrict", "batches/1/abort"]
    unnamed = only(versions=[a_failing_version(batch_failures=0)], waiting=known)
    assert (unnamed.batch_id, unnamed.submitter_id) == (None, None)


@pytest.mark.parametrize(("current", "told"), [((3, 4), "every version"), ((3, 4, 5), "2 versions")])
def test_batch_says_with_which_versions_it_fails(current: Sequence[int], told: str) -> None:
    some = [a_failing_version(app_version_id=AppVersionId(number), batch_failures=340) for number in (3, 4)]
    batch = a_batch(counts=BatchCounts(jobs_total=40, jobs_failed=28))
    versions = {batch.app_id: [an_app_version(app_version_id=AppVersionId(number)) for number in current]}

    assert not missing(only(batches=[batch], versions=some, current=versions).sentence, "28 of 28", told)


def test_withdrawn_versions_that_failed_are_no_item() -> None:
    assert items(versions=[a_failing_version(deprecated=True)]) == []


def test_overdue_task_outweighs_its_failure() -> None:
    duty = {"name": "sweeper", "mine": True, "failures": 2, "done_at": NOW - 900.0, "failed_at": NOW, "failure": "E: x"}
    reports = (a_background(duty),)

    failing = only(processes=reports)
    overdue = only(processes=reports, deadlines={"sweeper": later(NOW, -300.0)})

    assert (failing.kind, failing.severe) == (AttentionKind.FAILING_TASK, False) and "E: x" in failing.sentence
    assert (overdue.kind, overdue.severe, overdue.figures) == (AttentionKind.OVERDUE_TASK, True, {"late_by_s": 300.0})
    assert items(processes=[a_background({**duty, "done_at": NOW + 1.0})]) == []  # it succeeded later
    assert items(deadlines={"sweeper": later(NOW, -59.0)}) == []


def test_without_a_background_process_that_comes_first() -> None:
    first, *_ = items(processes=(), batches=[a_late_batch(-60.0)])

    assert (first.kind, first.severe) == (AttentionKind.NO_BACKGROUND, True)


@pytest.mark.parametrize(("free", "severe"), [(10.0, None), (9.0, False), (2.0, True)])
def test_disk_counts_once_per_node(free: float, severe: bool | None) -> None:
    disk = {"path": "/data", "free_bytes": free * 1e9, "total_bytes": 100e9}
    workers = [ProcessReport(f"node1: worker {number}", "worker", NOW, {"disks": [disk]}) for number in (0, 1)]

    found = items(processes=(a_background(), *workers))

    assert [(one.kind, one.severe) for one in found] == ([] if severe is None else [(AttentionKind.DISK, severe)])
    if found:
        assert not missing(found[0].subject, "/data", "node1")
        assert not missing(found[0].sentence, f"{free:g} GB", "100 GB")


@pytest.mark.parametrize(("silent", "severe"), [(19, None), (20, False), (50, True)])
def test_silent_hosts_matter_from_a_fifth(silent: int, severe: bool | None) -> None:
    found = items(contacts=HostContacts(100, silent))

    assert [(one.kind, one.severe) for one in found] == (
        [] if severe is None else [(AttentionKind.SILENT_HOSTS, severe)]
    )
    assert items(contacts=HostContacts(4, 4)) == []


@pytest.mark.parametrize(
    ("silence_s", "per_s", "is_found"), [(301.0, 1.0, True), (299.0, 1.0, False), (3e3, 9e-3, False)]
)
def test_silence_of_all_hosts_matters_after_30_requests(silence_s: float, per_s: float, is_found: bool) -> None:
    """That of one host does not, and a small project is silent for a while."""
    found = items(contacts=HostContacts(237, 0, Instant(NOW - silence_s), per_s))

    assert [(one.kind, one.severe) for one in found] == [(AttentionKind.SILENT_HOSTS, True)] * is_found
    assert items(contacts=HostContacts()) == items(contacts=HostContacts(4, 0, Instant(NOW - 9e4), 0.1)) == []


def test_validation_that_fails_or_falls_behind_is_shown() -> None:
    failing = only(upkeep=replace(HEALTHY.upkeep, failing=2))
    behind = only(upkeep=replace(HEALTHY.upkeep, waiting=LOOKED_AT))

    assert failing.kind is behind.kind is AttentionKind.VALIDATION
    assert failing.figures == {"failing": 2, "waiting": 5} and behind.figures["waiting"] == LOOKED_AT


def test_backup_is_expected_within_its_age() -> None:
    old = only(upkeep=replace(HEALTHY.upkeep, backup_at=later(NOW, -3 * DAY_S)))
    never = only(upkeep=replace(HEALTHY.upkeep, backup_at=None))

    assert (old.kind, old.figures, never.kind) == (AttentionKind.BACKUP, {"age_s": 3 * DAY_S}, AttentionKind.BACKUP)
    assert never.figures == {"age_s": 9 * DAY_S}
    assert items(upkeep=replace(HEALTHY.upkeep, backup_at=None), backup_age_s=Seconds(0.0)) == []
    young = replace(HEALTHY.upkeep, backup_at=None, installed_at=later(NOW, -HOUR_S))
    assert items(upkeep=young) == []


def test_severe_and_later_items_come_first() -> None:
    batches = [a_late_batch(-60.0), a_late_batch(-600.0, batch_id=BatchId(2))]

    found = items(batches=batches, contacts=HostContacts(100, 25), deadlines={"sweeper": Instant(NOW - 90.0)})

    told = [(one.kind, one.batch_id) for one in found]
    assert told == [
        (AttentionKind.OVERDUE_TASK, None),
        (AttentionKind.MISSED, 2),
        (AttentionKind.MISSED, 1),
        (AttentionKind.SILENT_HOSTS, None),
    ]
    assert counts_of(found)[AttentionKind.MISSED] == 2
    assert item_as_json(found[1], OLGA)["figures"]["late_by_s"] == 600.0


def test_batch_that_fails_alike_is_paused_ended_or_cloned() -> None:
    worst = a_failing_version()
    batch = a_batch(counts=BatchCounts(jobs_total=40, jobs_failed=28))
    other = replace(worst, app_version_id=AppVersionId(4), platform="windows_x86_64")

    found, of_both = (failing_alike(batch, is_paused=False, failing=some) for some in ([worst], [worst, other]))
    paused = failing_alike(batch, is_paused=True, failing=[])
    ended = failing_alike(replace(batch, state=BatchState.COMPLETE), is_paused=False, failing=[])

    assert [links(one, OLGA) for one in (found, of_both)] == [
        ["batches/1#restrict", "batches/1/abort", withdraw]
        for withdraw in ("apps/pi/versions/3?state=withdrawn", "apps/pi")
    ]
    assert (links(paused, OLGA), links(ended, OLGA)) == (["batches/1/abort"], ["batches/1/clone"])
    assert found.severe and not missing(found.sentence, "28 of 28", "40")
