"""How far is a batch, as a bar? Pure."""

from __future__ import annotations

from dataclasses import dataclass

from web.moments import number, percent


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts of 100; `out` are jobs that some host has now. `words` say the same."""

    valid: float
    failed: float
    out: float
    percent: str
    words: str


def bar_of(total: int, valid: int, failed: int, in_progress: int) -> Bar:
    """Jobs valid, failed and with hosts, as parts of all.

    >>> bar_of(200, 50, 10, 30)
    Bar(valid=25.0, failed=5.0, out=15.0, percent='30 %', words='50 of 200 jobs valid, 10 failed, 30 with hosts')
    """
    whole = max(total, 1)
    left = max(0, total - valid - failed)
    words = f"{number(valid)} of {number(total)} jobs valid, {number(failed)} failed"
    words += f", {number(in_progress)} with hosts" if in_progress else ""
    over = (valid + failed) / whole
    shown = percent(min(over, 0.99)) if left and over > 0.99 else percent(over)  # 100 % is the end
    return Bar(100.0 * valid / whole, 100.0 * failed / whole, 100.0 * min(in_progress, left) / whole, shown, words)
