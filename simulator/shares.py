"""Do submitters get work done in proportion to their shares, while there is something to divide?"""

from __future__ import annotations

from collections import defaultdict


class Shares:
    """Follows first dispatches while jobs of two submitters or more wait: what each got, and what was its due."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._waiting: dict[str, int] = {}  # jobs of which nothing was sent
        self._got: defaultdict[str, float] = defaultdict(float)
        self._due: defaultdict[str, float] = defaultdict(float)

    def submitted(self, submitter: str, jobs: int, *, shares: float) -> None:
        self._shares[submitter] = shares
        self._waiting[submitter] = self._waiting.get(submitter, 0) + jobs

    def sent_first(self, submitter: str, flop: float) -> None:
        """The first instance of a job was sent."""
        if len(self._waiting) > 1:
            self._got[submitter] += flop
            together = sum(self._shares[other] for other in self._waiting)
            for other in self._waiting:
                self._due[other] += flop * self._shares[other] / together
        self._waiting[submitter] -= 1
        if not self._waiting[submitter]:
            del self._waiting[submitter]

    @property
    def gap_fraction(self) -> float | None:
        """The part of the work that somebody else should have had: half the sum of |got - due|; None: never two.

        >>> shares = Shares()
        >>> for name in ("ada", "bob"):
        ...     shares.submitted(name, 4, shares=1.0)
        >>> for name in ("ada", "ada", "ada", "bob"):
        ...     shares.sent_first(name, 1e12)
        >>> shares.gap_fraction
        0.25
        """
        total = sum(self._got[name] for name in sorted(self._got))
        if total <= 0.0:
            return None
        names = sorted(self._due.keys() | self._got.keys())
        return sum(abs(self._got[name] - self._due[name]) for name in names) / (2.0 * total)
