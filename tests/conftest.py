"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# No test is timed: how long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _logs_as_at_first() -> Iterator[None]:
    """A command that was run in this process set up logs for itself alone."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
