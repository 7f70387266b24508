"""A group's slots in order, in pieces, so that a request that looked at them costs no copy of them all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

from domain.jobs import Ready

SlotRank = tuple[int, bool, int, int]
PIECE = 128  # slots; a piece of twice as many is halved


class Lent(Sequence[Ready]):
    """The slots as they were at one moment. Access is fast near the start, where requests look."""

    __slots__ = ("_count", "_pieces")

    def __init__(self, pieces: tuple[list[Ready], ...], count: int) -> None:
        self._pieces = pieces
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Ready: ...

    @overload
    def __getitem__(self, index: slice) -> list[Ready]: ...

    def __getitem__(self, index: int | slice) -> Ready | list[Ready]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._count))]
        place = index if index >= 0 else index + self._count
        if place >= 0:
            for piece in self._pieces:
                if place < len(piece):
                    return piece[place]
                place -= len(piece)
        raise IndexError(f"expected a place below {self._count}, got {index}")

    def __iter__(self) -> Iterator[Ready]:
        return chain.from_iterable(self._pieces)

    def __reversed__(self) -> Iterator[Ready]:
        for piece in reversed(self._pieces):
            yield from reversed(piece)


class SortedSlots:
    """Slots by rank. What `lent` returned never changes; the first change of a piece after it copies that piece.

    A change costs O(log slots + PIECE + slots / PIECE), the last two in C; taking the first slot less.
    """

    __slots__ = ("_copied", "_count", "_lasts", "_lent", "_pieces", "_ranks")

    def __init__(self, ranked: Iterable[tuple[SlotRank, Ready]] = ()) -> None:
        in_order = sorted(ranked)
        self._pieces: list[list[Ready]] = []
        self._ranks: list[list[SlotRank]] = []
        self._lasts: list[SlotRank] = []  # the greatest rank of each piece
        self._copied: list[bool] = []  # whether the piece was made after the slots were lent
        self._count = len(in_order)
        self._lent: Sequence[Ready] | None = None
        for start in range(0, len(in_order), PIECE):
            some = in_order[start : start + PIECE]
            self._insert_piece(len(self._pieces), [rank for rank, _ in some], [slot for _, slot in some])

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Ready]:
        return chain.from_iterable(self._pieces)

    @property
    def first_rank(self) -> SlotRank:
        return self._ranks[0][0]

    def lent(self) -> Sequence[Ready]:
        """The slots as they are now."""
        if self._lent is None:
            self._lent = self._pieces[0] if len(self._pieces) == 1 else Lent(tuple(self._pieces), self._count)
            self._copied = [False] * len(self._pieces)
        return self._lent

    def add(self, rank: SlotRank, slot: Ready) -> None:
        """Put in a slot whose rank no other has."""
        self._count += 1
        if not self._pieces:
            self._lent = None
            self._insert_piece(0, [rank], [slot])
            return
        at = min(bisect_left(self._lasts, rank), len(self._lasts) - 1)
        piece, ranks = self._changing(at), self._ranks[at]
        place = bisect_right(ranks, rank)
        ranks.insert(place, rank)
        piece.insert(place, slot)
        self._lasts[at] = ranks[-1]
        if len(ranks) == 2 * PIECE:
            self._halve(at)

    def remove(self, rank: SlotRank) -> Ready:
        """Take out the slot of that rank, which is there."""
        at = 0 if rank <= self._lasts[0] else bisect_left(self._lasts, rank)
        piece, ranks = self._changing(at), self._ranks[at]
        place = 0 if ranks[0] == rank else bisect_left(ranks, rank)
        assert ranks[place] == rank
        self._count -= 1
        del ranks[place]
        slot = piece.pop(place)
        if ranks:
            self._lasts[at] = ranks[-1]
        else:
            del self._pieces[at], self._ranks[at], self._lasts[at], self._copied[at]
        return slot

    def _changing(self, at: int) -> list[Ready]:
        """The piece, nobody else's."""
        self._lent = None
        if not self._copied[at]:
            self._pieces[at] = self._pieces[at].copy()
            self._copied[at] = True
        return self._pieces[at]

    def _halve(self, at: int) -> None:
        ranks, piece = self._ranks[at], self._pieces[at]
        self._ranks[at], self._pieces[at], self._lasts[at] = ranks[:PIECE], piece[:PIECE], ranks[PIECE - 1]
        self._insert_piece(at + 1, ranks[PIECE:], piece[PIECE:])

    def _insert_piece(self, at: int, ranks: list[SlotRank], piece: list[Ready]) -> None:
        self._ranks.insert(at, ranks)
        self._pieces.insert(at, piece)
        self._lasts.insert(at, ranks[-1])
        self._copied.insert(at, True)
