"""Which servers a DSN names."""

from __future__ import annotations

import pytest

from store.sessions import Address, addresses_of


@pytest.mark.parametrize(
    ("dsn", "addresses"),
    [
        ("postgresql://me:secret@db.example.org/muster", [("db.example.org", None)]),
        ("postgresql://me:se%40cret@a:5433,b:5434/muster", [("a", 5433), ("b", 5434)]),
        ("postgresql://me@[::1]:5433,[fe80::1]/muster", [("::1", 5433), ("fe80::1", None)]),
        ("postgresql://me@%2Frun%2Fone:5433/muster", [("/run/one", 5433)]),
        ("postgresql://me@/muster?host=a,b&port=5433,5434&target_session_attrs=read-write", [("a", 5433), ("b", 5434)]),
        ("postgresql:///muster?host=/run/one,b", [("/run/one", None), ("b", None)]),
        ("postgresql:///muster?host=a,b&port=5433", [("a", 5433), ("b", 5433)]),
        ("postgresql:///muster?service=project", []),
    ],
)
def test_every_server_of_a_dsn_is_found(dsn: str, addresses: list[Address]) -> None:
    assert addresses_of(dsn) == addresses
