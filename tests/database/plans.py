"""Query plans of the store's queries, and the measured cost of running them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import asyncpg

from store.queries import load


async def explained(connection: asyncpg.Connection[asyncpg.Record], sql: str) -> dict[str, Any]:
    """Return the measured plan of a statement."""
    found: dict[str, Any] = json.loads(await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"))[0]
    return found


async def plan_of(connection: asyncpg.Connection[asyncpg.Record], name: str) -> dict[str, Any]:
    """Return the plan of sql/<name>.sql, for any arguments if the session uses generic plans."""
    sql = load(name)
    count = max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
    await connection.execute(f"PREPARE {name}_plan AS {sql}")
    arguments = f"({', '.join(['NULL'] * count)})" if count else ""
    text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE {name}_plan {arguments}")
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from walk(child)


def blocks(plan: dict[str, Any]) -> int:
    """Return the blocks a statement read, cached or not."""
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
