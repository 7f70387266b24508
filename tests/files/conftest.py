"""A real S3-compatible server per session; each test has its own prefix of the bucket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.s3 import S3Server, answers, credentials


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.s3)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """The server that no test stops."""
    server = S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    try:
        asyncio.run(answers(server))
        yield server
    finally:
        server.stop()


@pytest.fixture
def s3(s3_server: S3Server) -> Iterator[S3Server]:
    """The server, and the credentials in the environment."""
    with credentials():
        yield s3_server


@pytest.fixture
def bucket_url(s3: S3Server, tmp_path: Path) -> str:
    """The address of an empty prefix."""
    return s3.address(f"{tmp_path.parent.name}-{tmp_path.name}")
