"""What kinds of processors hosts have lately asked work for."""

from __future__ import annotations

from collections.abc import Iterable

from domain.apps import ProcessorType
from domain.units import MINUTE_S, Seconds

MIX_HALF_LIFE_S = Seconds(10 * MINUTE_S)


class RequestMix:
    """Requests per processor type, each worth half as much after MIX_HALF_LIFE_S.

    A request counts 2^((t - t0) / half-life) on a scale that is moved along, so that noting one costs
    no decay of the others.

    >>> mix = RequestMix()
    >>> mix.note([ProcessorType("cpu")], now_s=Seconds(0.0))
    >>> mix.note([ProcessorType("cpu"), ProcessorType("NVIDIA")], now_s=Seconds(600.0))
    >>> mix.weights(now_s=Seconds(600.0))
    {'cpu': 1.5, 'NVIDIA': 1.0}
    """

    def __init__(self) -> None:
        self._scaled: dict[ProcessorType, float] = {}
        self._origin_s = Seconds(0.0)

    def note(self, wanted: Iterable[ProcessorType], *, now_s: Seconds) -> None:
        """One request asked for these processor types at `now_s` of the monotonic clock."""
        if now_s - self._origin_s > 64 * MIX_HALF_LIFE_S:  # 2^64 is far from what a float can hold
            self._move_origin(now_s)
        value = self._value(now_s)
        for processor_type in wanted:
            self._scaled[processor_type] = self._scaled.get(processor_type, 0.0) + value

    def weights(self, *, now_s: Seconds) -> dict[ProcessorType, float]:
        """Decayed number of requests per processor type."""
        value = self._value(now_s)
        return {processor_type: count / value for processor_type, count in self._scaled.items()}

    def _value(self, now_s: Seconds) -> float:
        exponent = (now_s - self._origin_s) / MIX_HALF_LIFE_S
        return float(2.0 ** min(exponent, 1000.0))

    def _move_origin(self, now_s: Seconds) -> None:
        decayed = self.weights(now_s=now_s)
        self._scaled = {processor_type: count for processor_type, count in decayed.items() if count > 1e-6}
        self._origin_s = now_s
