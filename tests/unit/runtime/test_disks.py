"""The free space of disks, as workers report it."""

from __future__ import annotations

from pathlib import Path

from runtime.heartbeats import DiskSpace
from tests.unit.administration.clocks import StillClock


def test_folders_of_one_disk_are_measured_once(tmp_path: Path) -> None:
    inner = tmp_path / "files"
    inner.mkdir()
    disks = DiskSpace((tmp_path, inner), StillClock())
    assert list(disks.report()) == []

    disks.measure_once()

    [disk] = disks.report()
    assert disk["path"] == str(tmp_path) and 0 < disk["free_bytes"] <= disk["total_bytes"]
