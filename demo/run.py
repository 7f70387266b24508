"""Runs `muster demo`: a new project, an application, four batches (one of each kind), and simulated volunteers.

If the stock client is installed, it takes part as one more volunteer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from administration.access.sign_in import one_time_password, stretched
from administration.accounts import AccountKeys, add_volunteer
from administration.apps import VersionDraft, add_app_version
from administration.batches import Batches
from administration.project import Project
from administration.signing import with_project_key
from demo.load.jobs import draw_profiles
from demo.load.volunteer import LoadGenerator, LoadMember
from demo.plan import APP, SETTINGS, planned_batches
from demo.report import BatchOutcome, Screen, outcome_of
from domain.access import Role
from domain.apps import App
from domain.clock import Clock, SystemClock
from domain.errors import MusterError
from domain.units import AppId, BatchId
from runtime.project import install, open_database
from store.postgres import PostgresStore
from transfer.keys import load_keys
from transfer.project_files import ProjectFiles

CONFIG = """<cc_config><options><skip_cpu_benchmarks>1</skip_cpu_benchmarks><no_gpus>1</no_gpus><ncpus>1</ncpus>
<dont_contact_ref_site>1</dont_contact_ref_site><no_info_fetch>1</no_info_fetch>
<allow_multiple_clients>1</allow_multiple_clients><report_results_immediately>1</report_results_immediately>
</options></cc_config>
"""
PREFERENCES = """<global_preferences><run_on_batteries>1</run_on_batteries><run_if_user_active>1</run_if_user_active>
<suspend_cpu_usage>0</suspend_cpu_usage><work_buf_min_days>0.0001</work_buf_min_days>
<work_buf_additional_days>0</work_buf_additional_days><disk_max_used_gb>0</disk_max_used_gb>
<disk_max_used_pct>100</disk_max_used_pct><disk_min_free_gb>0.1</disk_min_free_gb>
</global_preferences>
"""
STOP_S = 5.0


class StockVolunteer:
    """Runs `boinc` attached to the project. Does nothing if it is not installed."""

    def __init__(self, folder: Path, url: str, account_key: str) -> None:
        self._folder = folder
        self._url = url
        self._account_key = account_key
        self._process: asyncio.subprocess.Process | None = None
        self._program = shutil.which("boinc")

    def state(self) -> str:
        """Return "absent" (not installed) or "joined"."""
        return "absent" if self._program is None else "joined"

    async def start(self) -> None:
        if self._program is None:
            return
        self._folder.mkdir(parents=True)
        (self._folder / "cc_config.xml").write_text(CONFIG)
        (self._folder / "global_prefs_override.xml").write_text(PREFERENCES)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with (self._folder / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                self._program,
                *("--dir", str(self._folder), "--gui_rpc_port", str(port)),
                *("--attach_project", self._url, self._account_key),
                stdout=log,
                stderr=log,
            )

    async def stop(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


PRIMES = Path(__file__).parent / "primes.py"
AT_MOST_S = 105.0  # for computing; with shutdown and the final table, the demonstration ends within two minutes
LOOK_S = 0.5
START_S = 30.0


class DemoFailedError(MusterError):
    """The demonstration could not run."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A running project, and what the demonstration needs to use it."""

    project: Project
    url: str
    store: PostgresStore
    clock: Clock

    def batches(self) -> Batches:
        return Batches(self.store, ProjectFiles(self.project.files_dir), self.clock)


async def run_demo(*, volunteers: int, seed: int, quiet: bool, database_url: str | None = None) -> BatchOutcome:
    """Run the demonstration in a temporary directory and return its outcome. Raises DemoFailedError.

    `database_url` names an empty database to use instead of the embedded one.
    """
    clock = SystemClock()
    folder = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    started_s = clock.monotonic()
    try:
        screen = Screen(quiet=quiet)
        screen.say("creating a project …")
        project, url = await _create(folder / "project", database_url, clock)
        async with open_database(project, clock) as store, _server(project, url, folder / "server.log", clock):
            demo = Demo(project, url, store, clock)
            members, stock_key = await _people(demo, volunteers, seed)
            await _application(demo)
            screen.say(f"console until the end: {url}console/; sign in as demo with {await _operator(demo)}")
            ids = [await demo.batches().submit(batch) for batch in planned_batches()]
            screen.say(f"serving on {url}: four batches submitted, {volunteers} volunteers are joining …")
            load = LoadGenerator(
                members, scheduler_url=f"{url}scheduler", folder=folder / "load", clock=clock, seed=seed
            )
            stock = StockVolunteer(folder / "stock-client", url, stock_key)
            await _until_done(demo, ids, load, stock, screen, started_s)
            outcome = await outcome_of(
                store, project, ids, load, stock=stock.state(), seconds=clock.monotonic() - started_s
            )
            screen.final(outcome)
            return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _create(data_dir: Path, database_url: str | None, clock: Clock) -> tuple[Project, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/"
    project = await install(data_dir, database_url, {"project.url": url, **SETTINGS}, who="demo", clock=clock)
    return project, url


@asynccontextmanager
async def _server(project: Project, url: str, log_path: Path, clock: Clock) -> AsyncIterator[None]:
    """Run `muster up` in its own process, as operators do."""
    port = url.rstrip("/").rpartition(":")[2]
    with log_path.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "cli.run", "up", "--data-dir", str(project.data_dir)),
            *("--host", "127.0.0.1", "--port", port),
            stdout=log,
            stderr=log,
            env={key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")},
        )
    try:
        await _listening(int(port), process, log_path, clock)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _listening(port: int, process: asyncio.subprocess.Process, log_path: Path, clock: Clock) -> None:
    end_s = clock.monotonic() + START_S
    while clock.monotonic() < end_s and process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await clock.sleep(0.1)
            continue
        writer.close()
        return
    log = await asyncio.to_thread(log_path.read_text, errors="replace")
    raise DemoFailedError(f"the server did not start:\n{log[-2000:]}")


async def _people(demo: Demo, count: int, seed: int) -> tuple[list[LoadMember], str]:
    keys = AccountKeys(load_keys(demo.project.keys_dir).account_secret)

    async def added(email: str) -> str:
        account = await add_volunteer(
            demo.store.volunteers, keys, email, name="", password_hash=None, now=demo.clock.now()
        )
        return account.authenticator

    profiles = draw_profiles(count, seed=seed)
    members = [LoadMember(profile, await added(profile.email)) for profile in profiles]
    return members, await added("stock-client@volunteers.invalid")


async def _operator(demo: Demo) -> str:
    """Add the operator `demo` and return the password."""
    password = one_time_password()
    kept = await asyncio.to_thread(stretched, password)
    await demo.store.access.add_person(
        "demo", role=Role.OPERATOR, submitter_id=None, password=kept, one_time_until=None, now=demo.clock.now()
    )
    return password


async def _application(demo: Demo) -> None:
    await demo.store.applications.add_app(App(AppId(0), APP, user_friendly_name="Prime counting"))
    new = VersionDraft(APP, "x86_64-pc-linux-gnu", 100, PRIMES)
    sign = with_project_key(demo.project)
    await add_app_version(demo.store.applications, demo.project, new, clock=demo.clock, sign=sign)


async def _until_done(
    demo: Demo, ids: list[BatchId], load: LoadGenerator, stock: StockVolunteer, screen: Screen, started_s: float
) -> None:
    """Run the volunteers until all batches have ended or the time is up."""
    stop = asyncio.Event()
    await stock.start()  # started first, because it takes some seconds to contact the server
    working = asyncio.create_task(load.run(stop))
    try:
        while demo.clock.monotonic() - started_s < AT_MOST_S and not working.done():
            batches = [await demo.store.views.batch(batch_id) for batch_id in ids]
            screen.show(batches, demo.clock.now(), demo.clock.monotonic() - started_s)
            if all(batch.ended_at is not None for batch in batches):
                break
            await demo.clock.sleep(LOOK_S)
    finally:
        stop.set()
        await stock.stop()
        await working
