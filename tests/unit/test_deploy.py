"""Checks units, scripts and examples for operators, as far as possible without installing them."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from api.events import HEARTBEAT_S
from cli.main import muster
from domain.settings import Settings
from transfer.uploads import IDLE_TIMEOUT_S

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
SCRIPTS = sorted(DEPLOY.glob("*.sh"))


def unit(path: Path) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(strict=True, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]  # as its manual says
    parsed.read_string(path.read_text())
    return parsed


def options_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that a line calls, and its options."""
    command: click.Command = muster
    while words and isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    return command, [word for word in words if word.startswith("--")]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_timers_have_services_with_existing_commands(path: Path) -> None:
    found = unit(path)
    if path.suffix == ".timer":
        assert path.with_suffix(".service") in UNITS
        assert found["Timer"]["OnCalendar"]
        return
    first, *words = shlex.split(found["Service"]["ExecStart"])
    if first.endswith("/muster"):
        command, options = options_of(words)
        known = {name for parameter in command.params for name in parameter.opts}
        assert set(options) <= known
    else:
        assert (DEPLOY / Path(words[0]).name) in SCRIPTS
    assert found["Service"]["User"] == "muster"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_calendars_are_understood() -> None:
    whens = [unit(path)["Timer"]["OnCalendar"] for path in UNITS if path.suffix == ".timer"]

    done = subprocess.run(
        ["systemd-analyze", "calendar", *whens], capture_output=True, text=True, timeout=30, check=False
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    program = tmp_path / "muster/.venv/bin/muster"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    units = [tmp_path / path.name for path in UNITS]
    for path, copy in zip(UNITS, units, strict=True):
        copy.write_text(path.read_text().replace("/srv/muster/.venv", f"{tmp_path}/muster/.venv"))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus")
def test_prometheus_takes_the_alert_rules() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", DEPLOY / "prometheus/muster.rules.yml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_understood(path: Path) -> None:
    subprocess.run(["bash", "-n", str(path)], check=True, timeout=30)


@pytest.mark.parametrize("name", ["backup.sh", "restore.sh", "purge.sh"])
def test_a_script_without_arguments_says_how_to_call_it(name: str) -> None:
    done = subprocess.run(["bash", str(DEPLOY / name)], capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode != 0
    assert f"usage: {name} " in done.stderr


HAPROXY_CFG = (DEPLOY / "haproxy/haproxy.cfg").read_text()


def test_front_end_waits_longer_than_the_workers() -> None:
    """The worker ends a slow request, with a reason; the front end must not do so before."""
    waits_s = {name: float(value) for name, value in re.findall(r"timeout ([a-z-]+) +(\d+)s\b", HAPROXY_CFG)}

    assert min(waits_s["client"], waits_s["server"]) > max(
        IDLE_TIMEOUT_S, HEARTBEAT_S, Settings().server.body_timeout_s
    )
    assert waits_s["http-request"] <= Settings().server.idle_timeout_s


def test_front_end_names_the_ports_of_the_unit() -> None:
    started = unit(DEPLOY / "systemd/muster.service")["Service"]["ExecStart"]
    options = dict(re.findall(r"--([a-z-]+) (\S+)", started))
    first, workers = int(options["worker-port"]), int(options["workers"])
    own = re.findall(r"^    server worker\d+ 127.0.0.1:(\d+)$", HAPROXY_CFG, re.MULTILINE)
    shared = re.findall(r"^    server node 127.0.0.1:(\d+) backup", HAPROXY_CFG, re.MULTILINE)

    assert [int(port) for port in own] == list(range(first, first + workers))
    assert shared == [options["port"]]
