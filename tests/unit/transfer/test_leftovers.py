"""Tests that abandoned uploads are deleted, and needed ones are kept."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from domain.settings import StorageSettings
from domain.units import DAY_S, InstanceId, Instant
from tests.unit.scheduler.project import HandClock
from transfer.upload_folder import LOOK_EVERY_S, SUB_FOLDERS, Finish, LeftoverCleaner, LeftoverReport, UploadFolder

NOW = Instant(100 * DAY_S)
OLD, YOUNG = NOW - 31 * DAY_S, NOW - 29 * DAY_S
CONTENT = b"3.14159"


@dataclass
class Needs:
    """Files that are needed; those in `from_the_second` only from the second query on."""

    needed: set[str] = field(default_factory=set)
    from_the_second: set[str] = field(default_factory=set)

    async def unneeded(self, files: Sequence[tuple[str, InstanceId]]) -> Collection[str]:
        found = [name for name, _ in files if name not in self.needed]
        self.needed |= self.from_the_second
        return found


def a_part(folder: UploadFolder, name: str, *, at: float = OLD) -> None:
    folder.begin(name, 0)
    folder.append(name, CONTENT, at=0)
    os.utime(folder.path(name).with_name(f"{name}.part"), (at, at))


def a_whole(folder: UploadFolder, name: str, *, at: float = OLD, recorded: bool = False) -> None:
    folder.begin(name, 0)
    folder.append(name, CONTENT, at=0)
    md5 = hashlib.md5(CONTENT).hexdigest()
    assert folder.finish(name, nbytes=len(CONTENT), md5=md5) is Finish.WHOLE
    if recorded:
        folder.mark_recorded(name)
    os.utime(folder.path(name), (at, at))


async def cleaned(root: Path, needs: Needs) -> tuple[list[str], int]:
    """Clean every sub-folder; return the remaining files and the number of deleted ones."""
    cleaner = LeftoverCleaner(UploadFolder(root), needs, HandClock(NOW), StorageSettings)
    before = Instant(NOW - 30 * DAY_S)
    reports = [await cleaner.clean(f"{number:02x}", before=before) for number in range(SUB_FOLDERS)]
    return sorted(path.name for path in root.rglob("*") if path.is_file()), sum(one.deleted for one in reports)


async def test_abandoned_files_are_deleted_after_their_time(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path)
    a_part(folder, "pi_1_1_1_r0")
    a_whole(folder, "pi_1_1_2_r0")
    a_part(folder, "pi_1_1_3_r0", at=YOUNG)
    a_whole(folder, "pi_1_1_4_r0", at=YOUNG)

    assert await cleaned(tmp_path, Needs()) == (["pi_1_1_3_r0.part", "pi_1_1_4_r0"], 2)


async def test_needed_files_stay_at_any_age(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path)
    a_part(folder, "pi_1_1_1_r0")
    a_whole(folder, "pi_1_1_2_r0")
    a_whole(folder, "pi_1_1_3_r0", recorded=True)
    (tmp_path / "aa").mkdir(exist_ok=True)
    (tmp_path / "aa" / "notes.txt").write_text("no output has this name")
    os.utime(tmp_path / "aa" / "notes.txt", (OLD, OLD))

    kept, deleted = await cleaned(tmp_path, Needs({"pi_1_1_1_r0", "pi_1_1_2_r0"}))

    assert kept == ["notes.txt", "pi_1_1_1_r0.part", "pi_1_1_2_r0", "pi_1_1_3_r0"]
    assert deleted == 0


async def test_a_file_that_is_recorded_just_then_is_finished_again(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path)
    a_whole(folder, "pi_1_1_2_r0")

    assert await cleaned(tmp_path, Needs(from_the_second={"pi_1_1_2_r0"})) == (["pi_1_1_2_r0"], 0)
    assert folder.read("pi_1_1_2_r0") == CONTENT


def test_unfinished_file_must_be_uploaded_again(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path)
    a_whole(folder, "pi_1_1_2_r0")

    assert folder.unfinish("pi_1_1_2_r0")

    assert folder.whole("pi_1_1_2_r0") is None
    with pytest.raises(FileNotFoundError):  # so that no client is told the file is complete
        folder.mark_recorded("pi_1_1_2_r0")
    assert folder.part_size("pi_1_1_2_r0") == len(CONTENT)
    assert not folder.unfinish("pi_1_1_2_r0")


def test_a_part_that_grew_meanwhile_stays(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path)
    a_part(folder, "pi_1_1_1_r0", at=YOUNG)

    assert not folder.drop_part("pi_1_1_1_r0", Instant(NOW - 30 * DAY_S))
    assert not folder.drop_part("pi_1_1_9_r0", NOW)


async def test_concurrent_cleaners_delete_each_file_once(
    tmp_path: Path,
) -> None:
    folder = UploadFolder(tmp_path)
    names = [f"pi_1_1_{number}_r0" for number in range(1, 61)]
    for number, name in enumerate(names):
        (a_part if number % 3 == 0 else a_whole)(folder, name)
    needed, late = set(names[::5]), set(names[1::5])
    both = [LeftoverCleaner(folder, Needs(set(needed), set(late)), HandClock(NOW), StorageSettings) for _ in range(2)]
    before = Instant(NOW - 30 * DAY_S)

    async def deleted_by(cleaner: LeftoverCleaner) -> int:
        return sum([(await cleaner.clean(f"{number:02x}", before=before)).deleted for number in range(SUB_FOLDERS)])

    deleted = sum(await asyncio.gather(*map(deleted_by, both)))

    left = {path.name.removesuffix(".part") for path in tmp_path.rglob("*") if path.is_file()}
    assert left == needed | late
    assert deleted == len(names) - len(left)


async def test_every_sub_folder_has_its_turn_within_a_day(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path)
    a_part(folder, "pi_1_1_1_r0")
    clock = HandClock(NOW)
    cleaner = LeftoverCleaner(folder, Needs(), clock, StorageSettings)
    reports = []
    for _ in range(SUB_FOLDERS):
        reports.append(await cleaner.run_once())
        clock.at = Instant(clock.at + LOOK_EVERY_S)

    assert [one for one in reports if one.old] == [LeftoverReport(1, 1, len(CONTENT))]
    assert clock.now() < NOW + DAY_S
