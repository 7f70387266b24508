"""A table of numbers that is kept in step with objects: rows whose object changed are written anew when it is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from store.binary_copy import Fields, Table, native_dtype

FIRST_ROWS = 64


class KeptTable:
    """Rows by place, from 0 on without gaps; it grows by halves.

    >>> kept = KeptTable((("host_id", "i4"), ("p", "f4")))
    >>> kept.write([1, 0], [(7, 0.5), (8, 1.0)])
    >>> kept.rows.tolist()
    [(8, 1.0), (7, 0.5)]
    """

    def __init__(self, fields: Fields, rows: int = FIRST_ROWS) -> None:
        self._table = np.zeros(max(rows, FIRST_ROWS), native_dtype(fields))
        self._size = 0

    @property
    def rows(self) -> Table:
        """As they are now: who keeps them copies them."""
        return self._table[: self._size]

    def write(self, places: Sequence[int], rows: Sequence[tuple[object, ...]]) -> None:
        """Put these rows in these places."""
        if not places:
            return
        self._size = max(self._size, max(places) + 1)
        if self._size > len(self._table):
            grown = np.zeros(self._size + self._size // 2, self._table.dtype)
            grown[: len(self._table)] = self._table
            self._table = grown
        self._table[np.array(places)] = np.array(rows, self._table.dtype)
