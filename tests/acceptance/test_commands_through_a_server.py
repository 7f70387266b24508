"""Every command works through a server. Where the way there matters, it says the same on the project's own machine.

A command asks the API in either case (decision 65): what may differ is how it gets there, files that it sends and
fetches, what a server has and a command on the machine makes for itself, and how refusals come back.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from administration.accounts import AccountKeys
from administration.project import Project
from cli.main import muster
from domain.clock import SystemClock
from runtime.project import install
from store.postgres import PostgresStore, open_store
from tests.acceptance.host import LINUX
from tests.acceptance.server import LiveServer
from tests.acceptance.test_command_line import BATCH, Done, done_by
from tests.pg import database
from tests.unit.cli.test_every_command import commands
from tests.unit.cli.test_remote import goes_through_a_server
from transfer.keys import load_keys

HOSTS = """
    INSERT INTO host (
        host_id, volunteer_id, created_at, last_rpc_at, ncpus, flop_per_s, ram_bytes, disk_free_bytes, on_fraction,
        active_fraction, gpu_active_fraction, platforms
    )
    SELECT n, volunteer_id, $1, $1, 1, 1e9, 1e9, 1e9, 1, 1, 1, '{x86_64-pc-linux-gnu}'
    FROM volunteer, generate_series(1, 2) AS n
"""
REFUSED = {
    "batch_id": 1,
    "job_class_id": 1,
    "urgent": False,
    "waiting": 3,
    "hosts": 2,
    "codes": {"disk": 2},
    "since_at": 1.7e9,
    "rotated_out": False,
}
CSV = "command_line,count\n1,2\n2,1\n"
WITH_CSV = 'app = "pi"\nqos = "throughput"\njobs_csv = "jobs.csv"\n[jobs]\nfpops_est = 1e9\ndelay_bound_s = 86400\n'

# In this order on a new project; {folder} holds the files. Those with a = are done in both places and compared.
# The first two are so that no draw decides what is explained, long after workers know of it. The next three make
# simulations cheap.
STEPS = """
= setting set scheduler.afap_first_fraction 1 --why steady
= setting set scheduler.urgent_share_fraction 1 --why steady
= setting set estimator.pause_s 43200
= setting set estimator.timer_s 43200
= setting set ordering.interval_s 21600
= app add pi
= app add pi
= app set pi --friendly-name Digits --adaptive-copies 2
= app set pi --one-per-volunteer never --several-per-host
= app add lab --one-per-volunteer always --one-per-host
app set none --beta
app list
app plan-class set mt --ncpus 4 --os-pattern Linux
app plan-class set mt --os-pattern (
app plan-class list
app new ../pi
= app version add pi --platform {linux} --version 100 --main {folder}/main.sh --key {key}
= app version add pi --platform {linux} --version 100 --main {folder}/main.sh --key {key}
app version list pi
app version list none
app version use pi
app version use none
app version show 1
app version show 99
= app version deprecate 1
= app version withdraw 1 --leave
= app version withdraw 1 --abort
= app version offer 1
= app version offer 99
= volunteer add ada@example.org --name ada
volunteer add no-address
= volunteer set ada@example.org --beta --no-gpu --max-jobs 3
volunteer set ada@example.org
volunteer set ada@example.org --no-cpu --max-cpus 2 --app pi
= volunteer set ada@example.org --gpu --no-cpu --max-cpus 2 --app pi
volunteer set ada@example.org --app none
= volunteer set ada@example.org --cpu --app pi --all-apps
= volunteer set ada@example.org --cpu --all-apps
volunteer list
= volunteer find ada
volunteer find ada@
= account add lab --shares 2
account add team --parent none
account list
account set lab --permit raise --shares 3
account set lab
account set none --shares 1
submitter add sue --account lab
submitter list
submitter set sue --account default --shares 2
submitter set sue --permit expedite --no-permissions
submitter set sue --shares -1
= batch submit {folder}/batch.toml --preview
= batch submit {folder}/batch.toml
= batch submit {folder}/csv.toml
= batch submit {folder}/none.toml
= batch submit {folder}/wrong.toml
= batch show 1
= batch show 99
= batch list
= batch list --state active --app pi --submitter default --sort -deadline
batch list --app none
batch list --sort size
= batch list --at-risk --blocked --name x
= batch instances 1 --state unsent
batch instances 1 --state gone
= batch instances 99
= batch set 1 --user-priority -5 --account lab
batch set 1 --user-priority 5000
batch set 99 --queue normal
= batch clone 1 --name again --qos afap --preview
= batch clone 1 --name again --qos afap --memory-bytes 5e7 --delay-bound 86400
= batch clone 1 --qos short_deadline
= batch clone 99
= batch errors 1
= batch errors 99
= batch retry 1
= batch retry 99
= batch results 1 --to {folder}/results
= batch results 99 --to {folder}/results
job list 1 --limit 3 --after 1
= job list 2
job show 1
job show 99999
!
= host list
host list --show slow
host list --sort -last_contact --platform x86_64-pc-linux-gnu
host list --sort size
host list --show slow --label lab
host list --show failing --limit 1
host list --show silent --silent-s 0
host list --silent-s 5
host show 1
= host show 99
= host set 1 --label lab
= host set 99 --label lab
host instances 1
host instances 99
attention
ban host 1 --why slow --abort
ban host 1 --why slow --max-jobs 3
ban host 99 --why slow
= ban volunteer none@example.org --why spam
unban host 1
= unban host 1
= pause project --why test
= resume project
pause app pi --why test
= pause app none --why test
pause queue bonus --why test
= pause batch 1 --why {empty}
restrictions
unschedulable
explain batch 1
resume app pi
resume queue bonus
= resume queue bonus
= restrictions
= unschedulable
usage report
hoststats show
hoststats show --host 1
hoststats show --host 99
estimate show
estimate show 1
estimate show 99
= explain host 1
explain batch 1
explain job 1
explain instance 1
explain instance 99999
priority show
priority show --batch 1
priority show --batch 99
priority weights
priority preview policy=fifo
priority preview policy=best
= priority set max_wait_s=60 --why trying
= priority set policy=fifo --why {empty}
fairshare show
fairshare windows
fairshare reset --why trying
fairshare reset --account none --why trying
account delete none
account dump
account load nofile.csv
account delete default
submitter delete none
fairshare set submitter sue 4 --account lab
fairshare set account none 4
grant add lab --units 100
grant add lab --units 100
grant set default --units 5
grant list
grant set lab --units 50 --period-days 10
grant drop lab
grant drop lab
limit set submitter job_pe sue --soft 2 --hard 4
limit set submitter job_pe --soft 5 --hard 4
limit list
limit drop submitter job_pe sue
limit drop submitter job_pe sue
setting list deadline
setting list deadlines
setting show deadline.p_tight
setting show deadline.p_tigth
= setting set deadline.p_tight 0.8 --why trying
= setting set deadline.p_tight 2
setting set deadline.p_tigth 0.8
= setting reset deadline.p_tight --why useless
setting reset nothing
= setting history
thresholds show
thresholds preview p_tight=0.85
thresholds preview grace=1
= {simulated}
= thresholds preview grace=1 --simulate
thresholds set p_tight=0.85 --why trying
thresholds set p_tight=7 --why trying
operator add vic --role viewer
operator add sam --role submitter
operator password vic
operator password none
operator set vic --shut-out
operator set vic --active
operator list
operator sign-out vic
token add nightly --person vic --scope read --days 2
token add nightly --person vic --scope operate
token list
token revoke 1
token revoke 99
notify add https://example.org/hook --person vic --project
notify add https://example.org/hook --person ada
operator set vic --role operator
notify add https://example.org/hook --person vic --project --kind batch_done
notify add vic@example.org --person vic --project
notify list
notify set 1 --pause --interval-s 60
notify set 99 --resume
notify test 1
notify rotate 1
notify deliveries
notify delete 1
notify delete 1
batch abort 1
batch abort 99
"""
SIMULATED = "thresholds preview tail_late_factor=2 --simulate --seeds 1 --hosts 2 --days 1"
IN_WORDS = (
    *(
        "list",
        "show",
        "history",
        "weights",
        "preview",
        "host",
        "batch",
        "job",
        "instance",
        "unschedulable",
        "attention",
        "results",
        "errors",
        "restrictions",
    ),
)


@dataclass(frozen=True, slots=True)
class Both:
    """A project on this machine, and an equal one behind a server."""

    here: Project
    here_store: PostgresStore
    there: LiveServer

    async def said_there(self, *words: str) -> Done:
        """What a command says through the server."""
        if words[:2] == ("explain", "host"):
            await self.there.feed()  # a local command fills an array for its reply
        token = AccountKeys(load_keys(self.there.project.keys_dir).account_secret).api_token()
        url = self.there.url.rstrip("/")
        return await asyncio.to_thread(done_by, *words, "--server", url, "--token", token)

    async def said(self, *words: str) -> tuple[Done, Done]:
        """What a command says of each, with what differs by nature made alike."""
        there = await self.said_there(*words)
        here = await asyncio.to_thread(done_by, *words, "--data-dir", str(self.here.data_dir))
        return alike(here), alike(there)

    async def go_on(self) -> None:
        """Do what no command does: hosts call, and a worker reports work that they refuse."""
        now = SystemClock().now()
        for project, store in ((self.here, self.here_store), (self.there.project, self.there.store)):
            connection = await asyncpg.connect(project.database_url)
            await connection.execute(HOSTS, now)
            await connection.close()
            await store.process_reports.note("a: worker 0", "worker", {"unrunnable": [REFUSED]}, now=now)


def alike(done: Done) -> Done:
    """Replace secrets and times, which always differ."""
    return Done(done.exit_code, *(_masked(text) for text in (done.stdout, done.stderr)))


def _masked(text: str) -> str:
    for pattern in (
        r"\b1[789]\d{8}(\.\d+)?\b",  # a time
        r"\b[12]\.[0-9]+e\+09\b",
        r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?",
        r"\bmuster_[\w-]+",  # a token
        r"\b[0-9a-f]{32}\b",  # an account key, or a file name made from a digest
        r'(?<="password":")[^"]+|(?<=one-time password ).+',
        r'(?<="silent_s":)[\d.e-]+|(?<="known_s":)[\d.e-]+|(?<=last )[\d.]+ m?s ago',
        r'(?<="array":)"\w+"|(?<="would_search":)\w+|\bevaluated on .+',  # a worker's, or one filled now
        r"\d+\.\d+(e-?\d+)? (s|d|h|min)\b|\bin \d+\.\d+ d\b|\b\d+ m?s(?= ago\b)",
    ):
        text = re.sub(pattern, "0", text)
    return text


@pytest.fixture
async def both(server: LiveServer, tmp_path: Path, keys_dir: Path) -> AsyncIterator[Both]:
    folder = tmp_path / "here"
    shutil.copytree(keys_dir, folder / "keys")
    async with AsyncExitStack() as stack:
        dsn = await stack.enter_async_context(database())
        here = await install(folder, dsn, {"project.url": server.url}, who="test", clock=SystemClock())
        store = await open_store(dsn, clock=SystemClock(), min_size=1, max_size=2)
        stack.push_async_callback(store.close)
        yield Both(here, store, server)


@dataclass(frozen=True, slots=True)
class Step:
    """A command's words, and whether it is done in both places."""

    words: list[str]
    in_both: bool


def the_steps(folder: Path, key: Path) -> list[Step]:
    (folder / "main.sh").write_text("#!/bin/sh\n")
    (folder / "in.txt").write_text("input\n")
    (folder / "jobs.csv").write_text(CSV)
    (folder / "csv.toml").write_text(WITH_CSV)
    (folder / "batch.toml").write_text(BATCH)
    (folder / "wrong.toml").write_text('app = "pi"\nqos = "soon"\n')
    places = {"folder": folder, "key": key, "linux": LINUX, "empty": "{empty}", "simulated": SIMULATED}
    filled = (line.format(**places) for line in STEPS.strip().splitlines())
    steps = (["" if word == "{empty}" else word for word in line.split()] for line in filled)
    return [Step(words[words[0] == "=" :], words[0] == "=") for words in steps]


def called(words: list[str]) -> tuple[str, ...]:
    """The name of the command that a step calls."""
    [found] = [known for known in dict(commands(muster)) if tuple(words[: len(known)]) == known]
    return found


def test_commands_use_a_server_or_refuse_with_advice(tmp_path: Path) -> None:
    remote = {words for words, command in commands(muster) if goes_through_a_server(command)}
    steps = the_steps(tmp_path, tmp_path / "key.pem")

    assert {called(step.words) for step in steps if step.words != ["!"]} == remote


async def test_commands_work_through_a_server(both: Both, tmp_path: Path, keys_dir: Path) -> None:
    wrong: list[tuple[list[str], tuple[Done, ...]]] = []
    for step in the_steps(tmp_path, keys_dir / "signing" / "0001.pem"):
        words = step.words
        if words == ["!"]:
            await both.go_on()
            continue
        done = await said_of(both, step, "--json")
        ended = done[0].exit_code
        if len(set(done)) > 1 or ended not in (0, 1) or (ended and words == SIMULATED.split()):
            wrong.append((words, done))
        json.loads(done[0].stdout if ended == 0 else done[0].stderr)
        if ended == 0 and called(words)[-1] in IN_WORDS and words != SIMULATED.split():
            done = await said_of(both, step)
            if len(set(done)) > 1 or done[0].exit_code:
                wrong.append((words, done))
    assert not wrong, "\n".join(f"{' '.join(words)}\n  {done}" for words, done in wrong)


async def said_of(both: Both, step: Step, *more: str) -> tuple[Done, ...]:
    """What a step says, in each place where it is done."""
    if step.in_both:
        return await both.said(*step.words, *more)
    return (await both.said_there(*step.words, *more),)
