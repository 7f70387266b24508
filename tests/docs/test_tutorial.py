"""Runs the tutorial as written: its commands work in sequence in one shell and give its answer."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.stock_client import CONFIG, PREFERENCES, installed
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tutorial/first-batch.md"
INSTALLATION = "make setup\n. .venv/bin/activate\n"

# The stock client, on a machine with other load and other clients, needs its own preferences.
CLIENT = """#!/bin/sh
folder=$2
cp "{config}" "$folder/cc_config.xml"
cp "{preferences}" "$folder/global_prefs_override.xml"
exec {boinc} "$@"
"""


def blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_tutorial_starts_with_install_and_ends_with_stop() -> None:
    found = blocks()

    assert found[0] == INSTALLATION
    assert found[-1] == "kill %2 %1\nwait\n"


@contextmanager
def shell(script: str, home: Path, programs: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the script in a shell; stop everything it started in any case."""
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(home), "PATH": path}
    environment.pop("MUSTER_DATABASE_URL", None)
    with (home / "output").open("w") as output:
        running = subprocess.Popen(
            ["bash", "-e", "-c", script],
            stdout=output,
            stderr=output,
            env=environment,
            cwd=home,
            text=True,
            start_new_session=True,
        )
    try:
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGTERM)
        running.wait(60)


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_tutorial_comes_to_its_answer_word_for_word(tmp_path: Path) -> None:
    """All except the installation, which these tests require, and the port, which may be in use."""
    if not installed():
        pytest.fail("the stock client is not installed: run tests/install_system.sh")
    programs = tmp_path / "programs"
    programs.mkdir()
    config, preferences = tmp_path / "cc_config.xml", tmp_path / "preferences.xml"
    config.write_text(CONFIG.format(no_gpus="<no_gpus>1</no_gpus>", more="<ncpus>2</ncpus>", report_immediately=True))
    preferences.write_text(PREFERENCES.format(buffer_days=0.0001, upload_bytes_per_s=0))
    client = programs / "boinc"
    real = subprocess.run(["which", "boinc"], capture_output=True, text=True, check=True).stdout.strip()
    client.write_text(CLIENT.format(config=config, preferences=preferences, boinc=real))
    client.chmod(0o755)
    port, rpc_port = free_port(), free_port()
    script = "".join(blocks()[1:]).replace(":8080", f":{port}").replace("--port 8080", f"--port {port}")
    script = script.replace("--gui_rpc_port 31418", f"--gui_rpc_port {rpc_port}")

    with shell(script, tmp_path, programs) as running:
        running.wait(380)

    project = tmp_path / "first-project"
    said = (tmp_path / "output").read_text() + (project / "up.log").read_text()[-3000:]
    assert running.returncode == 0, said
    assert (project / "answer.txt").read_text() == "6171 262\n"
    assert "871 179\n" in said
