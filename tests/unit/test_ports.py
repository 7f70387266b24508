"""Each test server has a port of its own."""

from __future__ import annotations

import subprocess
import sys

from tests.ports import FIRST, OUTGOING, free_port

RESERVES = "from tests.ports import _reserve; import sys; print(_reserve(int(sys.argv[1])))"


def reserved_elsewhere(port: int) -> bool:
    """Return whether another process can reserve the port."""
    run = subprocess.run([sys.executable, "-c", RESERVES, str(port)], capture_output=True, text=True, check=True)
    return run.stdout == "True\n"


def test_ports_are_below_those_of_outgoing_connections() -> None:
    assert all(FIRST <= free_port() < int(OUTGOING.read_text().split()[0]) for _ in range(20))


def test_a_port_is_given_once() -> None:
    ports = [free_port() for _ in range(50)]

    assert len(set(ports)) == 50
    assert not reserved_elsewhere(ports[0])
