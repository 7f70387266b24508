"""Tests that parts grow only at their end, and become complete only with the right MD5."""

from __future__ import annotations

import errno
import hashlib
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transfer.files import Content
from transfer.upload_folder import Finish, UploadFolder

NAME = "pi_3_41_77_r0"
CONTENT = b"the quick brown fox jumps over the lazy dog\n"
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> UploadFolder:
    return UploadFolder(tmp_path / "upload")


def brought(folder: UploadFolder, content: bytes = CONTENT) -> Finish:
    folder.begin(NAME, 0)
    assert folder.append(NAME, content, at=0)
    return folder.finish(NAME, nbytes=len(content), md5=hashlib.md5(content).hexdigest())


def test_nothing_is_here_of_an_unknown_file(folder: UploadFolder) -> None:
    assert folder.part_size(NAME) is None
    assert folder.whole(NAME) is None
    assert folder.whole(NAME) is None
    assert folder.read(NAME) is None
    assert not folder.is_marked(NAME)


def test_a_whole_file_is_read_back(folder: UploadFolder) -> None:
    assert brought(folder) is Finish.WHOLE
    assert folder.read(NAME) == CONTENT
    assert folder.whole(NAME) == (len(CONTENT), MD5)
    assert folder.whole(NAME) == (len(CONTENT), MD5)
    assert folder.part_size(NAME) is None


def test_a_part_is_not_presented_as_the_file(folder: UploadFolder) -> None:
    folder.begin(NAME, 0)
    folder.append(NAME, CONTENT[:10], at=0)
    assert folder.part_size(NAME) == 10
    assert folder.read(NAME) is None
    assert folder.finish(NAME, nbytes=len(CONTENT), md5=MD5) is Finish.TOO_SHORT


def test_going_on_behind_the_end_is_refused_with_the_size(folder: UploadFolder) -> None:
    folder.begin(NAME, 0)
    folder.append(NAME, CONTENT[:10], at=0)
    assert folder.begin(NAME, 11) == 10
    assert folder.part_size(NAME) == 10


def test_going_on_with_a_part_that_is_gone_makes_none(folder: UploadFolder) -> None:
    brought(folder)
    assert folder.begin(NAME, len(CONTENT) - 1) == 0
    assert folder.part_size(NAME) is None


def test_going_on_before_the_end_cuts_off_the_rest(folder: UploadFolder) -> None:
    folder.begin(NAME, 0)
    folder.append(NAME, CONTENT[:10], at=0)
    assert folder.begin(NAME, 4) == 4
    assert folder.part_size(NAME) == 4


def test_the_older_of_two_writers_stops_when_the_newer_took_over(folder: UploadFolder) -> None:
    folder.begin(NAME, 0)
    assert folder.append(NAME, CONTENT[:20], at=0)
    folder.begin(NAME, 5)
    assert not folder.append(NAME, CONTENT[20:30], at=20)
    assert folder.append(NAME, CONTENT[5:], at=5)
    assert folder.finish(NAME, nbytes=len(CONTENT), md5=MD5) is Finish.WHOLE
    assert not folder.append(NAME, b"late", at=len(CONTENT))
    assert folder.read(NAME) == CONTENT


def test_a_wrong_md5_deletes_the_part(folder: UploadFolder) -> None:
    folder.begin(NAME, 0)
    folder.append(NAME, CONTENT, at=0)
    assert folder.finish(NAME, nbytes=len(CONTENT), md5="0" * 32) is Finish.WRONG_MD5
    assert folder.part_size(NAME) is None


def test_a_part_stays_a_part_while_it_is_synced(tmp_path: Path) -> None:
    """A process may die at that moment, so the file must not look complete."""
    seen: list[tuple[int | None, Content | None]] = []
    other = UploadFolder(tmp_path)  # the view of another process
    made = UploadFolder(tmp_path, sync=lambda _: seen.append((other.part_size(NAME), other.whole(NAME))))
    assert brought(made) is Finish.WHOLE
    assert seen == [(len(CONTENT), None)]


def test_a_process_that_dies_in_sync_leaves_a_part(tmp_path: Path) -> None:
    def die(_: object) -> None:
        raise OSError(errno.EIO, "the process dies here")

    with pytest.raises(OSError, match="dies"):
        brought(UploadFolder(tmp_path, sync=die))
    left = UploadFolder(tmp_path)
    assert left.whole(NAME) is None
    assert left.part_size(NAME) == len(CONTENT)
    assert left.begin(NAME, len(CONTENT) - 1) == len(CONTENT) - 1
    assert left.append(NAME, CONTENT[-1:], at=len(CONTENT) - 1)
    assert left.finish(NAME, nbytes=len(CONTENT), md5=MD5) is Finish.WHOLE


def test_both_of_two_finishers_find_the_file_whole(folder: UploadFolder) -> None:
    assert brought(folder) is Finish.WHOLE
    assert folder.finish(NAME, nbytes=len(CONTENT), md5=MD5) is Finish.WHOLE


def test_the_first_whole_file_stays(folder: UploadFolder) -> None:
    brought(folder)
    assert brought(folder, b"another") is Finish.OTHER_CONTENT
    assert folder.read(NAME) == CONTENT


def test_replace_puts_a_complete_part_in_place(folder: UploadFolder) -> None:
    brought(folder)
    other = b"another"
    assert brought(folder, other) is Finish.OTHER_CONTENT
    assert not folder.replace(NAME, nbytes=len(other), md5=MD5)
    assert folder.replace(NAME, nbytes=len(other), md5=hashlib.md5(other).hexdigest())
    assert (folder.read(NAME), folder.part_size(NAME)) == (other, None)


def test_recorded_is_remembered_beside_the_file(folder: UploadFolder, tmp_path: Path) -> None:
    brought(folder)
    assert not folder.is_marked(NAME)
    folder.mark_recorded(NAME)
    assert UploadFolder(tmp_path / "upload").is_marked(NAME)


def test_dropping_the_complete_file_leaves_a_part(folder: UploadFolder) -> None:
    brought(folder)
    folder.mark_recorded(NAME)
    folder.begin(NAME, 0)
    folder.drop_whole(NAME)
    assert (folder.whole(NAME), folder.part_size(NAME)) == (None, 0)


def test_a_chunk_without_room_is_taken_back_whole(folder: UploadFolder) -> None:
    folder.begin(NAME, 0)
    folder.append(NAME, b"x" * 1000, at=0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            folder.append(NAME, b"y" * 1000, at=1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert folder.part_size(NAME) == 1000
    assert folder.append(NAME, b"y" * 1000, at=1000)


@given(steps=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)), max_size=12))
def test_complete_file_always_has_announced_md5(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int]]
) -> None:
    """Writers begin anywhere and append right or displaced bytes; only the right content becomes complete."""
    folder = UploadFolder(tmp_path_factory.mktemp("upload"))
    for begin, at, source in steps:
        folder.begin(NAME, begin)
        folder.append(NAME, CONTENT[source : source + 20], at=at)
        folder.finish(NAME, nbytes=len(CONTENT), md5=MD5)
        assert folder.read(NAME) in (None, CONTENT)
