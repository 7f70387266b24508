"""The command line as used by scripts: exact commands, keys, exit codes and one-line errors."""

from __future__ import annotations

import asyncio
import io
import json
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.main import main
from domain.clock import SystemClock
from domain.history import MovedJobs
from store import embedded
from store.postgres import open_store
from tests.acceptance.host import LINUX
from tests.facts import missing
from tests.pg import database

BATCH = """
app = "pi"
qos = "afap"
[jobs]
count = 100
command_line = "2"
fpops_est = 1e9
delay_bound_s = 86400
outputs = [{ name = "out", max_bytes = 100000 }]
inputs = [{ path = "in.txt", open_name = "in", sticky = true }]
"""


class Done(NamedTuple):
    """The outcome of a command."""

    exit_code: int
    stdout: str
    stderr: str


def done_by(*arguments: str) -> Done:
    """Run `muster` with these arguments in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


URL = ("project.url:", "http", "https", "at most 189", "/")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """`muster` on one project in a folder, as a script runs it."""

    data_dir: Path

    def run(self, *arguments: str) -> Done:
        """Run a command in this process, because starting another takes longer than most commands."""
        return done_by(*arguments, "--data-dir", str(self.data_dir))

    def json(self, *arguments: str) -> Any:
        """Run a command that must succeed; return its JSON, and check that it prints nothing else."""
        done = self.run(*arguments, "--json")
        assert (done.exit_code, done.stderr) == (0, ""), done
        assert done.stdout.count("\n") == 1
        return json.loads(done.stdout)

    def error(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code and the one-line error message."""
        done = self.run(*arguments)
        assert done.stdout == ""
        return done.exit_code, done.stderr


@pytest.fixture(scope="module")
def muster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A project on the embedded database with an app and its version."""
    project = CommandLine(tmp_path_factory.mktemp("project") / "data")
    program = project.data_dir.parent / "main.sh"
    program.write_text("#!/bin/sh\n")
    (project.data_dir.parent / "in.txt").write_text("input\n")
    project.json("init", "--url", "http://127.0.0.1:8089/")
    project.json("app", "add", "pi")
    version = ["app", "version", "add", "pi", "--platform", LINUX, "--version", "100", "--main", str(program)]
    project.json(*version)
    yield project
    embedded.stop(project.data_dir / "postgres")


def submitted(muster: CommandLine, text: str = BATCH) -> int:
    path = muster.data_dir.parent / "batch.toml"
    path.write_text(text)
    answer = muster.json("batch", "submit", str(path))
    assert list(answer) == ["batch_id", "forecast"]
    return int(answer["batch_id"])


def test_init_creates_keys_only_their_owner_can_read(muster: CommandLine) -> None:
    secrets = [path for path in (muster.data_dir / "keys").rglob("*") if path.is_file() and "public" not in path.name]
    assert (muster.data_dir / "project.toml").exists() and (muster.data_dir / "postgres").is_dir()
    assert len(secrets) == 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}


def test_repeated_init_keeps_the_keys(muster: CommandLine) -> None:
    before = {path: path.read_bytes() for path in (muster.data_dir / "keys").rglob("*") if path.is_file()}

    answer = muster.json("init", "--url", "http://127.0.0.1:8089/")

    assert answer == {"data_dir": str(muster.data_dir), "url": "http://127.0.0.1:8089/"}
    assert {path: path.read_bytes() for path in before} == before


def test_volunteer_gets_an_account_key_once(muster: CommandLine) -> None:
    ada = muster.json("volunteer", "add", "ada@example.org")
    bob = muster.json("volunteer", "add", "bob@example.org")

    assert list(ada) == ["volunteer_id", "authenticator"]
    assert re.fullmatch("[0-9a-f]{32}", ada["authenticator"])
    assert ada["authenticator"] != bob["authenticator"] and ada["volunteer_id"] != bob["volunteer_id"]
    code, line = muster.error("volunteer", "add", "Ada@example.org")
    assert (code, line.count("\n"), missing(line, "muster:", "'ada@example.org'", "already exists")) == (1, 1, [])


def test_batch_is_submitted_and_shown(muster: CommandLine) -> None:
    batch = muster.json("batch", "show", str(submitted(muster)))

    promised = ("jobs_total", "jobs_validated", "jobs_failed", "unsent", "in_progress", "retries", "state")
    assert {key: batch[key] for key in promised} == {
        "jobs_total": 100,
        "jobs_validated": 0,
        "jobs_failed": 0,
        "unsent": 100,
        "in_progress": 0,
        "retries": 0,
        "state": "active",
    }
    assert batch["logical_end_at"] > 0 and batch["completion_at"] is None
    assert (batch["app"], batch["qos"], batch["submitter"]) == ("pi", "afap", "default")


def test_job_is_shown_with_its_instances(muster: CommandLine) -> None:
    batch_id = submitted(muster)
    jobs = muster.json("job", "list", str(batch_id))

    job = muster.json("job", "show", str(jobs[0]["job_id"]))

    assert len(jobs) == 100
    assert (job["batch_id"], job["state"], job["command_line"]) == (batch_id, "open", "2")
    assert [instance["state"] for instance in job["instances"]] == ["unsent"]


def test_aborted_batch_is_shown(muster: CommandLine) -> None:
    shown = muster.json("batch", "abort", str(submitted(muster)))

    assert (shown["state"], shown["unsent"]) == ("aborted", 0)


def test_beta_app_and_plan_class_version_are_listed(muster: CommandLine) -> None:
    program = str(muster.data_dir.parent / "main.sh")
    assert list(muster.json("app", "add", "trial", "--beta")) == ["app_id", "name"]
    assert muster.json("app", "plan-class", "set", "mt", "--ncpus", "4") == {"plan_class": "mt"}
    version = ["app", "version", "add", "trial", "--platform", LINUX, "--version", "205", "--main", program]
    added = muster.json(*version, "--plan-class", "mt", "--api-version", "7.5.0")
    assert list(added) == ["app_version_id"]

    [trial] = [app for app in muster.json("app", "list") if app["name"] == "trial"]

    assert trial["beta"] and trial["versions"] == [f"2.05 {LINUX} mt"]
    assert muster.error(*version, "--plan-class", "mt")[0] == 1


def test_setting_change_is_in_the_audit_trail(muster: CommandLine) -> None:
    assert muster.json("setting", "set", "deadline.p_tight", "0.85", "--why", "trying") == {
        "key": "deadline.p_tight",
        "value": 0.85,
    }
    [latest, *_] = muster.json("setting", "history")
    assert (latest["key"], latest["from"], latest["to"], latest["why"]) == ("deadline.p_tight", None, 0.85, "trying")
    assert muster.json("setting", "reset", "deadline.p_tight", "--why", "useless")["value"] == 0.9


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["setting", "set", "deadline.p_tight", "2"], ("deadline.p_tight:", "0 to 1", "2")),
        (["setting", "set", "deadline.p_tight", "NaN"], ("deadline.p_tight:", "0 to 1", "nan")),
        (
            ["setting", "set", "deadline.rule", "best"],
            ("deadline.rule:", "muster", "proposal", "fixed", "accelerated", "'best'"),
        ),
        (["setting", "set", "x.y", "1"], ("x.y:", "`muster setting list`", "'x.y'")),
        (["batch", "show", "4711"], ("no batch 4711",)),
        (["batch", "abort", "4711"], ("no batch 4711",)),
        (["job", "show", "4711"], ("no job 4711",)),
        (["volunteer", "add", "no-address"], ("email:", "e-mail", "'no-address'")),
        (["app", "add", "pi"], ("app 'pi' already exists",)),
        (
            ["app", "add", "a/b"],
            ("name:", "1 to 64", "letter", "digit", "'a/b'"),
        ),
        (
            ["batch", "submit", "missing.toml"],
            ("batch file:", "missing.toml"),
        ),
        (["init", "--url", "ftp://x/"], (*URL, "'ftp://x/'")),
        (["init", "--url", "http://x"], (*URL, "'http://x'")),
        (
            ["init", "--url", "http://x/", "--set", "deadline.p_tight=2"],
            ("deadline.p_tight:", "0 to 1", "2"),
        ),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_errors_are_one_line(muster: CommandLine, arguments: list[str], facts: tuple[str, ...]) -> None:
    code, line = muster.error(*arguments)

    assert (code, line.count("\n"), missing(line, "muster:", *facts)) == (1, 1, [])


def test_unknown_field_of_a_batch_file_is_named(muster: CommandLine) -> None:
    path = muster.data_dir.parent / "bad.toml"
    before = muster.json("batch", "list")
    path.write_text(BATCH.replace("count", "cuont"))

    code, line = muster.error("batch", "submit", str(path))

    assert code == 1 and line.count("\n") == 1
    assert not missing(line, "muster: jobs.cuont:", "one of command_line, count")
    path.write_text("app = \n")
    assert not missing(muster.error("batch", "submit", str(path))[1], f"muster: {path}:", "TOML", "'Invalid value")
    assert muster.json("batch", "list") == before


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["batch", "show", "seven"], "'seven' is not a valid"),
        (["batch", "show"], "Missing argument 'BATCH_ID'"),
        (["volunteer", "add", "x@y", "--colour", "red"], "No such option '--colour'"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_wrong_usage_exits_with_2(muster: CommandLine, arguments: list[str], why: str) -> None:
    code, told = muster.error(*arguments)

    assert code == 2
    assert told.startswith("Usage: ") and why in told


def test_folder_without_a_project_is_reported_with_advice(tmp_path: Path) -> None:
    folder = tmp_path / "empty"

    code, line = CommandLine(folder).error("batch", "list")

    assert (code, line.count("\n")) == (1, 1)
    assert not missing(line, f"muster: no project in {folder}:", f"`muster init --data-dir {folder} --url …`")
    assert not folder.exists()


async def test_commands_use_the_given_database(tmp_path: Path) -> None:
    async with database() as dsn:
        project = CommandLine(tmp_path / "data")
        url = ["--database-url", dsn]

        made = await asyncio.to_thread(project.json, "init", "--url", "http://127.0.0.1:8089/", *url)
        added = await asyncio.to_thread(project.json, "app", "add", "pi", *url)
        listed = await asyncio.to_thread(project.json, "app", "list")  # stored in the project

    assert made["url"] == "http://127.0.0.1:8089/"
    assert added["name"] == "pi" and [app["name"] for app in listed] == ["pi"]
    assert not (tmp_path / "data" / "postgres").exists()


def test_missing_database_is_reported_in_one_line(muster: CommandLine) -> None:
    code, line = muster.error("app", "list", "--database-url", "postgresql://127.0.0.1:1/nothing")

    assert code == 1 and line.count("\n") == 1
    assert line.startswith("muster: ")


def test_installed_command_reports_errors_to_scripts(muster: CommandLine) -> None:
    command = [str(Path(sys.executable).with_name("muster")), "batch", "show", "4711", "--data-dir"]

    done = subprocess.run([*command, str(muster.data_dir)], capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "muster: no batch 4711\n")


def test_purge_needs_a_month(muster: CommandLine) -> None:
    assert muster.json("purge", "--before", "2026-03", "--dry-run") == {
        "before": "2026-03",
        "purged": False,
        "upload_dir": str(muster.data_dir / "files" / "upload"),
        "months": [],
        "jobs": 0,
        "instances": 0,
        "files": 0,
        "file_bytes": 0,
        "table_bytes": 0,
    }
    code, line = muster.error("purge", "--before", "March")
    assert (code, line.count("\n"), missing(line, "muster: --before:", "2026-03", "'March'")) == (1, 1, [])


def test_purge_with_yes_deletes_older_months(muster: CommandLine) -> None:
    batch_id = submitted(muster, BATCH.replace("count = 100", "count = 3"))
    muster.json("batch", "abort", str(batch_id))
    job_id = muster.json("job", "list", str(batch_id))[0]["job_id"]
    asyncio.run(moved_to_history(muster.data_dir / "postgres"))

    assert muster.json("job", "show", str(job_id))["state"] == "cancelled"
    before = ("purge", "--before", "9998-01")
    shown = muster.json(*before, "--dry-run")
    code, error = muster.error(*before)
    done = muster.run(*before, "--yes", "--json")

    assert shown["jobs"] >= 3 and shown["instances"] >= 3 and not shown["purged"]
    [month] = shown["months"]
    assert month["table_bytes"] == shown["table_bytes"] > 0
    assert code == 1
    assert not missing(error, "muster: nothing was purged:", "1 months")
    assert json.loads(done.stdout) == {**shown, "purged": True}
    assert done.stderr == f"{month['month']} is gone\n"
    assert muster.error("job", "show", str(job_id)) == (1, f"muster: no job {job_id}\n")
    assert muster.json("batch", "show", str(batch_id))["state"] == "aborted"
    assert muster.json(*before, "--dry-run")["months"] == []


async def moved_to_history(postgres_dir: Path) -> None:
    """Move all ended batches to the history, as the background process does after some days."""
    store = await open_store(await asyncio.to_thread(embedded.ensure_running, postgres_dir), min_size=1, max_size=1)
    now = SystemClock().now()
    await store.overdue.count_due(now=now)
    step = MovedJobs(more=True)
    while step.more:
        step = await store.history.move_ended(before=now, after=step.after, limit=100)
    await store.close()
