"""Batch files that cannot be read are refused as invalid input: syntax, depth and size of integers."""

from __future__ import annotations

from pathlib import Path

import pytest

from administration.batches import MOST_DEPTH, read_batch_file
from domain.errors import InvalidInputError

MANY = 100_000


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("open.json", "[" * MANY),
        ("deep.json", nested(MANY)),
        ("deeper.json", f'{{"jobs": {nested(MOST_DEPTH)}}}'),
        ("list.json", nested(MOST_DEPTH + 1)),
        ("long.json", f'{{"app": {"1" * 5000}}}'),
        ("deep.toml", f"jobs = {nested(MANY)}"),
        ("deeper.toml", f"jobs = {nested(MOST_DEPTH)}"),
        ("dotted.toml", f"{'a.' * MANY}b = 1"),
        ("quoted.toml", '"!" . ' * MANY + "b = 1"),
        ("tables.toml", "jobs = " + "{a=" * MANY),
        ("long.toml", f"app = {'1' * 5000}"),
        ("hexadecimal.toml", f"app = 0x{'f' * 5000}"),
        ("syntax.toml", "app ="),
        ("syntax.json", "{"),
    ],
)
def test_unreadable_batch_file_is_invalid_input(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidInputError) as refused:
        read_batch_file(path)
    assert refused.value.field == str(path)


def test_batch_file_of_the_greatest_depth_is_read(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    path.write_text(f'{{"jobs": {nested(MOST_DEPTH - 1)}, "count": {2**64}}}')
    assert read_batch_file(path)["count"] == 2**64
