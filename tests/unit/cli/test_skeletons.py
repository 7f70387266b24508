"""Tests the files of new applications: they are complete, and the programs work by themselves."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import muster
from cli.skeletons import TEMPLATES, WRAPPERS, files_of
from jobs.spec import parse_batch, size_of


@pytest.mark.parametrize("template", TEMPLATES)
def test_new_application_has_a_valid_batch_and_every_named_file(template: str, tmp_path: Path) -> None:
    folder = tmp_path / "pi"
    done = CliRunner().invoke(muster, ["app", "new", "pi", "--template", template, "--to", str(folder)])
    assert done.exit_code == 0, done.output

    batch = tomllib.loads((folder / "batch.toml").read_text())
    assert size_of(parse_batch({"submitter": "ada", **batch})).jobs == 10
    script = (folder / "add.sh").read_text()
    named = {name.rpartition("=")[2] for name in re.findall(r"--(?:main|file|link) (\S+)", script)}
    files = {one.name for one in folder.iterdir()}
    assert named - {WRAPPERS.get(template)} == files - {"add.sh", "batch.toml"}
    assert os.access(folder / "add.sh", os.X_OK)
    subprocess.run(["sh", "-n", str(folder / "add.sh")], check=True)
    assert CliRunner().invoke(muster, ["app", "new", "pi", "--to", str(folder)]).exit_code != 0


def test_script_writes_its_output_and_the_finish_file(tmp_path: Path) -> None:
    (tmp_path / "program.sh").write_text(files_of("pi", "script")["program.sh"])
    subprocess.run(["sh", "program.sh", "21"], cwd=tmp_path, check=True)

    assert (tmp_path / "out").read_text() == "42\n"
    assert (tmp_path / "boinc_finish_called").exists()


def test_worker_continues_from_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "worker.sh").write_text(files_of("pi", "wrapper")["worker.sh"])
    (tmp_path / "checkpoint").write_text("8\n")
    (tmp_path / "sleep").write_text("#!/bin/sh\ncat fraction_done >> seen 2> /dev/null || true\n")
    (tmp_path / "sleep").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "worker.sh", "7"], cwd=tmp_path, check=True, env=environment)

    assert (tmp_path / "out").read_text() == "7 done in 10 steps\n"
    assert (tmp_path / "fraction_done").read_text() == "1\n"
    assert (tmp_path / "seen").read_text() == "0.9\n"
