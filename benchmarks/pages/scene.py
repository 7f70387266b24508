"""Creates the project whose pages are timed: a batch with most jobs, ranked hosts with results, and users."""

from __future__ import annotations

import argparse
import asyncio

import asyncpg

from administration.access.sign_in import stretched
from administration.accounts import AccountKeys, add_volunteer
from administration.batches import Batches
from administration.project import Project
from administration.simulations.rules import RequestedComparison, checked
from administration.simulations.runs import RequestedRun, SimulationRuns
from administration.thresholds.replay import replay
from benchmarks.pages.addresses import NAME, Scene
from benchmarks.populations import APPS, NEWCOMER_FRACTION, ROWS, versions
from benchmarks.running import say
from benchmarks.submit import APP, COMMAND_LINE, JOB, make_app
from domain.access import Role
from domain.clock import Clock
from domain.samples import KEPT_S
from domain.views import SimulationState
from runtime.compose import host_statistics
from runtime.project import database_dsn, open_database
from store.postgres import PostgresStore
from transfer.keys import load_keys
from transfer.project_files import ProjectFiles
from wire.attach import password_hash

PASSWORD = "a password for one benchmark"
SMALL = 10  # jobs in each other batch
RESULTS = 10  # per host, or fewer so that at most half of the jobs have results
OWN_HOSTS, OWN_RESULTS = 10, 20_000  # for the volunteer who fetches pages
OWN = "ada@example.org"
STATEMENT_S = 3600.0

# Each has a volunteer. 10 % have been silent for long; the others called in the last week, most of them recently.
HOSTS = """
WITH owner AS (
    INSERT INTO volunteer (email, name, authenticator_nonce, authenticator_hash, created_at)
    SELECT 'v' || number || '@example.org', 'v', decode(md5(number::text), 'hex'),
           sha256(convert_to(number::text, 'UTF8')), $2
    FROM generate_series(1, $1::int) AS number RETURNING volunteer_id
)
INSERT INTO host (
    volunteer_id, host_cpid, created_at, last_rpc_at, rpc_interval_s, ncpus, flop_per_s, ram_bytes,
    disk_free_bytes, on_fraction, active_fraction, gpu_active_fraction, platforms
)
SELECT
    volunteer_id, md5(volunteer_id::text), $2::double precision - 86400 * 90,
    $2::double precision - CASE WHEN random() < 0.1 THEN 86400 * (8 + 52 * random()) ELSE 86400 * 6 * random() ^ 2 END,
    3600 + 36000 * random(), 1 + floor(8 * random()), 1e9 + 3e9 * random(), 8e9, 5e10, 0.5 + 0.5 * random(), 0.9, 0.9,
    ARRAY['x86_64-pc-linux-gnu']
FROM owner
"""
OWN_COMPUTERS = """
INSERT INTO host (
    volunteer_id, host_cpid, created_at, last_rpc_at, rpc_interval_s, ncpus, flop_per_s, ram_bytes, disk_free_bytes,
    on_fraction, active_fraction, gpu_active_fraction, platforms
)
SELECT volunteer_id, md5('own' || number), $2, $2, 3600, 4, 2e9, 8e9, 5e10, 0.9, 0.9, 0.9, ARRAY['x86_64-pc-linux-gnu']
FROM volunteer, generate_series(1, $1::int) AS number
WHERE email = $3
"""
FAILURES = """
UPDATE host_app_version SET n_error = floor(20 * random()), n_timeout = floor(5 * random()) WHERE host_id % 10 = 0
"""
# The hosts from $4 to $5 take the batch's last $3 unsent jobs in turn. Of 100 jobs, five are in progress, three failed
# and one timed out; the rest are valid.
WORK = """
WITH chosen AS (
    SELECT instance_id, row_number() OVER () AS number
    FROM (
        SELECT instance_id FROM instance WHERE batch_id = $1 AND state = 'unsent' ORDER BY instance_id DESC LIMIT $3
    ) AS last_ones
), drawn AS (
    SELECT
        instance_id, $4::int + number % ($5::int - $4::int + 1) AS host_id, floor(100 * random()) AS fate,
        86400 * (1 + 5 * random()) AS ago_s, 43200 * random() AS took_s
    FROM chosen
)
UPDATE instance SET
    state = CASE
        WHEN fate < 5 THEN 'in_progress' WHEN fate < 8 THEN 'failed' WHEN fate < 9 THEN 'timed_out' ELSE 'valid'
    END,
    host_id = host.host_id, volunteer_id = host.volunteer_id, app_version_id = $6,
    sent_at = $2 - ago_s, due_at = $2 - ago_s + CASE WHEN fate = 8 THEN 43200 ELSE 604800 END,
    timeout_at = $2 - ago_s + CASE WHEN fate = 8 THEN 50000 ELSE 700000 END, est_runtime_s = 3600,
    reported_at = CASE WHEN fate BETWEEN 5 AND 7 OR fate > 8 THEN $2 - ago_s + took_s END, elapsed_s = took_s / 2,
    reason = CASE WHEN fate BETWEEN 5 AND 7 THEN 'exit status 1' END
FROM drawn JOIN host USING (host_id)
WHERE instance.instance_id = drawn.instance_id
"""
SAMPLES = """
INSERT INTO sample (step_s, at, figures)
SELECT $1::int, $1 * (floor($2::double precision / $1) - number), (
    SELECT jsonb_object_agg(name, random()) FROM unnest('{
        requests,sent,reports,failed,busy,batches,jobs_open,unsent,in_progress,hosts,refused.disk,refused.memory,
        refused.platform,refused.no_app_version,refused.speed,refused.gate_late,refused.gate_tight,refused.beta
    }'::text[]) AS name WHERE number > 0
)
FROM generate_series(1, $3::int / $1) AS number
"""
END_JOBS = """
UPDATE job SET
    state = instance.state, ended_at = instance.reported_at,
    canonical_instance_id = CASE WHEN instance.state = 'valid' THEN instance.instance_id END,
    failure = CASE WHEN instance.state = 'failed' THEN 'too many errors' END
FROM instance
WHERE job.batch_id = $1 AND instance.job_id = job.job_id AND instance.state IN ('valid', 'failed')
"""
RETRIES = """
INSERT INTO instance (job_id, batch_id, job_class_id, shard, retries, urgent, created_at)
SELECT job_id, batch_id, job_class_id, shard, 1, true, $2 FROM instance WHERE batch_id = $1 AND state = 'timed_out'
"""
COUNTS = """
WITH gone AS (DELETE FROM batch_count WHERE batch_id = $1)
INSERT INTO batch_count (
    batch_id, stripe, jobs_validated, jobs_failed, unsent, in_progress, retries, sent, reported, last_first_dispatch_at
)
SELECT
    $1, 99, count(*) FILTER (WHERE state = 'valid'), count(*) FILTER (WHERE state = 'failed'),
    count(*) FILTER (WHERE state = 'unsent'), count(*) FILTER (WHERE state = 'in_progress'),
    count(*) FILTER (WHERE state IN ('failed', 'timed_out')), count(sent_at), count(reported_at), max(sent_at)
FROM instance
WHERE batch_id = $1
"""


async def load(project: Project, options: argparse.Namespace, clock: Clock) -> Scene:
    """Fill a new project. This is slow."""
    await make_app(project, clock)
    async with open_database(project, clock) as store:
        large, small = await _batches(store, project, options, clock)
        await _people(store, project, clock)
        connection = await asyncpg.connect(await database_dsn(project))
        try:
            ranked, own = await _hosts(store, connection, options.hosts, clock)
            await _work(connection, large, options, clock, others=ranked, own=own)
            for step_s, kept_s in KEPT_S.items():
                await connection.execute(SAMPLES, step_s, clock.now(), int(kept_s))
            say(f"{options.hosts} hosts have results; ranking")
            ranking = (await store.applications.load_catalogue()).settings.ranking
            done = await host_statistics(store, lambda: ranking, clock).statistics.run()
            assert done is not None
            say(f"{done.ranked} of {done.rows} rows are ranked; running two simulations")
            simulation, replayed = await _simulations(store, clock)
            await connection.execute("CHECKPOINT", timeout=STATEMENT_S)

            async def one(query: str) -> int:
                return int(await connection.fetchval(query, large))

            return Scene(
                large,
                small,
                job=await one("SELECT min(job_id) FROM instance WHERE batch_id = $1 AND state = 'unsent'"),
                done_job=await one("SELECT max(job_id) FROM job WHERE batch_id = $1 AND state = 'valid'"),
                instance=await one("SELECT max(instance_id) FROM instance WHERE batch_id = $1 AND state = 'valid'"),
                unsent=await one("SELECT min(instance_id) FROM instance WHERE batch_id = $1 AND state = 'unsent'"),
                own=own,
                ranked=ranked,
                simulation=simulation,
                replay=replayed,
                app=APP,
                volunteer="v7@example.org",
            )
        finally:
            await connection.close()


async def _batches(
    store: PostgresStore, project: Project, options: argparse.Namespace, clock: Clock
) -> tuple[int, int]:
    """Create small batches, and one with all other jobs; return the large one and one of the others."""
    batches = Batches(store, ProjectFiles(project.files_dir), clock)
    one = {"app": APP, "qos": "afap", "jobs": {**JOB, "count": SMALL, "command_line": COMMAND_LINE}}
    ids = [await batches.submit({**one, "name": f"small {n}"}) for n in range(options.batches - 1)]
    say(f"created {len(ids)} small batches")
    count = max(SMALL, options.jobs - SMALL * len(ids))
    jobs = {**JOB, "count": count, "command_line": COMMAND_LINE}
    large = await batches.submit({"app": APP, "qos": "throughput", "name": "large", "jobs": jobs})
    say(f"created a batch of {count} jobs")
    return large, ids[0] if ids else large


async def _people(store: PostgresStore, project: Project, clock: Clock) -> None:
    """Create an operator and a volunteer."""
    await store.access.add_person(
        NAME,
        role=Role.OPERATOR,
        submitter_id=None,
        password=stretched(PASSWORD),
        one_time_until=None,
        now=clock.now(),
    )
    keys = AccountKeys(load_keys(project.keys_dir).account_secret)
    hashed = password_hash(PASSWORD, OWN)
    await add_volunteer(store.volunteers, keys, OWN, name="", password_hash=hashed, now=clock.now())


async def _hosts(store: PostgresStore, connection: asyncpg.Connection, hosts: int, clock: Clock) -> tuple[int, int]:
    """Create hosts with a row for each of six apps, and the volunteer's own hosts. Return the first of each."""
    now = clock.now()
    on_cpu, on_gpu = await versions(store, now)
    [mine] = await connection.fetch("SELECT min(app_version_id) AS version FROM app_version")
    await connection.execute("SELECT setseed(0.5)")
    await connection.execute(HOSTS, hosts, now, timeout=STATEMENT_S)
    first = int(await connection.fetchval("SELECT min(host_id) FROM host"))
    await connection.execute(OWN_COMPUTERS, OWN_HOSTS, now, OWN)
    last = first + hosts + OWN_HOSTS - 1
    for on, instead in ((on_cpu, on_gpu), ([mine["version"]], [mine["version"]])):
        await connection.execute(ROWS, first, last, now, NEWCOMER_FRACTION, on, instead, timeout=STATEMENT_S)
    await connection.execute(FAILURES, timeout=STATEMENT_S)
    assert len(on_cpu) == APPS
    return first, first + hosts


async def _work(
    connection: asyncpg.Connection, large: int, options: argparse.Namespace, clock: Clock, *, others: int, own: int
) -> None:
    """Create results for the large batch, end their jobs, and set its counters."""
    now = clock.now()
    version = await connection.fetchval("SELECT min(app_version_id) FROM app_version")
    half = options.jobs // 2
    shares = (
        (min(OWN_RESULTS, half // 2), own, own + OWN_HOSTS - 1),
        (min(RESULTS * options.hosts, half // 2), others, own - 1),
    )
    for results, first, last in shares:
        await connection.execute(WORK, large, now, results, first, last, version, timeout=STATEMENT_S)
    await connection.execute(END_JOBS, large, timeout=STATEMENT_S)
    await connection.execute(RETRIES, large, now, timeout=STATEMENT_S)
    await connection.execute(COUNTS, large, timeout=STATEMENT_S)
    await connection.execute("VACUUM (ANALYZE)", timeout=STATEMENT_S)


async def _simulations(store: PostgresStore, clock: Clock) -> tuple[int, int]:
    """Run a simulation of rules and a simulation of thresholds."""
    runs = SimulationRuns(store.simulations, clock)
    rules = await asyncio.to_thread(checked, RequestedComparison("small", ["muster", "fixed"]))
    tried = await replay(store, clock, {"deadline.p_tight": 0.8}, seeds=[1], most_hosts=100, days=1.0)
    return await _run(store, runs, rules), await _run(store, runs, tried)


async def _run(store: PostgresStore, runs: SimulationRuns, work: RequestedRun) -> int:
    number = await runs.start(work, who=NAME)
    await runs.wait()
    found = await store.simulations.simulation(number)
    assert found.state is SimulationState.DONE, found.failure
    return number
