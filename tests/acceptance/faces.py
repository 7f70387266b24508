"""Interfaces to a running project: its periodic tasks, its client, its command line."""

from __future__ import annotations

import asyncio
from typing import Any

from administration.accounts import AccountKeys
from muster_client import Client
from tests.acceptance.server import LiveServer
from tests.acceptance.test_command_line import CommandLine, Done
from transfer.keys import load_keys


async def run_duty(server: LiveServer, name: str) -> None:
    """Run one round of the periodic task, as `muster up` does."""
    assert server.background is not None
    await server.background.catalogue.refresh_once()
    [duty] = [one for one in server.background.duties if one.name == name]
    await duty.step()
    assert duty.failures == 0


def client_of(server: LiveServer) -> Client:
    return Client(server.url, AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token())


async def command(server: LiveServer, *arguments: str) -> Done:
    return await asyncio.to_thread(CommandLine(server.project.data_dir).run, *arguments)


async def json_of(server: LiveServer, *arguments: str) -> Any:
    return await asyncio.to_thread(CommandLine(server.project.data_dir).json, *arguments)
