"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """A command that is run in this process sets up logs for itself alone."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
