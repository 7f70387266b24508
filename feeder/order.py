"""In which order do the groups of the array stand?"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from feeder.groups import Group, GroupKey, GroupRank


class Order:
    """Groups with at least one slot by rank. A change costs O(log groups), and one copy of pointers after `lent`."""

    def __init__(self) -> None:
        self._rank_of: dict[GroupKey, GroupRank] = {}  # as they stand in _ranks
        self._ranks: list[GroupRank] = []
        self._groups: list[Group] = []  # beside their ranks
        self._lent = False

    def __iter__(self) -> Iterator[GroupKey]:
        """The keys of the groups, in no particular order."""
        return iter(self._rank_of)

    def groups(self) -> Sequence[Group]:
        """The groups in order, for whoever changes none meanwhile."""
        return self._groups

    def lent(self) -> Sequence[Group]:
        """The groups in order. What was returned never changes; it is the same until a group changes its place."""
        self._lent = True
        return self._groups

    def update(self, group: Group) -> None:
        """Move a group to where its first slot belongs now; an empty one leaves."""
        before = self._rank_of.get(group.key)
        after = group.rank if group else None
        if before == after:
            return
        place = bisect_left(self._ranks, before) if before is not None else None
        if place is not None and after is not None and self._fits(place, after):
            self._ranks[place] = self._rank_of[group.key] = after
            return
        if self._lent:
            self._groups, self._lent = self._groups.copy(), False
        if place is not None:
            del self._ranks[place], self._groups[place], self._rank_of[group.key]
        if after is not None:
            place = bisect_left(self._ranks, after)
            self._ranks.insert(place, after)
            self._groups.insert(place, group)
            self._rank_of[group.key] = after

    def _fits(self, place: int, rank: GroupRank) -> bool:
        """Whether a group of this rank may stay at this place."""
        ranks = self._ranks
        return (place == 0 or ranks[place - 1] < rank) and (place + 1 == len(ranks) or rank < ranks[place + 1])
