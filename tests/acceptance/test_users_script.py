"""A user's own script against a server, with the package `muster_client`."""

from __future__ import annotations

import asyncio

from administration.accounts import AccountKeys
from tests.acceptance.server import LiveServer
from tests.acceptance.users_script import follow, report
from transfer.keys import load_keys


async def test_user_script_type_keys_exist(server: LiveServer) -> None:
    token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
    await server.add_app()
    host = await server.add_host()
    batch_id = await server.submit(jobs={"count": 3}, name="three")
    await host.ask()
    assert server.background is not None
    [ordering] = [one for one in server.background.duties if one.name == "ordering"]
    await ordering.step()

    lines = await asyncio.to_thread(report, server.url, token, batch_id)
    seen = await follow(server.url, token, batch_id)

    assert lines[0] == "three: 0 of 3 jobs, place 1"
    assert any(line.startswith("instance ") for line in lines)
    assert lines[-1] == "p_tight 0.9"
    assert (seen[-1]["state"], seen[-1]["unsent"]) == ("aborted", 0)
