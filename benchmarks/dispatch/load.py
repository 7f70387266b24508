"""Simulates many clients in one process: `python -m benchmarks.dispatch.load FOLDER`, controlled by lines of JSON.

Standard input: {"server": "dispatch" | "echo", "port": …, "connections": …, "seconds": …, "rate_per_s": … or null,
"keep_alive": …, "certificate": PATH of the server's for TLS, or ""}, with "latencies": PATH to save each latency
(an array of seconds), or {"save": PATH} for all jobs in the dispatch server's replies. Standard output: one line of
JSON for each. Without a rate, each client sends its next request after its reply. With a rate, requests start at random
instants regardless of replies; if no client is free they wait, which is part of their latency. Unless `keep_alive` is
true, each request opens a new connection, as stock clients do, and its latency starts there.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import re
import ssl
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import uvloop

from benchmarks.dispatch.bodies import ClientHost, Template, results_of

TICK_S = 0.001
LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n", re.IGNORECASE)  # a proxy may change upper and lower case
MESSAGE = re.compile(rb"<message[^>]*>([^<]*)<")
LAST_REPLIES_S = 30.0  # time limit for replies in flight at the end


class Clients:
    """All hosts with their jobs in progress, and every job in a reply."""

    def __init__(self, template: Template, hosts: Sequence[ClientHost], *, jobs: int) -> None:
        self.template = template
        self.hosts = hosts
        self.jobs = jobs
        self.told: list[tuple[int, bytes]] = []
        self.turns = 0  # where the next phase continues in every connection's hosts

    def save(self, path: Path) -> None:
        """Save the jobs in replies as columns host_id, job_id, instance_id."""
        rows = [(host_id, *map(int, name.rsplit(b"_", 2)[1:])) for host_id, name in self.told]
        np.save(path, np.array(rows, dtype=np.int64).reshape(-1, 3))


class Connection(asyncio.Protocol):
    """One concurrent client with its own hosts, on one connection or on a new one for each request."""

    def __init__(self, phase: Phase, hosts: Sequence[ClientHost], turn: int) -> None:
        self._phase = phase
        self._hosts = hosts
        self._turn = turn
        self._buffer = b""
        self._whole = 0  # bytes of the incomplete reply
        self._transport: asyncio.Transport | None = None
        self.host = hosts[0]
        self.began_s = 0.0
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class
        if self.busy:
            self._transport.write(self._phase.request(self.host))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:  # closed by the server
            self._phase.lost_connection(self, exc)

    def send(self, began_s: float) -> None:
        """Send the next host's request. Its latency counts from `began_s`."""
        self.host = self._hosts[self._turn % len(self._hosts)]
        self._turn += 1
        self.began_s = began_s
        self.busy = True
        if self._transport is None:
            self._phase.connect(self)
        else:
            self._transport.write(self._phase.request(self.host))

    def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.set_protocol(asyncio.Protocol())  # TLS closes later, when the next connection may be open
            transport.close()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        if not self._whole:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = buffer
                return
            length = LENGTH.search(buffer, 0, end + 2)
            if length is None:
                raise ValueError(f"expected a reply with a Content-Length, got {buffer[:end]!r}")
            self._whole = end + 4 + int(length[1])
        if len(buffer) < self._whole:
            self._buffer = buffer
            return
        self._buffer, self._whole, self.busy = b"", 0, False
        self._phase.replied(self, buffer)


class Phase:
    """One phase of load on one server."""

    def __init__(
        self,
        clients: Clients,
        *,
        dispatch: bool,
        seconds: float,
        rate_per_s: float | None,
        keep_alive: bool,
        certificate: str = "",
    ) -> None:
        self._clients = clients
        self._tls = ssl.create_default_context(cafile=certificate) if certificate else None
        self._keep_alive = keep_alive
        self._port = 0
        self._connecting: set[asyncio.Task[None]] = set()
        self._dispatch = dispatch
        self._seconds = seconds
        self._rate_per_s = rate_per_s
        self._latencies_s: list[float] = []
        self._reply_sizes: list[int] = []
        self._replies: dict[int, bytes] = {}  # one of each size
        self._in_time = self._jobs = self._without_work = self._failed = 0
        self._whys: Counter[str] = Counter()  # messages in replies without work
        self._idle: deque[Connection] = deque()
        self._waiting: deque[float] = deque()  # intended start times of requests that found no free client
        self._under_way = 0
        self._end_s = 0.0
        self._done = asyncio.Event()
        self._broken: Exception | None = None

    async def run(self, port: int, connections: int) -> dict[str, object]:
        """Load the server and return the results."""
        self._port = port
        hosts, turns = self._clients.hosts, self._clients.turns
        opened = [Connection(self, hosts[number::connections], turns) for number in range(connections)]
        if self._keep_alive:
            await asyncio.gather(*map(self._open, opened))
        cpu_s, began_s = time.process_time(), time.perf_counter()
        self._end_s = began_s + self._seconds
        self._idle.extend(opened)
        if self._rate_per_s is None:
            while self._idle:
                self._start(time.perf_counter())
        else:
            await self._start_at_rate(began_s, self._rate_per_s)
        await asyncio.sleep(max(0.0, self._end_s - time.perf_counter()))
        cpu_s = time.process_time() - cpu_s
        await self._last_replies()
        self._done.set()
        for connection in opened:
            connection.close()
        if self._dispatch:
            self._clients.turns += len(self._latencies_s) // connections + 1
        return self._figures(cpu_s)

    def connect(self, connection: Connection) -> None:
        """Open a connection, which sends its request once it is open."""
        task = asyncio.get_running_loop().create_task(self._open(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _open(self, connection: Connection) -> None:
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: connection, "127.0.0.1", self._port, ssl=self._tls)
        except OSError as error:
            self.lost_connection(connection, error)

    def request(self, host: ClientHost) -> bytes:
        """Return the bytes of a host's next request."""
        if self._dispatch:
            host.seqno += 1
        return self._clients.template.request(host, host.seqno)

    def replied(self, connection: Connection, reply: bytes) -> None:
        """Process a reply, and continue."""
        now_s = time.perf_counter()
        self._latencies_s.append(now_s - connection.began_s)
        if not self._keep_alive:
            connection.close()
        self._under_way -= 1
        self._in_time += now_s <= self._end_s
        if reply.startswith(b"HTTP/1.1 200"):
            self._take(connection.host, reply)
        else:
            self._failed += 1
        self._idle.append(connection)
        if now_s < self._end_s:
            if self._rate_per_s is None:
                self._start(now_s)
            elif self._waiting:
                self._start(self._waiting.popleft())

    def lost_connection(self, connection: Connection, why: Exception | None) -> None:
        if not self._done.is_set():
            self._broken = why or ConnectionError("the server closed a connection")
            self._under_way -= connection.busy

    def _take(self, host: ClientHost, reply: bytes) -> None:
        names = results_of(reply)
        self._jobs += len(names)
        if not names:
            self._without_work += 1
            self._whys.update(map(bytes.decode, MESSAGE.findall(reply)))
        if self._dispatch:
            host.held = list(names)
            told, host_id = self._clients.told, host.host_id
            told.extend([(host_id, name) for name in names])
            size = len(reply)
            self._reply_sizes.append(size)
            if size not in self._replies:
                self._replies[size] = reply

    def _start(self, began_s: float) -> None:
        self._under_way += 1
        self._idle.popleft().send(began_s)

    async def _start_at_rate(self, began_s: float, rate_per_s: float) -> None:
        """Start requests at random instants, as independent clients do."""
        rng = random.Random(1)
        next_s = began_s
        while next_s < self._end_s:
            now_s = time.perf_counter()
            while next_s <= now_s and next_s < self._end_s:
                if self._idle:
                    self._start(next_s)
                else:
                    self._waiting.append(next_s)
                next_s += rng.expovariate(rate_per_s)
            await asyncio.sleep(TICK_S)

    async def _last_replies(self) -> None:
        until_s = time.perf_counter() + LAST_REPLIES_S
        while self._under_way > 0 and time.perf_counter() < until_s:
            await asyncio.sleep(TICK_S)
        if self._broken is not None:
            raise self._broken
        if self._under_way > 0:
            raise TimeoutError(f"{self._under_way} requests have no reply after {LAST_REPLIES_S:.0f} s")

    def save_latencies(self, path: Path) -> None:
        np.save(path, np.array(self._latencies_s))

    def _figures(self, cpu_s: float) -> dict[str, object]:
        p50_s, p99_s = np.percentile(self._latencies_s, [50, 99]) if self._latencies_s else (0.0, 0.0)
        figures: dict[str, object] = {
            "requests": len(self._latencies_s),
            "requests_per_s": self._in_time / self._seconds,
            "jobs_per_s": self._jobs / max(1, len(self._latencies_s)) * self._in_time / self._seconds,
            "without_work": self._without_work,
            "why": dict(self._whys.most_common(5)),
            "failed": self._failed,
            "not_started": len(self._waiting),
            "p50_ms": 1000.0 * float(p50_s),
            "p99_ms": 1000.0 * float(p99_s),
            "generator_cpu_fraction": cpu_s / self._seconds,
        }
        if self._reply_sizes:
            reply = self._replies[sorted(self._reply_sizes)[len(self._reply_sizes) // 2]]
            figures["median_reply"] = reply[reply.index(b"\r\n\r\n") + 4 :].decode()
        return figures


async def _phase(clients: Clients, command: dict[str, object]) -> dict[str, object]:
    phase = Phase(
        clients,
        dispatch=command["server"] == "dispatch",
        seconds=float(str(command["seconds"])),
        rate_per_s=None if command["rate_per_s"] is None else float(str(command["rate_per_s"])),
        keep_alive=bool(command["keep_alive"]),
        certificate=str(command.get("certificate", "")),
    )
    figures = await phase.run(int(str(command["port"])), int(str(command["connections"])))
    if "latencies" in command:
        phase.save_latencies(Path(str(command["latencies"])))
    return figures


def main() -> None:
    world = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    template = Template(
        Path(world["capture"]).read_bytes(),
        jobs=world["jobs"],
        code_sign_key=world["code_sign_key"],
        address=world["address"],
    )
    hosts = [ClientHost(host_id, [name.encode() for name in names]) for host_id, names in world["held"]]
    clients = Clients(template, hosts, jobs=world["jobs"])
    gc.disable()  # nothing here creates reference cycles, and the jobs in replies are never freed
    for line in sys.stdin:
        command = json.loads(line)
        if "save" in command:
            clients.save(Path(command["save"]))
            answer: dict[str, object] = {}
        else:
            answer = uvloop.run(_phase(clients, command))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
