"""Simulates the clients of several nodes: `python -m benchmarks.nodes.load WORLD.json`, controlled by lines of JSON.

Standard input: {"ports": [...], "connections": N} starts the load; {"back": PORT} marks a node as serving again;
{"stop": TOLD.npy, "requests": REQUESTS.npy} ends it and saves the jobs in replies (host_id, job_id, instance_id) and
when requests were answered (began_s, answered_s, port; monotonic). Standard output: a line of JSON for each.

Each connection has its own hosts and a preferred node. A request that breaks, is refused or returns an error is resent
to the other node, as a client does: with its current state, not knowing whether the first request was processed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.dispatch.bodies import ClientHost, Template, results_of

REFUSED_PAUSE_S = 0.05  # pause before a refused request is sent to the other node
REPLY_S = 30.0  # a real client would wait for minutes; here a reply this late is a failure
BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError)


class Crowd:
    """All clients, the jobs in their replies, and their waiting times."""

    def __init__(self, template: Template, hosts: Sequence[ClientHost], ports: Sequence[int]) -> None:
        self.template = template
        self.hosts = hosts
        self.ports = list(ports)
        self.down: set[int] = set()
        self.stopping = False
        self.told: list[tuple[int, bytes]] = []
        self.times = array("d")  # began_s, answered_s, port of each request
        self.tries_failed = self.without_work = 0

    def other(self, port: int) -> int:
        """Return the next node's port."""
        return self.ports[(self.ports.index(port) + 1) % len(self.ports)]

    def save(self, told_path: Path, requests_path: Path) -> dict[str, object]:
        rows = [(host_id, *map(int, name.rsplit(b"_", 2)[1:])) for host_id, name in self.told]
        np.save(told_path, np.array(rows, dtype=np.int64).reshape(-1, 3))
        np.save(requests_path, np.array(self.times).reshape(-1, 3))
        return {
            "requests": len(self.times) // 3,
            "tries_failed": self.tries_failed,
            "without_work": self.without_work,
        }


class Connection:
    """One concurrent client with a keep-alive connection to its preferred node, or to the other node."""

    def __init__(self, crowd: Crowd, number: int, connections: int) -> None:
        self._crowd = crowd
        self._hosts = crowd.hosts[number::connections]
        self._home = crowd.ports[number % len(crowd.ports)]
        self._port = self._home
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self) -> None:
        turn = 0
        while not self._crowd.stopping:
            await self._serve(self._hosts[turn % len(self._hosts)])
            turn += 1
        self._hang_up()

    async def _serve(self, host: ClientHost) -> None:
        """Send one host's request until it is answered."""
        began_s = time.monotonic()
        if self._home not in self._crowd.down and self._port != self._home:
            self._hang_up()
            self._port = self._home
        while True:
            host.seqno += 1
            reply = await self._try(self._crowd.template.request(host, host.seqno))
            if reply is not None:
                break
            self._crowd.tries_failed += 1
            self._hang_up()
            self._crowd.down.add(self._port)
            self._port = self._crowd.other(self._port)
            await asyncio.sleep(REFUSED_PAUSE_S)
        names = results_of(reply)
        self._crowd.times.extend((began_s, time.monotonic(), self._port))
        self._crowd.without_work += not names
        self._crowd.told.extend((host.host_id, name) for name in names)
        host.held = list(names)

    async def _try(self, request: bytes) -> bytes | None:
        """Return the reply, None if there is none or it is an error."""
        try:
            async with asyncio.timeout(REPLY_S):
                if self._streams is None:
                    self._streams = await asyncio.open_connection("127.0.0.1", self._port)
                reader, writer = self._streams
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                at = head.index(b"Content-Length: ") + 16
                body = await reader.readexactly(int(head[at : head.index(b"\r", at)]))
        except BROKEN:
            return None
        return body if head.startswith(b"HTTP/1.1 200") else None

    def _hang_up(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def serve(world_path: Path) -> None:
    """Process the lines of standard input."""
    world = json.loads(world_path.read_text(encoding="utf-8"))
    template = Template(
        Path(world["capture"]).read_bytes(),
        jobs=world["jobs"],
        code_sign_key=world["code_sign_key"],
        address=world["address"],
    )
    hosts = [ClientHost(host_id, [name.encode() for name in names]) for host_id, names in world["held"]]
    crowd = Crowd(template, hosts, [0])
    async with asyncio.TaskGroup() as clients:
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            answer: dict[str, object] = {}
            if "ports" in command:
                crowd = Crowd(template, hosts, command["ports"])
                count = command["connections"]
                running = [clients.create_task(Connection(crowd, number, count).run()) for number in range(count)]
            elif "back" in command:
                crowd.down.discard(command["back"])
            else:
                crowd.stopping = True
                await asyncio.gather(*running)
                answer = crowd.save(Path(command["stop"]), Path(command["requests"]))
            print(json.dumps(answer), flush=True)


def main() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(serve(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
