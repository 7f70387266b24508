"""Warnings at start-up about conflicts between a node's address and the project's URL."""

from __future__ import annotations

import pytest

from cli.node import up
from runtime.worker import exposures


@pytest.mark.parametrize(
    ("url", "host", "said"),
    [
        ("http://127.0.0.1:8080/", "127.0.0.1", []),
        ("https://muster.example.org/", "127.0.0.1", []),
        ("https://muster.example.org/", "0.0.0.0", ["serves plain HTTP on 0.0.0.0"]),
        ("http://muster.example.org/", "0.0.0.0", ["travel unencrypted"]),
        ("http://muster.example.org/", "127.0.0.1", ["travel unencrypted", "other machines cannot reach"]),
    ],
)
def test_exposures_name_what_disagrees(url: str, host: str, said: list[str]) -> None:
    found = list(exposures(url, host))

    assert len(found) == len(said)
    assert all(part in sentence for part, sentence in zip(said, found, strict=True))


def test_up_listens_on_loopback_by_default() -> None:
    [host] = [option for option in up.params if option.name == "host"]

    assert host.default == "127.0.0.1"
