"""Resource usage by submitters: charging and decay. Pure.

Usage decays with a half-life. A charge counts from the instant at which the work was sent, no matter when it is
recorded, so that charges, corrections and refunds give the same result in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.units import Instant, Seconds

LEAST_USAGE = 1e-9  # smaller amounts are treated as 0


@dataclass(frozen=True, slots=True)
class Amounts:
    """An amount of each resource: floating-point operations, CPU seconds, byte-seconds, GPU seconds."""

    flop: float = 0.0
    cpu_s: float = 0.0
    memory_byte_s: float = 0.0
    gpu_s: float = 0.0

    def plus(self, other: Amounts) -> Amounts:
        return Amounts(
            self.flop + other.flop,
            self.cpu_s + other.cpu_s,
            self.memory_byte_s + other.memory_byte_s,
            self.gpu_s + other.gpu_s,
        )

    def times(self, factor: float) -> Amounts:
        return Amounts(self.flop * factor, self.cpu_s * factor, self.memory_byte_s * factor, self.gpu_s * factor)

    def minus(self, other: Amounts) -> Amounts:
        return self.plus(other.times(-1.0))

    def weighed(self, weights: Amounts) -> float:
        """Return the sum of amount * weight; 0 if the sum is negligible.

        >>> Amounts(flop=2e12, gpu_s=10.0).weighed(Amounts(flop=1.0, gpu_s=1e11))
        3000000000000.0
        """
        number = (
            self.flop * weights.flop
            + self.cpu_s * weights.cpu_s
            + self.memory_byte_s * weights.memory_byte_s
            + self.gpu_s * weights.gpu_s
        )
        return number if number >= LEAST_USAGE else 0.0


@dataclass(frozen=True, slots=True)
class DecayedUsage:
    """Usage as of `at`. It does not decay if the half-life is 0 s."""

    amounts: Amounts = Amounts()
    at: Instant = Instant(0.0)

    def read(self, now: Instant, half_life_s: Seconds) -> Amounts:
        """Return the usage at `now`: amounts * 2^(-(now - at) / half-life); unchanged if `now` is earlier.

        >>> DecayedUsage(Amounts(flop=8.0), Instant(0.0)).read(Instant(200.0), Seconds(100.0)).flop
        2.0
        """
        return self.amounts.times(left_fraction(now - self.at, half_life_s))

    def charged(self, amounts: Amounts, *, since: Instant, half_life_s: Seconds) -> DecayedUsage:
        """Return the usage including `amounts` (negative: a refund), charged at an instant in the past or future.

        >>> usage = DecayedUsage(Amounts(flop=8.0), Instant(100.0))
        >>> usage.charged(Amounts(flop=-8.0), since=Instant(0.0), half_life_s=Seconds(100.0)).amounts.flop
        4.0
        """
        at = max(self.at, since)
        old = self.amounts.times(left_fraction(at - self.at, half_life_s))
        return DecayedUsage(old.plus(amounts.times(left_fraction(at - since, half_life_s))), at)


def left_fraction(age_s: float, half_life_s: float) -> float:
    """Return the fraction that remains of an amount of this age: 2^(-age / half-life), at most 1.

    >>> left_fraction(200.0, 100.0), left_fraction(5.0, 0.0)
    (0.25, 1.0)
    """
    if half_life_s <= 0.0 or age_s <= 0.0:
        return 1.0
    return float(2.0 ** -(age_s / half_life_s))


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge to a batch's submitter in its account; negative for a refund. Usage counts from `since`.

    `returned` instances used the amounts `used`; the account's grant is charged `used_su` service units for them.
    """

    since: Instant
    usage: Amounts
    used_su: float = 0.0
    used: Amounts = Amounts()
    returned: int = 0


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Usage of returned work in a period (None: the whole range), account and submitter (None: of all)."""

    starts_at: Instant | None
    account: str | None
    submitter: str | None
    instances: int
    flop: float
    cpu_s: float
    memory_byte_s: float
    gpu_s: float
    used_su: float
