"""Tests that no name leads out of its folder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.errors import InvalidInputError
from domain.units import InstanceId
from transfer.files import NAME, OutputName, identity_of, parse_output_name, shard, stored_path

HOSTILE = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../b",
    "a\\..\\b",
    "a\0b",
    "%2e%2e%2fpasswd",
    ".hidden",
    "a\nb",
    " a",
    "x" * 256,
    "x" * 241,
    "<a>",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="file name"):
        stored_path(tmp_path, name)


@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
def test_hostile_names_are_no_outputs_however_they_end(name: str) -> None:
    assert parse_output_name(f"{name}_1_1_1_r0") is None


def test_a_name_is_stored_in_the_folder_of_its_hash(tmp_path: Path) -> None:
    assert stored_path(tmp_path, "pi_1.00_x86_64") == tmp_path / "7f" / "pi_1.00_x86_64"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / shard("name")).symlink_to(outside)
    with pytest.raises(InvalidInputError, match="a file inside"):
        stored_path(inside, "name")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(codec="utf-8"), max_size=300))
def test_any_text_is_refused_or_stays_inside(tmp_path: Path, name: str) -> None:
    try:
        path = stored_path(tmp_path, name)
    except InvalidInputError:
        return
    assert path.resolve().parent.parent == tmp_path.resolve()
    assert path.name == name


def test_an_output_name_tells_its_instance() -> None:
    assert parse_output_name("pi_3_41_77_r12") == OutputName("pi_3_41_77_r12", InstanceId(77))


@pytest.mark.parametrize(
    "name", ["pi_3_41_77", "pi_3_41_77_r", "pi_3_41_77_rx", "_r0", "r0", "pi_r0", "pi_3_41_77_r0.part"]
)
def test_other_names_are_no_outputs(name: str) -> None:
    assert parse_output_name(name) is None


def test_concurrent_first_calls_get_same_identity(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        told = set(threads.map(lambda _: identity_of(tmp_path / "files"), range(32)))

    assert len(told) == 1
    assert [path.name for path in (tmp_path / "files").iterdir()] == [NAME]


def test_a_folder_that_cannot_be_marked_is_the_nodes_own(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("no folder")

    assert identity_of(tmp_path / "files").endswith(f":{tmp_path}/files")


def test_a_mark_that_is_none_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff\xfe")

    assert identity_of(tmp_path).endswith(f":{tmp_path}")
