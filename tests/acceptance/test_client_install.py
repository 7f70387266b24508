"""`pip install ./client` into a fresh environment installs one small package, without the server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_BYTES = 60_000_000  # of the whole environment, pip included
REPORT = """
import importlib.metadata, json, sys
import muster_client
files = importlib.metadata.files("muster-client")
tops = {file.parts[0] for file in files if not file.parts[0].endswith(".dist-info")}
print(json.dumps({"tops": sorted(tops), "modules": sorted(sys.modules), "from": muster_client.__file__}))
"""


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@pytest.mark.e2e  # it queries the package index
def test_client_installs_without_the_server(tmp_path: Path) -> None:
    source, environment = tmp_path / "client", tmp_path / "venv"
    shutil.copytree(ROOT / "client", source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    python = environment / "bin/python"
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*command: str | Path) -> str:
        return subprocess.run(command, cwd=tmp_path, env=outside, check=True, stdout=subprocess.PIPE, text=True).stdout

    run(sys.executable, "-m", "venv", environment)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", source)
    report = json.loads(run(python, "-I", "-c", REPORT))

    packages: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "root_packages"
    ]
    assert report["tops"] == ["muster_client"]
    assert Path(report["from"]).is_relative_to(environment)
    assert {name.partition(".")[0] for name in report["modules"]} & set(packages) == {"muster_client"}
    assert size_of(environment) < MOST_BYTES
