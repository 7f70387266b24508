"""The upload folder compared with the database."""

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
from store.checking import CheckingSession
from tests import facts
from transfer.files import shard

NAME = "pi_1_2_77_r0"
CONTENT = b"3.14159\n"


class FixedDatabase(CheckingSession):
    """A database with given rows."""

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
        self.forgets = False  # as if outputs were purged between two queries

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


async def missing(database: FixedDatabase, folder: Path, *, contents: bool = False) -> list[str]:
    return [str(one) async for one in missing_files(database, folder, FileCounts(), contents=contents)]


async def stray(database: FixedDatabase, folder: Path) -> tuple[list[str], FileCounts]:
    counts = FileCounts()
    return [str(one) async for one in stray_files(database, folder, counts)], counts


def test_layout_matches_the_upload_handler() -> None:
    assert [shard_of(name) for name in (NAME, "ü_1_r0", "x")] == [shard(name) for name in (NAME, "ü_1_r0", "x")]


async def test_matching_file_is_no_finding(tmp_path: Path) -> None:
    put(tmp_path)
    database = FixedDatabase([an_output()], states={77: "valid"})

    assert await missing(database, tmp_path, contents=True) == []
    assert await stray(database, tmp_path) == ([], FileCounts(files=1, file_bytes=8))


async def test_missing_file_is_reported(tmp_path: Path) -> None:
    database = FixedDatabase([an_output()], states={77: "valid"})

    [found] = await missing(database, tmp_path)
    assert not facts.missing(found, f"output {NAME}:", "8 bytes", "in no store")


async def test_file_purged_meanwhile_is_not_reported(tmp_path: Path) -> None:
    database = FixedDatabase([an_output()])
    database.forgets = True

    assert await missing(database, tmp_path) == []


async def test_different_size_is_reported(tmp_path: Path) -> None:
    put(tmp_path, content=b"3.1")

    [found] = await missing(FixedDatabase([an_output()]), tmp_path)
    assert not facts.missing(found, f"output {NAME}:", "has 3 bytes", "8 were recorded")


async def test_different_content_is_reported_on_request(tmp_path: Path) -> None:
    put(tmp_path, content=b"3.14158\n")

    assert await missing(FixedDatabase([an_output()]), tmp_path) == []
    [found] = await missing(FixedDatabase([an_output()]), tmp_path, contents=True)
    assert found.startswith(f"output {NAME}: its file has MD5 ")


@pytest.mark.parametrize(
    ("name", "below", "states", "because"),
    [
        ("notes.txt", "", {}, "no output has this name"),
        (NAME, "zz", {77: "valid"}, "in the wrong directory"),
        (NAME, "", {}, "there is no instance 77"),
        (f"{NAME}.part", "", {}, "there is no instance 77"),
        (NAME, "", {77: "valid"}, "the database has no record"),
    ],
)
async def test_stray_file_is_reported(
    tmp_path: Path, name: str, below: str, states: dict[int, str], because: str
) -> None:
    put(tmp_path, name, below=below)

    found, _ = await stray(FixedDatabase(states=states), tmp_path)

    assert [facts.missing(one, because) for one in found] == [[]]


async def test_unfinished_file_is_counted_but_no_finding(tmp_path: Path) -> None:
    put(tmp_path, f"{NAME}.part", mode=0o644)
    put(tmp_path, "pi_1_2_78_r0", mode=0o644)

    found, counts = await stray(FixedDatabase(states={77: "in_progress", 78: "invalid"}), tmp_path)

    assert found == []
    assert (counts.unfinished, counts.abandoned, counts.abandoned_bytes) == (2, 1, 8)


@pytest.mark.parametrize(("successes", "counted"), [((), 0), ((77,), 1)])
async def test_part_of_a_reported_success_is_counted(tmp_path: Path, successes: tuple[int, ...], counted: int) -> None:
    put(tmp_path, f"{NAME}.part", mode=0o644)
    counts = FileCounts()

    database = FixedDatabase(states={77: "failed"}, successes=successes)
    assert [one async for one in stray_files(database, tmp_path, counts)] == []

    assert (counts.unfinished, counts.unacknowledged) == (1, counted)
    assert counts.unacknowledged_places == [f"{shard_of(NAME)}/{NAME}.part"] * counted


async def test_only_the_first_findings_are_listed(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"notes{number}.txt")
    database = FixedDatabase([an_output()])
    database.wrong = [
        Wrong("batch 1", "it is inconsistent"),
        Wrong("batch 2", "it is inconsistent"),
        Wrong("batch 3", "it is inconsistent"),
    ]
    reported: list[tuple[str, int]] = []

    made = await inspect(
        database, tmp_path, limit=2, contents=False, progress=lambda question, found: reported.append((question, found))
    )

    assert (made.found, made.cut) == (5, ["batches", STRAY])
    assert reported == [("batches", 2), (MISSING, 1), (STRAY, 2)]
    assert made.text().splitlines()[0] == f"batches: {database.wrong[0]}"
    assert not facts.missing(made.text().splitlines()[-1], "3 checks", "1 outputs", "5 files", "5 findings")


async def test_files_may_be_left_out() -> None:
    made = await inspect(FixedDatabase([an_output()]), None, limit=2, contents=False, progress=lambda *_: None)

    assert not facts.missing(made.text(), "1 checks", "0 outputs", "0 files", "no findings")
    assert made.as_json()["wrong"] == []


@pytest.mark.parametrize(("state", "number"), [("timed_out", 1), ("in_progress", 0)])
async def test_overdue_cleanup_is_reported(tmp_path: Path, state: str, number: int) -> None:
    put(tmp_path, f"{NAME}.part", mode=0o644)
    os.utime(tmp_path / shard_of(NAME) / f"{NAME}.part", (1000.0, 1000.0))
    database = FixedDatabase(states={77: state})

    because = [
        [one.because async for one in stray_files(database, tmp_path, FileCounts(), deleted_before=Instant(before))]
        for before in (1000.0, 1001.0)
    ]

    assert [[facts.missing(one, "abandoned:") for one in found] for found in because] == [[], [[]] * number]
