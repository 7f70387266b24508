"""Where a project lives on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from administration.project import NotInitialisedError, create_project, open_project
from domain.errors import InvalidInputError

URL = "postgresql://muster:secret@db.example/muster"


def test_a_created_project_is_opened_again(tmp_path: Path) -> None:
    created = create_project(tmp_path / "deep" / "project", URL)

    assert open_project(tmp_path / "deep" / "project", None) == created
    assert created.database_url == URL


def test_a_project_without_a_url_uses_the_embedded_database(tmp_path: Path) -> None:
    create_project(tmp_path, None)

    assert open_project(tmp_path, None).database_url is None


def test_creating_makes_the_folders_clients_files_go_to(tmp_path: Path) -> None:
    project = create_project(tmp_path / "p", None)

    assert project.download_dir.is_dir()
    assert project.upload_dir.is_dir()
    assert project.config_file == tmp_path / "p" / "project.toml"
    assert project.postgres_dir == tmp_path / "p" / "postgres"
    assert project.keys_dir == tmp_path / "p" / "keys"


def test_creating_again_leaves_the_project_as_it_is(tmp_path: Path) -> None:
    create_project(tmp_path, URL)
    (tmp_path / "files" / "upload" / "kept").write_text("output")

    create_project(tmp_path, "postgresql://elsewhere/other")

    assert open_project(tmp_path, None).database_url == URL
    assert (tmp_path / "files" / "upload" / "kept").read_text() == "output"


def test_a_url_given_at_opening_goes_before_the_configured_one(tmp_path: Path) -> None:
    create_project(tmp_path, URL)

    assert open_project(tmp_path, "postgresql://elsewhere/other").database_url == "postgresql://elsewhere/other"


def test_a_folder_without_a_project_is_named_with_the_way_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(NotInitialisedError) as caught:
        open_project(tmp_path / "nothing", None)

    assert str(caught.value) == (
        f"no project in {tmp_path / 'nothing'}: make one with `muster init --data-dir {tmp_path / 'nothing'} --url …`"
    )


def test_a_relative_folder_becomes_absolute(tmp_path: Path) -> None:
    folder = Path(*[".."] * len(Path.cwd().parts)) / tmp_path.relative_to("/")

    assert create_project(folder, None).data_dir == tmp_path


def test_an_unknown_key_is_named_with_the_file(tmp_path: Path) -> None:
    create_project(tmp_path, None)
    (tmp_path / "project.toml").write_text("port = 8080\n")

    with pytest.raises(InvalidInputError) as caught:
        open_project(tmp_path, None)

    assert str(caught.value) == f"{tmp_path / 'project.toml'}: port: expected only the key database_url, got 8080"


@pytest.mark.parametrize("content", [b"database_url = \n", b"database_url = 'a'\ndatabase_url = 'b'\n", b"\xff\xfe"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    create_project(tmp_path, None)
    (tmp_path / "project.toml").write_bytes(content)

    with pytest.raises(InvalidInputError) as caught:
        open_project(tmp_path, None)

    assert str(caught.value).startswith(f"{tmp_path / 'project.toml'}: expected a TOML file, got ")


@pytest.mark.parametrize("value", ["5", "true", "['a']"])
def test_a_database_url_that_is_no_text_is_refused(tmp_path: Path, value: str) -> None:
    create_project(tmp_path, None)
    (tmp_path / "project.toml").write_text(f"database_url = {value}\n")

    with pytest.raises(InvalidInputError) as caught:
        open_project(tmp_path, None)

    assert f"{tmp_path / 'project.toml'}: database_url: expected text, got " in str(caught.value)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_any_url_is_read_back_as_it_was_given(tmp_path: Path, url: str) -> None:
    (tmp_path / "project.toml").unlink(missing_ok=True)

    create_project(tmp_path, url)

    assert open_project(tmp_path, None).database_url == url
