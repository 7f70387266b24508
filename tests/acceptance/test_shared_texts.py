"""Texts shared by a batch's jobs are stored once, and are complete on clients, pages and in the history."""

from __future__ import annotations

import asyncpg
import pytest

from domain.units import DAY_S
from tests.acceptance.server import LiveServer, a_batch
from tests.facts import missing

LINE = "--matrix " + "".join(chr(65 + (number * number) % 26) for number in range(9_000)) + " --part {i}"
MOST_BYTES = 1_000_000


async def bytes_of(server: LiveServer, *tables: str) -> int:
    assert server.project.database_url is not None
    connection = await asyncpg.connect(server.project.database_url)
    try:
        return sum([await connection.fetchval("SELECT pg_total_relation_size($1::regclass)", one) for one in tables])
    finally:
        await connection.close()


async def test_long_command_line_is_stored_once(server: LiveServer) -> None:
    await server.add_app()
    await server.create("PUT", "/files/in_1.txt", data=b"the input\n")
    before = await bytes_of(server, "job", "job_template", "job_class")
    inputs = [{"name": "in_1.txt", "open_name": f"in{number}"} for number in range(50)]
    kind = {**a_batch()["jobs"], "count": 1000, "command_line": LINE, "inputs": inputs}  # type: ignore[dict-item]

    answer = await server.create("POST", "/batches", json={"app": "pi", "qos": "throughput", "job": [kind]})

    assert await bytes_of(server, "job", "job_template", "job_class") - before < MOST_BYTES
    listed = await server.store.views.jobs(answer["batch_id"], limit=1000)
    assert [job.command_line for job in listed] == [LINE.replace("{i}", str(number)) for number in range(1000)]


async def test_shared_command_line_is_sent_and_kept(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 2, "command_line": LINE})
    host = await server.add_host()
    expected = {LINE.replace("{i}", str(number)) for number in range(2)}
    await server.feed()

    tasks = await host.ask(2)
    sent = {task.workunit.command_line for task in tasks}
    host.held.clear()
    await host.call()  # the client lost both
    resent = {task.workunit.command_line for task in host.held.values()}
    for task in list(host.held.values()):
        await host.compute(task)
    await host.call()
    await server.validate()
    await server.forward(8 * DAY_S)
    await server.history()

    assert sent == resent == expected
    assert (await server.batch(batch_id))["state"] == "complete"
    assert await bytes_of(server, "job") > 0
    assert {job.command_line for job in await server.store.views.jobs(batch_id, limit=5)} == expected
    assert {(await server.store.views.job(job.job_id)).command_line for job in await server.jobs(batch_id)} == expected


@pytest.mark.parametrize("name", ["command lines of rows", "outputs of classes", "instances"])
async def test_batch_too_large_to_store_is_refused(server: LiveServer, name: str) -> None:
    """A small request must not fill the disk."""
    await server.add_app()
    await server.store.settings.set_setting(
        "files.max_batch_bytes", 500_000, now=server.clock.now(), who="test", why=""
    )
    await server.feed()
    outputs = [{"name": f"out{number}" + "x" * 200, "max_bytes": 10} for number in range(100)]
    job = {"fpops_est": 1e12}
    asked: dict[str, dict[str, object]] = {
        "command lines of rows": {"job": [{**job, "command_line": f"{number} {LINE}"} for number in range(90)]},
        "outputs of classes": {"jobs": {"outputs": outputs}, "job": [{"fpops_est": 1e12 + n} for n in range(100)]},
        "instances": {"jobs": {**job, "count": 1000, "quorum": 20}},
    }

    status, answer = await server.api("POST", "/batches", json={"app": "pi", "qos": "throughput", **asked[name]})

    assert status == 422
    assert answer["field"] == "jobs"
    assert not missing(answer["detail"], "jobs:", "at most 500 kB", "(files.max_batch_bytes)")
