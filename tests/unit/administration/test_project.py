"""Projects on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from administration.project import NotInitialisedError, create_project, open_project
from domain.errors import InvalidInputError
from tests.facts import states

URL = "postgresql://muster:secret@db.example/muster"


def test_created_project_can_be_opened(tmp_path: Path) -> None:
    created = create_project(tmp_path / "deep" / "project", URL)

    assert open_project(tmp_path / "deep" / "project", None) == created
    assert created.database_url == URL


def test_project_without_url_uses_embedded_database(tmp_path: Path) -> None:
    create_project(tmp_path, None)

    assert open_project(tmp_path, None).database_url is None


def test_create_makes_the_file_folders(tmp_path: Path) -> None:
    project = create_project(tmp_path / "p", None)

    assert project.download_dir.is_dir()
    assert project.upload_dir.is_dir()
    assert project.config_file == tmp_path / "p" / "project.toml"
    assert project.postgres_dir == tmp_path / "p" / "postgres"
    assert project.keys_dir == tmp_path / "p" / "keys"


def test_creating_again_changes_nothing(tmp_path: Path) -> None:
    create_project(tmp_path, URL)
    (tmp_path / "files" / "upload" / "kept").write_text("output")

    create_project(tmp_path, "postgresql://elsewhere/other")

    assert open_project(tmp_path, None).database_url == URL
    assert (tmp_path / "files" / "upload" / "kept").read_text() == "output"


def test_given_url_overrides_the_configured_one(tmp_path: Path) -> None:
    create_project(tmp_path, URL)

    assert open_project(tmp_path, "postgresql://elsewhere/other").database_url == "postgresql://elsewhere/other"


def test_missing_project_names_the_init_command(tmp_path: Path) -> None:
    folder = tmp_path / "nothing"

    with states(NotInitialisedError, f"no project in {folder}:", f"`muster init --data-dir {folder} --url …`"):
        open_project(folder, None)


def test_relative_folder_becomes_absolute(tmp_path: Path) -> None:
    folder = Path(*[".."] * len(Path.cwd().parts)) / tmp_path.relative_to("/")

    assert create_project(folder, None).data_dir == tmp_path


def test_unknown_key_is_refused(tmp_path: Path) -> None:
    create_project(tmp_path, None)
    (tmp_path / "project.toml").write_text("port = 8080\n")

    with states(InvalidInputError, f"{tmp_path / 'project.toml'}:", "port:", "only the key database_url", 8080):
        open_project(tmp_path, None)


@pytest.mark.parametrize("content", [b"database_url = \n", b"database_url = 'a'\ndatabase_url = 'b'\n", b"\xff\xfe"])
def test_invalid_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    create_project(tmp_path, None)
    (tmp_path / "project.toml").write_bytes(content)

    with states(InvalidInputError, f"{tmp_path / 'project.toml'}:", "TOML"):
        open_project(tmp_path, None)


@pytest.mark.parametrize("value", ["5", "true", "['a']"])
def test_database_url_must_be_text(tmp_path: Path, value: str) -> None:
    create_project(tmp_path, None)
    (tmp_path / "project.toml").write_text(f"database_url = {value}\n")

    with pytest.raises(InvalidInputError) as caught:
        open_project(tmp_path, None)

    assert f"{tmp_path / 'project.toml'}: database_url: expected text, got " in str(caught.value)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_url_round_trips(tmp_path: Path, url: str) -> None:
    (tmp_path / "project.toml").unlink(missing_ok=True)

    create_project(tmp_path, url)

    assert open_project(tmp_path, None).database_url == url
