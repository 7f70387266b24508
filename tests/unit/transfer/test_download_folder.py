"""A name stands for one content, for ever."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from domain.errors import AlreadyExistsError, InvalidInputError
from transfer.download_folder import DownloadFolder


def a_folder(tmp_path: Path, *, max_bytes: int = 1_000_000) -> DownloadFolder:
    return DownloadFolder(tmp_path / "download", max_bytes=max_bytes)


def files_in(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "download").rglob("*") if path.is_file()]


def test_a_registered_file_tells_its_size_and_md5(tmp_path: Path) -> None:
    nbytes, md5 = a_folder(tmp_path).register_file(b"hello world\n", "hello")
    assert (nbytes, md5) == (12, "6f5902ac237024bdd0c176cb93063dc4")
    assert a_folder(tmp_path).path("hello").read_bytes() == b"hello world\n"


def test_a_file_is_copied_from_its_path(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 3_000_000)
    content = a_folder(tmp_path, max_bytes=3_000_000).register_file(source, "big")
    assert content == (3_000_000, hashlib.md5(b"x" * 3_000_000).hexdigest())
    assert a_folder(tmp_path).path("big").read_bytes() == source.read_bytes()


def test_equal_content_may_be_registered_again(tmp_path: Path) -> None:
    first = a_folder(tmp_path).register_file(b"same", "name")
    assert a_folder(tmp_path).register_file(b"same", "name") == first
    assert len(files_in(tmp_path)) == 1


def test_other_content_under_a_known_name_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    folder.register_file(b"first", "name")
    with pytest.raises(AlreadyExistsError, match="file 'name' exists already"):
        folder.register_file(b"other", "name")
    assert folder.path("name").read_bytes() == b"first"
    assert len(files_in(tmp_path)) == 1


def test_a_file_over_the_limit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="big: expected a file of at most 10 B"):
        a_folder(tmp_path, max_bytes=10).register_file(b"x" * 11, "big")
    assert files_in(tmp_path) == []


def test_a_source_that_is_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"missing: expected a readable file"):
        a_folder(tmp_path).register_file(tmp_path / "missing", "name")
    assert files_in(tmp_path) == []


def test_an_unsafe_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="file name"):
        a_folder(tmp_path).register_file(b"", "../name")
