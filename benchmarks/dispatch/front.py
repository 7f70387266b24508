"""Runs HAProxy with the shipped configuration on free ports, in front of the workers of a node under test."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.dispatch.processes import free_port
from benchmarks.running import BenchmarkError

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CONFIGURATION = Path(__file__).parents[2] / "deploy" / "haproxy" / "haproxy.cfg"
START_S = 30.0
CONNECTIONS = 2000  # few enough for the usual limit of open files


@dataclass(frozen=True, slots=True)
class Front:
    """A running HAProxy. `plain_port` redirects to TLS; `http_port` serves the same without TLS, for measurements."""

    folder: Path
    plain_port: int = field(default_factory=free_port)
    tls_port: int = field(default_factory=free_port)
    http_port: int = field(default_factory=free_port)
    control_port: int = field(default_factory=free_port)

    @property
    def certificate(self) -> Path:
        """The certificate for 127.0.0.1, which clients must trust."""
        return self.folder / "certificate.pem"

    def command(self, text: str) -> str:
        """Send a command to HAProxy's control socket and return the answer."""
        with socket.create_connection(("127.0.0.1", self.control_port), timeout=START_S) as control:
            control.sendall(text.encode() + b"\n")
            return b"".join(iter(lambda: control.recv(65536), b"")).decode()

    def servers(self) -> dict[str, dict[str, str]]:
        """Return HAProxy's counters for each worker."""
        names, *rows = (line.split(",") for line in self.command("show stat").removeprefix("# ").strip().splitlines())
        found = [dict(zip(names, row, strict=False)) for row in rows]
        return {row["svname"]: row for row in found if row["pxname"] == "workers" and row["svname"] != "BACKEND"}

    def write(self, workers: Sequence[int], nodes: Sequence[int], changes: Sequence[tuple[str, str]] = ()) -> Path:
        """Write a certificate, and the shipped configuration with other ports, files, servers and `changes`."""
        key, path = self.folder / "key.pem", self.folder / "haproxy.cfg"
        made = f"-subj /CN=muster -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {self.certificate}"
        command = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes {made}"
        subprocess.run(command.split(), check=True, capture_output=True, timeout=60)
        (self.folder / "muster.pem").write_text(self.certificate.read_text() + key.read_text())
        servers = [f"    server worker{number} 127.0.0.1:{port}\n" for number, port in enumerate(workers)]
        servers += [f"    server node{number} 127.0.0.1:{port} backup no-check\n" for number, port in enumerate(nodes)]
        text = CONFIGURATION.read_text(encoding="utf-8")
        for shipped, here in (
            (r"    (user|group|log /dev/log|bind :::).*\n", ""),
            (r"\bmaxconn \d+", f"maxconn {CONNECTIONS}"),
            (r"/run/haproxy/admin.sock mode \d+", f"ipv4@127.0.0.1:{self.control_port}"),
            (r"    bind :80\b", f"    bind 127.0.0.1:{self.plain_port}"),
            (r"    bind :443\b", f"    bind 127.0.0.1:{self.http_port}\n    bind 127.0.0.1:{self.tls_port}"),
            (r"/etc/haproxy/muster.pem", str(self.folder / "muster.pem")),
            (r"(    (# )?server (worker|node).*\n|    # If no worker.*\n)+", "".join(servers)),
            *changes,
        ):
            text, found = re.subn(shipped, here, text)
            if not found:
                raise BenchmarkError(f"{CONFIGURATION}: expected {shipped}, which is replaced here")
        path.write_text(text, encoding="utf-8")
        return path


@contextmanager
def front(
    made: Front, *, workers: Sequence[int], nodes: Sequence[int] = (), changes: Sequence[tuple[str, str]] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Run HAProxy until the context ends. Yields its process.

    `workers` are the workers' individual ports, `nodes` the ports shared by a node's workers, `changes` patterns with
    their replacements.
    """
    if HAPROXY is None:
        raise BenchmarkError("HAProxy is not installed: run tests/install_system.sh")
    made.folder.mkdir(parents=True, exist_ok=True)
    configuration = made.write(workers, nodes, changes)
    with (made.folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen([HAPROXY, "-db", "-f", str(configuration)], stdout=log, stderr=log)
    try:
        _wait(made, process)
        yield process
    finally:
        process.terminate()
        process.wait(START_S)


def _wait(made: Front, process: subprocess.Popen[bytes]) -> None:
    """Return once HAProxy listens on all its ports, which it opens one after the other. Raises BenchmarkError."""
    until_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until_s:
        try:
            for port in (made.plain_port, made.http_port, made.tls_port, made.control_port):
                socket.create_connection(("127.0.0.1", port), timeout=START_S).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise BenchmarkError(f"HAProxy did not start:\n{(made.folder / 'haproxy.log').read_text(errors='replace')}")
