"""TCP ports for test servers, reserved against other tests and outgoing connections.

A port chosen by the system (bind to port 0) and then closed can be taken by an outgoing connection or another test
before the server listens on it. These ports are below the range for outgoing connections
(net.ipv4.ip_local_port_range), and each is reserved while the test process runs.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

FIRST = 10_100  # above 10080, the last port that browsers refuse (ERR_UNSAFE_PORT)
OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")

_reserved: dict[int, socket.socket] = {}  # port -> the socket that reserves it, open until the process ends


def free_port() -> int:
    """Return a free port of 127.0.0.1, reserved until this process ends."""
    first_outgoing = int(OUTGOING.read_text().split()[0])
    assert first_outgoing > FIRST, f"outgoing connections use all ports from {first_outgoing}"
    candidates = range(FIRST, first_outgoing)
    for port in random.SystemRandom().sample(candidates, len(candidates)):
        if port not in _reserved and _reserve(port):
            return port
    raise RuntimeError(f"none of {len(candidates)} ports from {FIRST} is free")


def _reserve(port: int) -> bool:
    """Try to reserve the port for this process.

    The name of an abstract socket belongs to one process at a time, is released when that process ends for any reason,
    and is visible in the same network namespace as the port.
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
