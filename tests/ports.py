"""TCP ports for test servers that no other test and no outgoing connection takes meanwhile.

A port that the system chose (bind to port 0) and that is then closed can be taken by any outgoing connection or by
another test before the server under test listens on it. These ports are below the range for outgoing connections
(net.ipv4.ip_local_port_range), and each is reserved for as long as the process of the test runs.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

FIRST = 10_000
OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")

_reserved: dict[int, socket.socket] = {}  # port: what reserves it, open until the process ends


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens; no other test process gets it until this one ends."""
    first_outgoing = int(OUTGOING.read_text().split()[0])
    assert first_outgoing > FIRST, f"outgoing connections use all ports from {first_outgoing} on"
    candidates = range(FIRST, first_outgoing)
    for port in random.SystemRandom().sample(candidates, len(candidates)):
        if port not in _reserved and _reserve(port):
            return port
    raise RuntimeError(f"none of {len(candidates)} ports from {FIRST} on is free")


def _reserve(port: int) -> bool:
    """Whether the port is this process's now.

    An abstract socket's name is taken by one process at a time, is free when that ends however it ends, and is seen
    in the same network namespace as the port.
    """
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0muster-test-port-{port}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        name.close()
        return False
    _reserved[port] = name
    return True
