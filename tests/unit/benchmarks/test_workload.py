"""A workload log through the ordering code, with results computed by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.workload.__main__ import limits_of, main, settings_of
from benchmarks.workload.figures import Fairness, fair_parts, jain, waits
from benchmarks.workload.pulling import Went, pulled
from benchmarks.workload.submitted import Submitted, Workload, workload_of
from benchmarks.workload.waiting import Waiting
from domain.errors import InvalidInputError
from domain.units import AccountId, BatchId, Instant, Seconds, SubmitterId
from priority.policies import POLICIES
from simulator.swf import read_swf

LOG = Path(__file__).parent / "small.swf"

ADA, BEN, CEM = [(SubmitterId(n), AccountId(1)) for n in (1, 2, 3)]


def workload() -> Workload:
    return workload_of(read_swf(LOG), until_s=1e9)


def went(
    policy: str, *changes: str, jobs: str | None = None, processors: int = 2, work: Workload | None = None
) -> dict[int, Went]:
    work = work or workload()
    settings = settings_of([f"ordering.policy={policy}", "ordering.interval_s=1", *changes])
    waiting = Waiting(work, settings, processors=processors, limits=limits_of(jobs))
    done = pulled(work, waiting, processors=processors, sample=lambda *_: None, every_s=60.0)
    return {int(one.submitted.batch_id): one for one in done}


def test_jobs_that_ran_become_batches_in_accounts_made_of_groups() -> None:
    work = workload()

    assert [(one.jobs, one.run_s, one.estimate_s) for one in work.batches] == [
        (4, 100.0, 100.0),
        (2, 100.0, 200.0),
        (1, 50.0, 50.0),
    ]
    assert [account.name for account in work.accounts] == ["root", "group1", "group2"]
    assert work.work_s == 4 * 100 + 2 * 100 + 50


def test_first_come_first_served_is_what_a_hand_reckons() -> None:
    # Two processors: batch 1 from 0 to 200, batch 2 from 200 to 300, batch 3 from 300 to 350.
    done = went("fifo")

    assert [(done[n].first_sent_at, done[n].last_sent_at, done[n].done_at) for n in (1, 2, 3)] == [
        (0.0, 100.0, 200.0),
        (200.0, 200.0, 300.0),
        (300.0, 300.0, 350.0),
    ]


def test_equal_access_turns_to_those_who_hold_least() -> None:
    # At 100 and at 200 both processors are idle and no submitter has running jobs: first by time, then by running jobs.
    done = went("equal_access")

    assert [(done[n].first_sent_at, done[n].last_sent_at) for n in (1, 2, 3)] == [
        (0.0, 200.0),
        (100.0, 200.0),
        (300.0, 300.0),
    ]


def test_fair_share_sends_users_without_usage_first() -> None:
    weights = ("ordering.wait_weight=0", "ordering.level_weight=0", "ordering.queue_weight=0")
    done = went("multifactor", *weights)

    # Users 2 and 3 have used nothing when batch 1 holds both processors until 100.
    assert done[2].first_sent_at == 100.0
    assert done[3].first_sent_at == 100.0
    assert done[1].last_sent_at >= 150.0


@pytest.mark.parametrize("policy", list(POLICIES))
def test_jobs_are_sent_once_and_keep_processors_busy(policy: str) -> None:
    done = went(policy)

    assert sorted(done) == [1, 2, 3]
    # 650 processor seconds on two processors, never idle before the end: at least 325, and 350 with the last long job.
    assert 325.0 <= max(one.done_at for one in done.values()) <= 375.0


@pytest.mark.parametrize("policy", list(POLICIES))
def test_runs_are_repeatable(policy: str) -> None:
    assert went(policy) == went(policy)


def test_a_hard_limit_of_one_job_leaves_a_processor_to_others() -> None:
    done = went("fifo", jobs="1,1")

    # Batch 1 may have one job at a time: 0, 100, 200, 300. Batch 2 has the other processor at 10 and 110.
    assert done[1].last_sent_at == 300.0
    assert (done[2].first_sent_at, done[2].last_sent_at) == (10.0, 110.0)
    assert done[3].first_sent_at == 210.0


def test_soft_limit_orders_a_batch_after_others() -> None:
    done = went("fifo", jobs="1,9")

    # At 0 the second job of batch 1 exceeds its soft limit, but no other batch waits.
    assert done[1].first_sent_at == 0.0
    assert done[2].first_sent_at == 100.0


def test_one_submitter_alone_has_everything() -> None:
    alone = [Submitted(BatchId(n), ADA, Instant(0.0), 1, Seconds(10.0), Seconds(10.0)) for n in (1, 2)]
    work = replace(workload(), batches=alone, leaves=[ADA])
    for policy in POLICIES:
        done = went(policy, processors=1, work=work)
        assert [done[1].first_sent_at, done[2].first_sent_at] == [0.0, 10.0], policy


def test_waits_and_slowdowns_are_those_of_whole_batches() -> None:
    figures = waits(list(went("fifo").values()))

    assert figures["wait_mean_s"] == round((100 + 190 + 280) / 3, 1)
    assert figures["wait_median_s"] == 190.0
    assert figures["slowdown_mean"] == round((200 / 100 + 290 / 100 + 330 / 50) / 3, 2)


def test_the_fair_part_of_who_wants_little_goes_to_the_others() -> None:
    assert fair_parts({ADA: 0, BEN: 100, CEM: 100}, 10) == {ADA: 0.0, BEN: 5.0, CEM: 5.0}
    assert sum(fair_parts({ADA: 3, BEN: 4}, 100).values()) == 7.0


def test_fairness_is_service_of_the_fair_part() -> None:
    fairness = Fairness(4)
    fairness.look({ADA: 3, BEN: 1}, {ADA: 5, BEN: 5})

    # Each is due two: the first has all of them, the second half.
    assert fairness.figures()["jain_service"] == round(1.5**2 / (2 * 1.25), 4)
    assert fairness.figures()["service_of_fair_part_mean"] == 0.75
    assert fairness.figures()["largest_submitters_part"] == 0.75


def test_without_waiting_jobs_there_is_no_unfairness() -> None:
    assert Fairness(4).figures()["jain_service"] == 1.0
    assert jain([]) == 1.0


def test_the_command_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--trace", str(LOG), "--policy", "fifo", "--policy", "logical_time", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert found["processors"] == 2
    assert list(found["policies"]) == ["fifo", "logical_time"]
    assert found["as_logged"]["wait_mean_s"] == round(50 / 3, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trace", "none.swf"], "none.swf"),
        (["--trace", str(LOG), "--set", "ordering.policy"], "--set: expected KEY=VALUE"),
        (["--trace", str(LOG), "--set", "ordering.nothing=1"], "ordering.nothing"),
        (["--trace", str(LOG), "--limit-jobs", "3"], "--limit-jobs: expected SOFT,HARD"),
    ],
)
def test_error_is_printed_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main([*arguments, "--json"]) == 1
    assert said in capsys.readouterr().err


def test_log_without_processors_requires_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.swf"
    file.write_text("1 0 0 1 1 -1 -1 1 1 -1 1 8 1 1 1 1 -1 -1\n")

    assert main(["--trace", str(file), "--json"]) == 1
    assert "--processors" in capsys.readouterr().err
    assert main(["--trace", str(file), "--processors", "1", "--json"]) == 0


def test_settings_given_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="ordering"):
        settings_of(["ordering.interval_s=never"])
