"""`muster explain` and `muster thresholds`, on the command line and over the API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from store import embedded
from tests.acceptance.host import LINUX
from tests.acceptance.server import LiveServer
from tests.acceptance.test_command_line import BATCH, CommandLine, submitted
from tests.acceptance.test_hoststats_commands import HOSTS, ROWS, executed
from tests.facts import missing

CALLS = f"""
    UPDATE host SET
        last_rpc_at = $1, rpc_interval_s = 7200, ram_bytes = 8e9, disk_free_bytes = 1e11,
        platforms = CASE WHEN host_id = 25 THEN '{{windows_x86_64}}'::text[] ELSE '{{{LINUX}}}' END
"""


@pytest.fixture(scope="module")
def muster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A ranked project: 25 hosts that call every two hours, host 1 the best, host 25 of another platform."""
    project = CommandLine(tmp_path_factory.mktemp("project") / "data")
    program = project.data_dir.parent / "main.sh"
    program.write_text("#!/bin/sh\n")
    (project.data_dir.parent / "in.txt").write_text("input\n")
    settings = "deadline.afap=table", "deadline.gate_wait_fraction=0"  # a gate for them, which is never lowered
    project.json("init", "--url", "http://127.0.0.1:8089/", *(word for one in settings for word in ("--set", one)))
    project.json("app", "add", "pi")
    project.json("app", "version", "add", "pi", "--platform", LINUX, "--version", "100", "--main", str(program))
    project.json("volunteer", "add", "ada@example.org")
    asyncio.run(executed(project, HOSTS, ROWS, CALLS))
    project.json("hoststats", "run")
    submitted(project, BATCH.replace("count = 100", "count = 9"))
    yield project
    embedded.stop(project.data_dir / "postgres")


# ---------------------------------------------------------------- thresholds


def test_preview_shows_passing_hosts_and_waits(muster: CommandLine) -> None:
    shown = muster.json("thresholds", "preview", "p_afap=0.95")

    assert shown["changes"] == [{"key": "deadline.p_afap", "from": 0.5, "to": 0.95}]
    [hosts] = shown["hosts"]
    assert (hosts["app"], hosts["processor_type"], hosts["havs"], hosts["newcomers"]) == ("pi", "cpu", 25, 0)
    [afap] = [gate for gate in hosts["gates"] if gate["gate"] == "p_afap"]
    assert (afap["old"]["havs"], afap["old"]["calls_per_hour"]) == (13, 6.5)
    assert (afap["new"]["havs"], afap["new"]["calls_per_hour"]) == (1, 0.5)
    [wait] = shown["waiting"]
    assert (wait["gate"], wait["jobs"]) == ("p_afap", 9)
    assert (wait["old"]["send_s"], wait["new"]["send_s"]) == (4984.6, 64800.0)


def test_preview_text_changes_nothing(muster: CommandLine) -> None:
    before = muster.json("thresholds", "show")

    done = muster.run("thresholds", "preview", "p_afap=0.95")

    assert done.exit_code == 0
    assert "deadline.p_afap: 0.5 -> 0.95" in done.stdout
    assert "p_afap   >= 0.5: 13 pass, 6.5 requests/h  ->  >= 0.95: 1 pass, 0.5 requests/h" in done.stdout
    [wait] = [line for line in done.stdout.splitlines() if "pi p_afap" in line]
    assert not missing(wait, "9 jobs:", ">= 0.5: 1 h 23 min (6.5 requests/h)", ">= 0.95: 18 h (0.5 requests/h)")
    assert muster.json("thresholds", "show") == before


def test_threshold_change_records_author_and_reason(muster: CommandLine) -> None:
    done = muster.json("thresholds", "set", "p_late=0.6", "--why", "late jobs came back late", "--by", "ada")

    assert done == [{"key": "deadline.p_late", "from": 0.5, "to": 0.6, "by": "ada", "why": "late jobs came back late"}]
    rows = {row["key"]: row for row in muster.json("thresholds", "show")}
    late, wait = rows["deadline.p_late"], rows["deadline.gate_wait_fraction"]
    told = ("value", "default", "source", "unit", "changed_by", "why")
    assert tuple(late[key] for key in told) == (0.6, 0.5, "set", "percentile", "ada", "late jobs came back late")
    shown = muster.run("thresholds", "show").stdout
    assert "deadline.p_late = 0.6 percentile (default 0.5)\n" in shown
    assert f"  higher: {late['higher']}\n" in shown
    assert f"changed by ada: {late['why']}\n" in shown
    assert f"deadline.gate_wait_fraction = 0 {wait['unit']} (default 0.25)\n" in shown
    assert muster.json("setting", "history")[0]["key"] == "deadline.p_late"


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["preview", "p_tight=2"], ("deadline.p_tight:", "0 to 1", "2")),
        (["preview", "p_tight"], ("threshold:", "KEY=VALUE", "'p_tight'")),
        (["set", "p_tight=0.8", "--why", ""], ("why:", "audit trail", "''")),
    ],
)
def test_bad_threshold_change_is_one_line(muster: CommandLine, arguments: list[str], facts: tuple[str, ...]) -> None:
    code, line = muster.error("thresholds", *arguments)

    assert (code, line.count("\n"), missing(line, "muster:", *facts)) == (1, 1, [])


def test_other_settings_are_refused_as_thresholds(muster: CommandLine) -> None:
    code, line = muster.error("thresholds", "preview", "feeder.slots=9")

    assert (code, missing(line, "muster: threshold:", "one of deadline.p_afap")) == (1, [])


def test_change_needs_a_reason(muster: CommandLine) -> None:
    code, told = muster.error("thresholds", "set", "p_tight=0.8")

    assert code == 2 and "--why" in told


# ---------------------------------------------------------------- explain


def test_good_host_shows_its_jobs(muster: CommandLine) -> None:
    shown = muster.json("explain", "host", "1")
    told = muster.run("explain", "host", "1").stdout

    [standing] = shown["standing"]
    assert standing["p"] > 0.95
    [job] = shown["would_get"]
    assert not missing(job["because"], "no completion target") and "P 0.9" in job["because"]
    assert not missing(told[told.index("it would be sent:") :], "instance 1", "job 1", "batch 1 (pi):", "tight")


def test_slow_host_shows_percentile_and_threshold(muster: CommandLine) -> None:
    told = muster.run("explain", "host", "24").stdout

    assert "would be sent:\n  nothing\n" in told
    assert "percentile P 0.0" in told
    assert not missing(told, "below_gate:", "p_afap", 0.5)


def test_batch_explanation_counts_reasons(muster: CommandLine) -> None:
    shown = muster.json("explain", "batch", "1")
    told = muster.run("explain", "batch", "1").stdout

    assert shown["gate"] == "p_afap"
    assert shown["sample"]["would_take"] == {"hosts": 13, "idle_hosts": 13, "calls_per_hour": 6.5, "jobs": 13}
    assert not missing(shown["verdict"], "13 of 25 hosts", "13 could start") and told.startswith(shown["verdict"])
    [gate] = [one["suggestion"] for one in shown["sample"]["held_back"] if one["code"] == "below_gate"]
    assert (gate["key"], gate["asked"], gate["options"][-1]["passes"]) == ("deadline.p_afap", 0.5, 10)
    assert {one["code"]: one["hosts"] for one in shown["sample"]["held_back"]} == {"below_gate": 11, "platform": 1}
    assert not missing(told, "25 hosts", "(12.5 calls an hour)", "13 (6.5 calls an hour)")
    assert not missing(told, "below_gate: 11 hosts", "5.5 calls an hour")


def test_job_and_instance_explain_their_wait(muster: CommandLine) -> None:
    job, instance = muster.json("explain", "job", "2"), muster.json("explain", "instance", "2")

    assert [one["instance_id"] for one in job["waiting"]] == [2]
    assert instance["state"] == "unsent" and instance["due"] is None
    assert job["waiting"][0]["sample"]["would_take"]["hosts"] == 13
    assert "instance 2 waits:" in muster.run("explain", "job", "2").stdout
    assert "it waits:" in muster.run("explain", "instance", "2").stdout


@pytest.mark.parametrize("kind", ["host", "batch", "job", "instance"])
def test_unknown_ids_are_not_found(muster: CommandLine, kind: str) -> None:
    assert muster.error("explain", kind, "4711") == (1, f"muster: no {kind} 4711\n")


# ---------------------------------------------------------------- the API


async def test_api_explains_a_sent_job(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(qos="afap", jobs={"count": 3})
    host = await server.add_host()
    await host.call()
    dry = await server.create("GET", "/explain/host/1")

    tasks = await host.ask(int(dry["wants"][-1]["count"]))

    rows = [row for row in await server.instances(batch_id) if row.because]
    assert [row.instance_id for row in rows] == [one["instance_id"] for one in dry["would_get"]]
    assert len(tasks) == len(rows) > 0
    shown = await server.create("GET", f"/explain/instance/{rows[0].instance_id}")
    assert rows[0].because.startswith(shown["due"]["because"])
    assert (shown["due"]["terms"]["rule"], shown["due"]["terms"]["gate"]) == ("muster", "p_afap")
    assert (await server.create("GET", f"/explain/batch/{batch_id}"))["batch_id"] == batch_id
    assert (await server.create("GET", f"/explain/job/{rows[0].job_id}"))["job_id"] == rows[0].job_id


async def test_api_previews_and_sets_thresholds(server: LiveServer) -> None:
    await server.add_app()

    preview = await server.create("GET", "/thresholds/preview?p_tight=0.8")
    done = await server.create("PUT", "/thresholds", json={"values": {"p_tight": 0.8}, "why": "tried"})

    assert preview["changes"] == [{"key": "deadline.p_tight", "from": 0.9, "to": 0.8}]
    assert done["changed"] == [{"key": "deadline.p_tight", "from": 0.9, "to": 0.8, "by": "api", "why": "tried"}]
    shown = (await server.create("GET", "/thresholds"))["thresholds"]
    assert {row["key"]: row["value"] for row in shown}["deadline.p_tight"] == 0.8


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("path", "status", "facts"),
    [
        ("/explain/host/4711", 404, ("no host 4711",)),
        ("/explain/batch/x", 422, ("id:", "whole", "1 to 4611686018427387904", "'x'")),
        ("/thresholds/preview?p_tight=high", 422, ("p_tight:", "number", "'high'")),
        ("/thresholds/preview", 422, ("threshold:", "KEY=VALUE", "'none'")),
    ],
)
async def test_api_names_the_error(shared_pi: LiveServer, path: str, status: int, facts: tuple[str, ...]) -> None:
    got, answer = await shared_pi.api("GET", path)

    assert (got, missing(answer["detail"], *facts)) == (status, [])
