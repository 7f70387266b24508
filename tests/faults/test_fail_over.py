"""The primary is killed under load and its synchronous standby promoted, and back: nothing is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.cluster import cluster
from tests.faults.crowd import (
    POLITE,
    QUICK,
    assert_all_is_settled,
    assert_every_acknowledged_report_is_kept,
    assert_nothing_lost_or_doubled,
    crowd,
)
from tests.faults.servers import DatabaseServer, primary_and_standby


@pytest.fixture
def servers() -> Iterator[tuple[DatabaseServer, DatabaseServer]]:
    """Servers in a folder below /tmp: pytest's folders are not accessible to the database's user."""
    with tempfile.TemporaryDirectory(prefix="muster-fail-over-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with primary_and_standby(Path(folder) / "servers") as both:
            yield both


@pytest.mark.parametrize(
    "switches", [pytest.param(2, id="there and back"), pytest.param(6, id="again and again", marks=pytest.mark.faults)]
)
async def test_fail_over_loses_and_doubles_nothing(
    tmp_path: Path, keys_dir: Path, servers: tuple[DatabaseServer, DatabaseServer], switches: int
) -> None:
    primary, standby = servers
    await primary.has_synchronous_standby()
    primary.create_database("muster")
    dsn = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/muster"
    dsn += "?target_session_attrs=read-write"
    async with cluster(tmp_path, keys_dir, dsn, nodes=1, workers=2) as made:
        await made.server.add_app()
        await made.server.submit(jobs={"count": 20_000, **QUICK})
        async with crowd(made.server, made.urls, 6) as clients:
            await clients.sent(20)
            for _ in range(switches):
                primary.kill()
                standby.promote()
                await clients.sent(20)

                primary.copy(standby)
                primary.start()
                standby.wait_for_standbys(wait=True)
                await standby.has_synchronous_standby()
                await clients.sent(20)
                primary, standby = standby, primary

        assert set(clients.refused) <= {(503, POLITE)}
        await assert_nothing_lost_or_doubled(clients.told, primary.dsn("muster"))
        await assert_every_acknowledged_report_is_kept(clients.acknowledged, primary.dsn("muster"))
        await made.evenly_held(2)
        await assert_all_is_settled(made.server.store)
        assert [line for line in made.nodes[0].log().splitlines() if "process died" in line] == []
