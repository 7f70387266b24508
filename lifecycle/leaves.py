"""What numbers and texts does a JSON or CSV output hold, and where? Pure."""

from __future__ import annotations

import csv
import io
import json
import math

from domain.errors import MusterError

Value = float | str | bool | None
Leaf = tuple[tuple[str | int, ...], Value]  # where it stands, and what stands there


class MalformedOutputError(MusterError):
    """The output is neither JSON nor CSV."""


def read_leaves(name: str, content: bytes) -> tuple[Leaf, ...]:
    """Every number and text of an output, each with its place. Raises MalformedOutputError.

    A name ending in .json is JSON, one ending in .csv is CSV; any other is JSON when it starts with a
    brace or bracket. Cells of a CSV file that are numbers are numbers; blank lines are skipped.

    >>> read_leaves("out.json", b'{"pi": [3.14, "ok"]}')
    ((('pi', 0), 3.14), (('pi', 1), 'ok'))
    >>> read_leaves("out.csv", b"x,1e3")
    (((0, 0), 'x'), ((0, 1), 1000.0))
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedOutputError(f"{name} is not UTF-8: byte {error.start} is {content[error.start]:#04x}") from None
    suffix = name.rpartition(".")[2].lower()
    is_json = suffix == "json" or (suffix != "csv" and text.lstrip()[:1] in ("{", "["))
    leaves = _json_leaves(name, text) if is_json else _csv_leaves(name, text)
    if not leaves:
        raise MalformedOutputError(f"{name} is empty")
    return leaves


def _json_leaves(name: str, text: str) -> tuple[Leaf, ...]:
    try:
        root = json.loads(text, parse_int=_finite)
    except (ValueError, RecursionError) as error:
        raise MalformedOutputError(f"{name} is not JSON: {error}") from None
    leaves: list[Leaf] = []
    waiting: list[tuple[tuple[str | int, ...], object]] = [((), root)]
    while waiting:  # not recursive: nesting is the volunteer's
        place, node = waiting.pop()
        if isinstance(node, dict) and node:
            waiting.extend(((*place, key), node[key]) for key in sorted(node, reverse=True))
        elif isinstance(node, list) and node:
            waiting.extend(((*place, position), node[position]) for position in reversed(range(len(node))))
        elif isinstance(node, (dict, list)):
            leaves.append(((*place, "{}" if isinstance(node, dict) else "[]"), None))
        else:
            assert node is None or isinstance(node, (float, str, bool))  # all that JSON has
            leaves.append((place, node))
    return tuple(leaves)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"a whole number of {len(digits)} digits is too large")
    return number


def _csv_leaves(name: str, text: str) -> tuple[Leaf, ...]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise MalformedOutputError(f"{name} is not CSV: {error}") from None
    return tuple(
        ((line, column), _cell(cell.strip())) for line, row in enumerate(rows) for column, cell in enumerate(row)
    )


def _cell(cell: str) -> Value:
    if "_" in cell:  # Python reads 1_000 as a number, nobody else does
        return cell
    try:
        return float(cell)
    except ValueError:
        return cell
