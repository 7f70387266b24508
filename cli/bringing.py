"""Uploads the input files of a batch, and replaces their paths in the batch by their names on the server."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.context import patiently
from domain.clock import Clock
from domain.errors import InvalidInputError

if TYPE_CHECKING:
    from jobs.table import Row
    from muster_client import Client

Table = Mapping[str, Any]  # Any: content of a user's file
AT_ONCE = 4  # parallel uploads


async def brought(client: Client, values: Table, folder: Path, clock: Clock) -> Table:
    """Upload the batch's input files, and return the batch with their names on the server.

    Paths are relative to `folder`. Jobs that each have their own files become rows of a table. Raises
    InvalidInputError for a file that cannot be read.
    """
    bringing = _Bringing(client, folder, clock)
    if not await asyncio.to_thread(_paths_vary, values, folder):
        await bringing.put_all(_paths(one for table in _tables(values) for one in _inputs(table)))
        table = values.get("jobs_csv")
        named = bringing.named(values)
        return {**named, "jobs_csv": await bringing.put(table, "jobs_csv")} if table else named

    def rows() -> Iterator[dict[str, Any]]:
        return _rows(values, folder)

    shared = {**_table(values.get("jobs"))}
    shared["inputs"] = [one for one in _inputs(shared) if not _varies(one)]
    shared.pop("count", None)
    await bringing.put_all(_paths(shared["inputs"]))
    await bringing.put_all(await asyncio.to_thread(lambda: _paths(one for row in rows() for one in row["inputs"])))
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "jobs.jsonl"
        await asyncio.to_thread(_write, file, (bringing.named(row) for row in rows()))
        name = await bringing.put(str(file), "jobs_csv")
    rest = {key: value for key, value in values.items() if key not in ("job", "jobs", "jobs_csv")}
    return {**rest, "jobs": bringing.named(shared), "jobs_csv": name}


def _write(file: Path, rows: Iterable[Table]) -> None:
    with file.open("w", encoding="utf-8") as to:
        for row in rows:
            to.write(json.dumps(row) + "\n")


def _paths_vary(values: Table, folder: Path) -> bool:
    """Return whether rows of a table, or numbered jobs, have files of their own."""
    if any(_varies(one) for table in _tables(values) for one in _inputs(table)):
        return True
    if not values.get("jobs_csv"):
        return False
    first = next(iter(_table_rows(values, folder)), {})
    return any(name == "inputs" or name.startswith("input.") for name in first)


def _rows(values: Table, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table that the batch becomes, each with `inputs`: the files of its own."""
    from jobs.table import cells_of, filled, placeholders

    jobs = _table(values.get("jobs"))
    shared = [one for one in _inputs(jobs) if _varies(one)]
    elsewhere = placeholders({**jobs, "inputs": [one for one in _inputs(jobs) if not _varies(one)]})
    index = 0
    for row in _table_rows(values, folder):
        columns = {name.removeprefix("input."): row[name] for name in row if name.startswith("input.")}
        rest = {name: value for name, value in row.items() if name != "inputs" and not name.startswith("input.")}
        own = [*_inputs(row), *({"open_name": name, "path": path} for name, path in columns.items() if path)]
        in_paths = placeholders([one.get("path") for one in (*shared, *own)])
        for name in in_paths - elsewhere - placeholders(rest):
            rest.pop(name, None)  # the server would find no use for this column
        cells = cells_of(row)
        own_names = {one.get("open_name") for one in own}
        inputs = filled([*(one for one in shared if one.get("open_name", "") not in own_names), *own], cells)
        count = row.get("count") or 1
        count = int(count) if str(count).isdecimal() else 1  # what is no number is left to the server, which reports it
        if not any("{i}" in str(one.get("path")) for one in inputs):
            yield {**rest, "inputs": inputs}
        else:
            for number in range(index, index + count):
                yield {**rest, "inputs": filled(inputs, {"i": str(number)}), "count": 1}
        index += count


def _table_rows(values: Table, folder: Path) -> Iterable[Row]:
    from administration.batches import table_rows

    if values.get("jobs_csv"):
        return table_rows(folder / str(values["jobs_csv"]), str(values["jobs_csv"]))
    of_all, *tables = _tables(values)
    return tables or [{"count": of_all.get("count")}]


def _tables(values: Table) -> list[Table]:
    """Return [jobs] and each [[job]]; what is no table is left to the server, which reports it."""
    job = values.get("job")
    return [_table(values.get("jobs")), *map(_table, job if isinstance(job, list) else ())]


def _table(value: object) -> Table:
    return value if isinstance(value, dict) else {}


def _inputs(table: Table) -> list[Table]:
    inputs = table.get("inputs")
    return [one for one in inputs if isinstance(one, dict)] if isinstance(inputs, list) else []


def _paths(inputs: Iterable[Table]) -> dict[str, None]:
    return dict.fromkeys(one["path"] for one in inputs if isinstance(one.get("path"), str) and one["path"])


def _varies(one: Table) -> bool:
    from jobs.table import placeholders

    return bool(placeholders(one.get("path")))


class _Bringing:
    def __init__(self, client: Client, folder: Path, clock: Clock) -> None:
        self._client = client
        self._folder = folder
        self._clock = clock
        self._names: dict[str, str] = {}  # by path

    def named(self, table: Table) -> dict[str, Any]:
        """Return a table with uploaded files by name instead of by path."""
        made = dict(table)
        for key, value in table.items():
            if isinstance(value, dict):
                made[key] = self.named(value)
            elif isinstance(value, list):
                made[key] = [self.named(one) if isinstance(one, dict) else one for one in value]
        path = made.get("path")
        if not isinstance(path, str) or path not in self._names:
            return made  # has a name already, or is invalid: the server reports it
        del made["path"]
        return {"open_name": Path(path).name, **made, "name": self._names[path]}

    async def put_all(self, paths: Iterable[str]) -> None:
        """Upload files, several at once. Raises InvalidInputError."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def put(path: str) -> None:
            async with slots:
                await self.put(path, "inputs.path")

        await asyncio.gather(*(put(path) for path in paths if path not in self._names))

    async def put(self, path: str, field: str) -> str:
        """Upload a file once, and return its name on the server. Raises InvalidInputError."""
        from administration.batches import input_file_name
        from transfer.files import content_of

        if path not in self._names:
            source = self._folder / path
            if not await asyncio.to_thread(source.is_file):
                raise InvalidInputError(field, "a readable file", str(source))
            name = input_file_name(source, (await asyncio.to_thread(content_of, source)).md5)
            await patiently(self._clock, lambda: self._client.put_file(source, name=name))
            self._names[path] = name
        return self._names[path]
