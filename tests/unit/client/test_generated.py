"""The client's generated modules are those that its sources give, and its version is the server's."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest

from api import shapes as declared
from api.client_types import CLIENT, ROOT, generated
from muster_client import Client, SyncClient, shapes


@pytest.mark.parametrize("name", ["blocking.py", "shapes.py"])
def test_generated_module_is_up_to_date(name: str) -> None:
    assert (CLIENT / name).read_text("utf-8") == generated()[CLIENT / name], "make reference"


def test_client_has_every_declared_reply() -> None:
    assert set(declared.__all__) <= set(shapes.__all__)
    assert [name for name in shapes.__all__ if not hasattr(shapes, name)] == []


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
