"""The blocking client matches the asynchronous one, and its version is the server's."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

from api.client_types import CLIENT, ROOT, blocking_module
from muster_client import Client, SyncClient


def test_blocking_client_is_up_to_date() -> None:
    assert (CLIENT / "blocking.py").read_text("utf-8") == blocking_module(), "make reference"


def test_blocking_client_has_the_same_signatures() -> None:
    def methods(kind: type) -> dict[str, tuple[object, ...]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {
            name: tuple((one.name, one.kind, one.default) for one in inspect.signature(method).parameters.values())
            for name, method in found
            if not name.startswith("_")
        }

    assert methods(SyncClient) == methods(Client)


def test_client_has_the_version_of_the_server() -> None:
    def project(folder: Path) -> dict[str, object]:
        found: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        return found

    server, client = project(ROOT), project(ROOT / "client")
    assert client["version"] == server["version"]
    assert set(client["dependencies"]) < set(server["dependencies"])  # type: ignore[call-overload]
