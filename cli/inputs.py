"""What a batch file names on this machine, brought to a server with the batch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from administration.batches import input_file_name
from domain.errors import InvalidInputError
from muster_client import Client
from transfer.downloads import content_of


async def brought(client: Client, values: Mapping[str, object], folder: Path) -> dict[str, object]:
    """The batch with every input by the name under which it was put on the server.

    Paths start in `folder`. Raises InvalidInputError for a file that cannot be read.
    """
    bringing = _Bringing(client, folder)
    made = await bringing.named(values)
    csv = values.get("jobs_csv")
    return {**made, "jobs_csv": await bringing.put(csv, "jobs_csv")} if isinstance(csv, str) and csv else made


class _Bringing:
    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._names: dict[str, str] = {}  # by path

    async def named(self, table: Mapping[str, Any]) -> dict[str, object]:  # Any: what people write in a file
        made = dict(table)
        for key, value in table.items():
            if key == "inputs" and isinstance(value, list):
                made[key] = [await self._input(one) if isinstance(one, dict) else one for one in value]
            elif isinstance(value, dict):
                made[key] = await self.named(value)
            elif isinstance(value, list):
                made[key] = [await self.named(one) if isinstance(one, dict) else one for one in value]
        return made

    async def _input(self, one: Mapping[str, Any]) -> Mapping[str, Any]:
        path = one.get("path")
        if not isinstance(path, str) or not path:
            return one  # named already, or wrong: the server says so
        return {
            **{key: value for key, value in one.items() if key != "path"},
            "name": await self.put(path, "inputs.path"),
        }

    async def put(self, path: str, field: str) -> str:
        """The name that a file has on the server; it is brought once. Raises InvalidInputError."""
        if path not in self._names:
            source = self._folder / path
            if not await asyncio.to_thread(source.is_file):
                raise InvalidInputError(field, "a readable file", str(source))
            name = input_file_name(source, (await asyncio.to_thread(content_of, source)).md5)
            await self._client.put_file(source, name=name)
            self._names[path] = name
        return self._names[path]
