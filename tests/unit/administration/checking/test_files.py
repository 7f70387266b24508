"""The upload folder against what the database says of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

import pytest

from administration.checking.files import FileCounts, missing_files, shard_of, stray_files
from administration.checking.inspection import MISSING, STRAY, inspect
from domain.checking import KnownFile, StoredOutput, Wrong
from domain.units import InstanceId, Instant
from transfer.files import shard

NAME = "pi_1_2_77_r0"
CONTENT = b"3.14159\n"


class Said:
    """A database that says what it was told to."""

    questions = ("batches",)

    def __init__(
        self,
        outputs: Sequence[StoredOutput] = (),
        *,
        states: dict[int, str] | None = None,
        successes: Collection[int] = (),
    ) -> None:
        self.stored = {output.name: output for output in outputs}
        self.states = states or {}
        self.successes = successes
        self.wrong: list[Wrong] = []
        self.forgets = False  # what was listed is gone when it is asked for again

    async def ask(self, question: str, *, limit: int) -> Sequence[Wrong]:
        return self.wrong[:limit]

    async def outputs(self, *, limit: int) -> AsyncIterator[Sequence[StoredOutput]]:
        yield list(self.stored.values())

    async def known(self, files: Sequence[tuple[str, InstanceId]]) -> Sequence[KnownFile]:
        stored = {} if self.forgets else self.stored
        return [
            KnownFile(
                name,
                self.states.get(instance_id),
                stored[name].nbytes if name in stored else None,
                instance_id in self.successes,
            )
            for name, instance_id in files
        ]


def an_output(content: bytes = CONTENT) -> StoredOutput:
    return StoredOutput(InstanceId(77), NAME, len(content), hashlib.md5(content).hexdigest())


def put(folder: Path, name: str = NAME, content: bytes = CONTENT, *, mode: int = 0o444, below: str = "") -> None:
    path = folder / (below or shard_of(name.removesuffix(".part"))) / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


async def missing(said: Said, folder: Path, *, contents: bool = False) -> list[str]:
    return [str(one) async for one in missing_files(said, folder, FileCounts(), contents=contents)]


async def stray(said: Said, folder: Path) -> tuple[list[str], FileCounts]:
    counts = FileCounts()
    return [str(one) async for one in stray_files(said, folder, counts)], counts


def test_the_layout_is_the_one_that_is_written() -> None:
    assert [shard_of(name) for name in (NAME, "ü_1_r0", "x")] == [shard(name) for name in (NAME, "ü_1_r0", "x")]


async def test_a_file_that_is_there_is_right(tmp_path: Path) -> None:
    put(tmp_path)
    said = Said([an_output()], states={77: "valid"})

    assert await missing(said, tmp_path, contents=True) == []
    assert await stray(said, tmp_path) == ([], FileCounts(files=1, file_bytes=8))


async def test_a_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    said = Said([an_output()], states={77: "valid"})

    assert await missing(said, tmp_path) == [f"output {NAME}: its file of 8 bytes is not in the upload folder"]


async def test_a_file_that_was_purged_meanwhile_is_not_missed(tmp_path: Path) -> None:
    said = Said([an_output()])
    said.forgets = True

    assert await missing(said, tmp_path) == []


async def test_another_size_is_told(tmp_path: Path) -> None:
    put(tmp_path, content=b"3.1")

    assert await missing(Said([an_output()]), tmp_path) == [f"output {NAME}: its file has 3 bytes, recorded were 8"]


async def test_other_contents_are_told_to_who_asks_for_them(tmp_path: Path) -> None:
    put(tmp_path, content=b"3.14158\n")

    assert await missing(Said([an_output()]), tmp_path) == []
    [told] = await missing(Said([an_output()]), tmp_path, contents=True)
    assert told.startswith(f"output {NAME}: its file has the MD5 ")


@pytest.mark.parametrize(
    ("name", "below", "states", "because"),
    [
        ("notes.txt", "", {}, "no output has such a name"),
        (NAME, "zz", {77: "valid"}, "it lies in the wrong folder"),
        (NAME, "", {}, "there is no instance 77"),
        (f"{NAME}.part", "", {}, "there is no instance 77"),
        (NAME, "", {77: "valid"}, "it was recorded, and the database does not know of it"),
    ],
)
async def test_a_file_that_nobody_knows_is_told(
    tmp_path: Path, name: str, below: str, states: dict[int, str], because: str
) -> None:
    put(tmp_path, name, below=below)

    found, _ = await stray(Said(states=states), tmp_path)

    assert [one.rpartition(": ")[2] for one in found] == [because]


async def test_what_was_begun_is_counted_and_right(tmp_path: Path) -> None:
    put(tmp_path, f"{NAME}.part", mode=0o644)
    put(tmp_path, "pi_1_2_78_r0", mode=0o644)

    found, counts = await stray(Said(states={77: "in_progress", 78: "invalid"}), tmp_path)

    assert found == []
    assert (counts.unfinished, counts.abandoned, counts.abandoned_bytes) == (2, 1, 8)


@pytest.mark.parametrize(("successes", "counted"), [((), 0), ((77,), 1)])
async def test_a_part_of_a_reported_success_is_counted(
    tmp_path: Path, successes: tuple[int, ...], counted: int
) -> None:
    put(tmp_path, f"{NAME}.part", mode=0o644)
    counts = FileCounts()

    said = Said(states={77: "failed"}, successes=successes)
    assert [one async for one in stray_files(said, tmp_path, counts)] == []

    assert (counts.unfinished, counts.unacknowledged) == (1, counted)
    assert counts.unacknowledged_places == [f"{shard_of(NAME)}/{NAME}.part"] * counted


async def test_only_the_first_findings_are_listed(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"notes{number}.txt")
    said = Said([an_output()])
    said.wrong = [Wrong("batch 1", "it is odd"), Wrong("batch 2", "it is odd"), Wrong("batch 3", "it is odd")]
    heard: list[tuple[str, int]] = []

    made = await inspect(
        said, tmp_path, limit=2, contents=False, progress=lambda question, found: heard.append((question, found))
    )

    assert (made.found, made.cut) == (5, ["batches", STRAY])
    assert heard == [("batches", 2), (MISSING, 1), (STRAY, 2)]
    assert made.text().splitlines()[0] == "batches: batch 1: it is odd"
    assert made.text().splitlines()[-1] == "3 questions, 1 outputs and 5 files looked at: 5 wrong"


async def test_files_may_be_left_out() -> None:
    made = await inspect(Said([an_output()]), None, limit=2, contents=False, progress=lambda *_: None)

    assert made.text() == "1 questions, 0 outputs and 0 files looked at: nothing wrong"
    assert made.as_json()["wrong"] == []


@pytest.mark.parametrize(("state", "told"), [("timed_out", 1), ("in_progress", 0)])
async def test_what_should_have_been_deleted_long_ago_is_told(tmp_path: Path, state: str, told: int) -> None:
    put(tmp_path, f"{NAME}.part", mode=0o644)
    os.utime(tmp_path / shard_of(NAME) / f"{NAME}.part", (1000.0, 1000.0))
    said = Said(states={77: state})

    found = [
        [one.because async for one in stray_files(said, tmp_path, FileCounts(), deleted_before=Instant(before))]
        for before in (1000.0, 1001.0)
    ]

    assert found == [[], ["nobody has gone on with it for so long that it should have been deleted"] * told]
