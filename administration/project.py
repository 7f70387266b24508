"""The layout of a project on disk: database, keys and files.

DATA_DIR/project.toml     the database URL, unless it is the embedded database
DATA_DIR/postgres/        the embedded database
DATA_DIR/keys/            signing keys and secrets, readable only by the owner
DATA_DIR/files/download/  files that clients download
DATA_DIR/files/upload/    files that clients upload
DATA_DIR/files/stats/     the daily statistics
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InvalidInputError, MusterError


class NotInitialisedError(MusterError):
    """The folder contains no project."""


@dataclass(frozen=True, slots=True)
class Project:
    """A data directory and its database. With `database_url` None, the database is the embedded one."""

    data_dir: Path
    database_url: str | None = None

    @property
    def postgres_dir(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def keys_dir(self) -> Path:
        return self.data_dir / "keys"

    @property
    def files_dir(self) -> Path:
        return self.data_dir / "files"

    @property
    def download_dir(self) -> Path:
        return self.files_dir / "download"

    @property
    def upload_dir(self) -> Path:
        return self.files_dir / "upload"

    @property
    def statistics_dir(self) -> Path:
        return self.data_dir / "files" / "stats"

    @property
    def config_file(self) -> Path:
        return self.data_dir / "project.toml"


def create_project(data_dir: Path, database_url: str | None) -> Project:
    """Create the directories and the configuration file. An existing project is not changed."""
    project = Project(data_dir.resolve(), database_url)
    for folder in (project.data_dir, project.download_dir, project.upload_dir):
        folder.mkdir(parents=True, exist_ok=True)
    if not project.config_file.exists():
        url = f"database_url = {json.dumps(database_url, ensure_ascii=False)}\n" if database_url else ""
        project.config_file.write_text(f"# Muster project\n{url}", encoding="utf-8")
    return project


def open_project(data_dir: Path, database_url: str | None) -> Project:
    """Open a project; `database_url` overrides the configured URL. Raises NotInitialisedError, InvalidInputError."""
    data_dir = data_dir.resolve()
    config = data_dir / "project.toml"
    if not config.exists():
        raise NotInitialisedError(
            f"no project in {data_dir}: create one with `muster init --data-dir {data_dir} --url …`"
        )
    try:
        values = tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(str(config), "a TOML file", str(error)) from None
    for key in values:
        if key != "database_url":
            raise InvalidInputError(f"{config}: {key}", "only the key database_url", values[key])
        if not isinstance(values[key], str):
            raise InvalidInputError(f"{config}: {key}", "text", values[key])
    return Project(data_dir, database_url or values.get("database_url"))
