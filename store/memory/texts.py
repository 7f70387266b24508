"""Many texts that are seldom read, in little memory."""

from __future__ import annotations

import zlib

BLOCK = 256  # texts that are compressed together
BETWEEN = "\0"  # in no text: databases have none either
LEVEL = 1  # of compression: the quickest


class Texts:
    """Texts by number, from 0 on. Whole blocks are compressed: texts alike take a sixth of their length.

    >>> texts = Texts()
    >>> numbers = [texts.add(f"due in {days} days") for days in range(1000)]
    >>> texts[numbers[7]], texts[numbers[999]]
    ('due in 7 days', 'due in 999 days')
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last: list[str] = []  # not a whole block yet
        self._read: tuple[int, list[str]] = (-1, [])  # the block that was read last

    def add(self, text: str) -> int:
        """The number by which it is found again."""
        number = len(self._blocks) * BLOCK + len(self._last)
        self._last.append(text)
        if len(self._last) == BLOCK:
            self._blocks.append(zlib.compress(BETWEEN.join(self._last).encode(), LEVEL))
            self._last = []
        return number

    def __getitem__(self, number: int) -> str:
        block, place = divmod(number, BLOCK)
        if block == len(self._blocks):
            return self._last[place]
        if self._read[0] != block:
            self._read = (block, zlib.decompress(self._blocks[block]).decode().split(BETWEEN))
        return self._read[1][place]
