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
        self._sent_flop = 0.0  # also while nobody else waited

    def submitted(self, submitter: str, jobs: int, *, shares: float) -> None:
        self._shares[submitter] = shares
        self._waiting[submitter] = self._waiting.get(submitter, 0) + jobs

    def sent_first(self, submitter: str, flop: float) -> None:
        """The first instance of a job was sent."""
        self._sent_flop += flop
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
        """The part of what was sent while two waited that somebody else should have had; None: two never waited.

        Half the sum of |got - due|, over what was sent then: 0.5 where one of two got it all.

        >>> shares = Shares()
        >>> for name in ("ada", "bob"):
        ...     shares.submitted(name, 4, shares=1.0)
        >>> for name in ("ada", "ada", "ada", "bob"):
        ...     shares.sent_first(name, 1e12)
        >>> shares.gap_fraction
        0.25
        """
        contended = sum(self._got[name] for name in sorted(self._got))
        return self._gap_flop / contended if contended > 0.0 else None

    @property
    def gap_of_all_fraction(self) -> float | None:
        """The same over all that was sent, also while nobody else waited: the shares that people see in the long run.

        >>> shares = Shares()
        >>> shares.submitted("ada", 6, shares=1.0)
        >>> for _ in range(4):
        ...     shares.sent_first("ada", 1e12)
        >>> shares.submitted("bob", 2, shares=1.0)
        >>> for name in ("ada", "ada", "bob", "bob"):
        ...     shares.sent_first(name, 1e12)
        >>> shares.gap_fraction, shares.gap_of_all_fraction
        (0.5, 0.125)
        """
        return self._gap_flop / self._sent_flop if self._got else None

    @property
    def _gap_flop(self) -> float:
        names = sorted(self._due.keys() | self._got.keys())
        return sum(abs(self._got[name] - self._due[name]) for name in names) / 2.0
