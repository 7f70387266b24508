"""Reads a JSON or CSV output into its numbers and a digest of everything else. Pure.

Outputs come from untrusted computers, so every dimension has a limit. A reading takes 8 bytes per number, regardless of
the nesting.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from domain.errors import MusterError
from domain.formatting import both_in_words
from domain.formatting import in_words as length_in_words
from domain.units import Seconds

MOST_DIGITS = 400  # maximum number of digits of an integer; longer ones exceed the range of a double
MOST_SHOWN = 80  # maximum number of characters of a parser's message


class MalformedOutputError(MusterError):
    """The output is neither JSON nor CSV, or is larger than a limit."""


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Limits on all outputs of one instance together: bytes, values (numbers, texts, empty lists), nesting depth."""

    max_bytes: int = 64_000_000
    max_values: int = 5_000_000
    max_depth: int = 100

    def check_bytes(self, nbytes: int) -> None:
        """Raise MalformedOutputError if the outputs exceed the size limit for comparisons."""
        if nbytes > self.max_bytes:
            has, most = both_in_words(nbytes, self.max_bytes)
            raise MalformedOutputError(f"its outputs are too large to compare: {has} > {most} (validation.max_bytes)")


def too_slow(seconds: Seconds) -> str:
    """Return the message for outputs that needed too much processor time."""
    return f"reading its outputs took more than {length_in_words(seconds)} of processor time (validation.max_read_s)"


def too_much_memory(nbytes: int) -> str:
    """Return the message for outputs that needed too much memory."""
    return f"reading its outputs took more than {nbytes / 1e6:.0f} MB of memory (validation.max_memory_bytes)"


DEFAULT_LIMITS = ReadingLimits()


@dataclass(slots=True)
class Reading:
    """The comparable content of an instance's outputs, in order.

    `structure` is a digest of everything except the values of numbers: names, keys, texts, nesting, positions of
    numbers. Two outputs have the same structure if and only if they differ only in numbers.
    """

    structure: bytes = b""
    numbers: array[float] = field(default_factory=lambda: array("d"))


class Reader:
    """Adds outputs to a reading, within limits.

    >>> reader = Reader(ReadingLimits())
    >>> reader.add("out.json", b'{"pi": [3.14, "ok"]}')
    >>> reader.reading().numbers
    array('d', [3.14])
    """

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits
        self._digest = hashlib.sha256()
        self._numbers = array("d")
        self._values = 0
        self._nbytes = 0

    def reading(self) -> Reading:
        """Return the reading of all outputs added so far."""
        return Reading(self._digest.digest(), self._numbers)

    def add(self, name: str, content: bytes) -> None:
        """Read one output. Raises MalformedOutputError.

        A name ending in .json means JSON, .csv means CSV; any other file is JSON if it starts with a brace or bracket.
        Numeric cells of CSV are read as numbers; blank lines are skipped.
        """
        self._nbytes += len(content)
        self._limits.check_bytes(self._nbytes)
        self._note("output", name)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            wrong = content[error.start]
            raise MalformedOutputError(f"{name} is not UTF-8: byte {error.start} is {wrong:#04x}") from None
        suffix = name.rpartition(".")[2].lower()
        is_json = suffix == "json" or (suffix != "csv" and text.lstrip()[:1] in ("{", "["))
        before = self._values
        if is_json:
            self._add_json(name, text)
        else:
            self._add_csv(name, text)
        if self._values == before:
            raise MalformedOutputError(f"{name} is empty")

    def _add_json(self, name: str, text: str) -> None:
        try:
            root = json.loads(text, parse_int=_finite)
        except RecursionError:
            raise MalformedOutputError(f"{name} is nested deeper than {self._limits.max_depth} levels") from None
        except ValueError as error:
            raise MalformedOutputError(f"{name} is not JSON: {str(error)[:MOST_SHOWN]}") from None
        del text
        open_nodes: list[Iterator[object]] = [iter((root,))]  # not recursive: the volunteer controls the nesting
        while open_nodes:
            try:
                node = next(open_nodes[-1])
            except StopIteration:
                open_nodes.pop()
                self._note("end")
                continue
            if isinstance(node, _Key):
                self._note("key", node.text)
            elif isinstance(node, (dict, list)) and node:
                if len(open_nodes) > self._limits.max_depth:
                    raise MalformedOutputError(f"{name} is nested deeper than {self._limits.max_depth} levels")
                self._note("object" if isinstance(node, dict) else "list")
                open_nodes.append(_items(node) if isinstance(node, dict) else iter(node))
            elif isinstance(node, (dict, list)):
                self._count(name)
                self._note("empty object" if isinstance(node, dict) else "empty list")
            else:
                assert node is None or isinstance(node, (float, str, bool))  # no other types occur in JSON
                self._value(name, node)

    def _add_csv(self, name: str, text: str) -> None:
        try:
            for row in csv.reader(io.StringIO(text, newline=""), strict=True):
                if row:
                    self._note("row")
                    for cell in row:
                        self._value(name, _cell(cell.strip()))
        except csv.Error as error:
            raise MalformedOutputError(f"{name} is not CSV: {str(error)[:MOST_SHOWN]}") from None

    def _value(self, name: str, value: float | str | bool | None) -> None:
        self._count(name)
        if isinstance(value, float):
            self._numbers.append(value)
            self._note("number")
        elif isinstance(value, str):
            self._note("text", value)
        else:
            self._note(str(value))

    def _count(self, name: str) -> None:
        self._values += 1
        if self._values > self._limits.max_values:
            raise MalformedOutputError(
                f"{name} has more than {self._limits.max_values:,} values (validation.max_values)"
            )

    def _note(self, kind: str, text: str = "") -> None:
        """Digest each part with its length, so that different outputs never have the same digest."""
        encoded = text.encode("utf-8", "surrogatepass")  # JSON may contain an unpaired surrogate
        self._digest.update(b"%s %d:" % (kind.encode(), len(encoded)))
        self._digest.update(encoded)


@dataclass(frozen=True, slots=True)
class _Key:
    text: str


def _items(node: dict[str, object]) -> Iterator[object]:
    """Yield each key followed by its value, in an order that does not depend on the order of keys."""
    for key in sorted(node):
        yield _Key(key)
        yield node[key]


def _finite(digits: str) -> float:
    if len(digits) > MOST_DIGITS or math.isinf(number := float(digits)):
        raise ValueError(f"a whole number of {len(digits)} digits is too large")
    return number


def _cell(cell: str) -> float | str:
    if "_" in cell:  # Python reads 1_000 as a number, other CSV readers do not
        return cell
    try:
        return float(cell)
    except ValueError:
        return cell
