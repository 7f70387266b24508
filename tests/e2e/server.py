"""Runs a Muster server as an operator does: `muster init`, `muster up`, and other commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.stock_client import wait_for
from tests.faults.waiting import BUSY
from tests.ports import free_port

MUSTER = [sys.executable, "-m", "cli.run"]


@dataclass
class Server:
    """One project in its own folder."""

    data_dir: Path
    port: int = field(default_factory=free_port)
    workers: int = 1
    worker_port: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None
    _token: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def muster(self, *arguments: str) -> str:
        """Run a command on the project; return its output."""
        command = [*MUSTER, *arguments, "--data-dir", str(self.data_dir)]
        environment = {**os.environ, **self.environment}
        run = subprocess.run(command, capture_output=True, text=True, timeout=BUSY * 60, check=False, env=environment)
        assert run.returncode == 0, f"muster {' '.join(arguments)}: {run.stdout}{run.stderr}"
        return run.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.muster(*arguments, "--json"))

    def init(self, **settings: object) -> None:
        quick = {
            "scheduler.request_delay_s": 1,
            "scheduler.no_work_delay_s": 1,
            "lifecycle.sweep_interval_s": 0.5,
            "lifecycle.validate_interval_s": 0.1,
            "feeder.interval_s": 0.2,
        }
        values = {**quick, **{key.replace("__", "."): value for key, value in settings.items()}}
        changes = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
        self.muster("init", "--url", self.url, *changes)

    def start(self) -> None:
        with (self.data_dir / "up.log").open("ab") as log:
            where = ["--data-dir", str(self.data_dir), "--host", "127.0.0.1", "--port", str(self.port)]
            own = [] if self.worker_port is None else ["--worker-port", str(self.worker_port)]
            self._process = subprocess.Popen(
                [*MUSTER, "up", *where, *own, "--workers", str(self.workers)],
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        wait_for(self.answers, 30, f"the server: {self.log()}")

    def answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the server ended: {self.log()}")
        try:
            with urllib.request.urlopen(self.url, timeout=2) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def log(self) -> str:
        path = self.data_dir / "up.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self) -> None:
        """Send SIGTERM, like a service manager."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            assert self._process.wait(30) == 0, self.log()

    def kill(self) -> None:
        """SIGKILL the supervisor and its processes at once. The database keeps running."""
        if self._process is not None and self._process.poll() is None:
            supervisor = psutil.Process(self._process.pid)
            for process in (supervisor, *supervisor.children(recursive=True)):
                process.kill()
            self._process.wait()

    def kill_supervisor(self) -> None:
        """SIGKILL only the supervisor."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    # ------------------------------------------------------------------ what tests do with it

    def add_volunteer(self, email: str = "ada@example.org") -> str:
        return str(self.json("volunteer", "add", email)["authenticator"])

    def add_app(self, name: str, main: Path, **options: str) -> None:
        self.muster("app", "add", name)
        self.add_version(name, main, **options)

    def add_version(self, name: str, main: Path, *, version: str = "100", **options: str) -> None:
        extra = [part for key, value in options.items() for part in (f"--{key.replace('_', '-')}", value)]
        platform = ["--platform", "x86_64-pc-linux-gnu", "--version", version, "--main", str(main)]
        self.muster("app", "version", "add", name, *platform, *extra)

    def submit(self, text: str, name: str = "batch.toml") -> int:
        path = self.data_dir / name
        path.write_text(text)
        return int(self.json("batch", "submit", str(path))["batch_id"])

    def batch(self, batch_id: int) -> dict[str, Any]:
        shown = self.api(f"batches/{batch_id}")
        assert isinstance(shown, dict)
        return shown

    def instances(self, batch_id: int) -> list[dict[str, Any]]:
        """Return every instance of a batch, by job and id."""
        jobs = self.api(f"batches/{batch_id}/jobs")["jobs"]
        return [i for job in jobs for i in self.api(f"jobs/{job['job_id']}")["instances"]]

    def api(self, path: str) -> Any:
        """Query the API; a command would use a second of CPU per poll."""
        if self._token is None:
            self._token = str(self.json("token", "show")["token"])
        request = urllib.request.Request(f"{self.url}api/v1/{path}", headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)
