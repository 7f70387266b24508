"""Converts tables of numbers between PostgreSQL's binary COPY format and numpy records. Pure.

Without nulls all rows have the same length: a count of fields (int16), then each field's length (int32) and value, all
big-endian. So a block of rows is one array that can be read and written without a loop over its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.void]
Fields = Sequence[tuple[str, str]]

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # signature, no flags, no extension
TRAILER = b"\xff\xff"
BLOCK_BYTES = 1 << 20
FIRST_ROWS = 10_000


class BinaryCopyError(Exception):
    """Raised for rows that do not have the expected format."""


def native_dtype(fields: Fields) -> np.dtype[np.void]:
    """Return the record type in memory.

    >>> native_dtype((("host_id", "i4"), ("p", "f4"))).itemsize
    8
    """
    return np.dtype(list(fields))


def wire_dtype(fields: Fields, nulls: frozenset[str] = frozenset()) -> np.dtype[np.void]:
    """Return the record type of the COPY format. A field in `nulls` has a length of -1 and no value.

    >>> wire_dtype((("host_id", "i4"), ("p", "f4"))).itemsize  # 2 + 4 + 4 + 4 + 4
    18
    """
    parts = [("_fields", ">i2")]
    for name, kind in fields:
        parts.append((f"_length_{name}", ">i4"))
        if name not in nulls:
            parts.append((name, np.dtype(kind).newbyteorder(">").str))
    return np.dtype(parts)


class RowReader:
    """Parses a COPY stream piece by piece and passes on complete rows in blocks.

    Blocks are in network byte order. Their record type has the named fields, and unnamed fields for the framing.
    """

    def __init__(self, fields: Fields, take: Callable[[NDArray[np.void]], None]) -> None:
        self._fields = fields
        self._take_rows = take
        self._wire = wire_dtype(fields)
        self._pending = bytearray()
        self._begun = False

    def feed(self, data: bytes) -> None:
        self._pending += data
        if len(self._pending) >= BLOCK_BYTES:
            self._take()

    def end(self) -> None:
        """Pass on the last rows. Raises BinaryCopyError if the stream is incomplete or its fields do not match."""
        self._take()
        if bytes(self._pending) != TRAILER:
            raise BinaryCopyError(f"expected the end of the rows, got {bytes(self._pending[:40])!r}")

    def _take(self) -> None:
        if not self._begun:
            if len(self._pending) < len(HEADER):
                return
            if not self._pending.startswith(HEADER):
                raise BinaryCopyError(f"expected the header of a binary COPY, got {bytes(self._pending[:19])!r}")
            del self._pending[: len(HEADER)]
            self._begun = True
        count = len(self._pending) // self._wire.itemsize
        if count == 0:
            return
        used = count * self._wire.itemsize
        rows = np.frombuffer(bytes(self._pending[:used]), self._wire)
        del self._pending[:used]
        self._check(rows)
        self._take_rows(rows)

    def _check(self, rows: NDArray[np.void]) -> None:
        if not np.all(rows["_fields"] == len(self._fields)):
            raise BinaryCopyError(f"expected {len(self._fields)} fields, got {set(rows['_fields'].tolist())}")
        for name, kind in self._fields:
            wrong = rows[f"_length_{name}"] != np.dtype(kind).itemsize
            if wrong.any():
                length = int(rows[f"_length_{name}"][wrong][0])
                raise BinaryCopyError(f"{name}: expected {np.dtype(kind).itemsize} bytes, got {length} (-1 is null)")


class GrowingTable:
    """An array of records in native byte order that grows block by block."""

    def __init__(self, fields: Fields) -> None:
        self._size = 0
        self._table: Table = np.empty(FIRST_ROWS, native_dtype(fields))

    def add(self, rows: NDArray[np.void]) -> None:
        """Append a block. Unknown fields are dropped; missing fields keep their values."""
        end = self._size + rows.size
        if end > self._table.size:
            # In place, because the system then remaps the pages and no second copy is needed.
            self._table.resize(max(end, self._table.size * 3 // 2), refcheck=False)
        for name in self._table.dtype.names or ():
            if name in (rows.dtype.names or ()):
                self._table[name][self._size : end] = rows[name]
        self._size = end

    def table(self) -> Table:
        return self._table[: self._size]


class TableReader:
    """Parses a COPY stream piece by piece into a table."""

    def __init__(self, fields: Fields) -> None:
        self._table = GrowingTable(fields)
        self._rows = RowReader(fields, self._table.add)

    def feed(self, data: bytes) -> None:
        self._rows.feed(data)

    def table(self) -> Table:
        """Return all rows after the end of the stream. Raises BinaryCopyError if it is incomplete or does not match."""
        self._rows.end()
        return self._table.table()


def encoded(
    table: Table, fields: Fields, *, nulls: frozenset[str] = frozenset(), fixed: Mapping[str, int] | None = None
) -> Iterator[bytes]:
    """Encode the rows in blocks without a header or trailer.

    Fields in `nulls` are null in every row; fields in `fixed` have the given value in every row.
    """
    fixed = fixed or {}
    wire = wire_dtype(fields, nulls)
    step = max(1, BLOCK_BYTES // wire.itemsize)
    for start in range(0, table.size, step):
        block = table[start : start + step]
        rows = np.empty(block.size, wire)
        rows["_fields"] = len(fields)
        for name, kind in fields:
            rows[f"_length_{name}"] = -1 if name in nulls else np.dtype(kind).itemsize
            if name not in nulls:
                rows[name] = fixed[name] if name in fixed else block[name]
        yield rows.tobytes()
