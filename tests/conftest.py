"""Fixtures and hooks of all tests."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from domain.clock import SystemClock
from transfer.keys import create_keys

# No deadlines per example: they would depend on the load of the machine.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


FOLDER = "muster-pytest-"
KEPT_S = 86_400.0  # folders of sessions with failures
OWN_FOLDER = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Give each session its own temporary folder.

    pytest's default folder is shared: each session restricts /tmp/pytest-of-USER to its user when it starts, and tests
    run as root use databases of another user. A second session broke an initdb of the first.
    """
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        forget_old_folders()
        config.stash[OWN_FOLDER] = Path(tempfile.mkdtemp(prefix=FOLDER))
        config.option.basetemp = config.stash[OWN_FOLDER] / "tests"


def forget_old_folders() -> None:
    """Remove folders of failed sessions after a day."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        with contextlib.suppress(FileNotFoundError):  # another session has just ended
            if folder.stat().st_mtime < SystemClock().now() - KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep the folder of a failed session."""
    folder = session.config.stash.get(OWN_FOLDER, None)
    if folder is not None and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _logs_as_at_first() -> Iterator[None]:
    """Restore the log configuration, which commands run in this process change."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def keys_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's keys, created once per session."""
    folder = tmp_path_factory.mktemp("keys") / "keys"
    create_keys(folder)
    return folder
