"""Binds queues to hosts: conditions that a host must meet to get jobs of a queue's batches. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from domain.errors import InvalidInputError
from domain.formatting import both_in_words, size_in_words
from domain.hosts import Host

KEY = "ordering.queue_hosts"
LABEL = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"  # of a host, given by operators
MOST_LABELS = 16  # of a host

NUMBERS: Mapping[str, Callable[[Host], float]] = {
    "ncpus": lambda host: host.ncpus,
    "ram_bytes": lambda host: host.ram_bytes,
    "disk_bytes": lambda host: host.disk_free_bytes,
    "flop_per_s": lambda host: host.flop_per_s,  # of one CPU
    "gpus": lambda host: sum(gpu.count for gpu in host.coprocessors),
}
NAMES: Mapping[str, Callable[[Host], tuple[str, ...]]] = {
    "platform": lambda host: host.platforms,
    "cpu_vendor": lambda host: (host.cpu_vendor,),
    "gpu": lambda host: tuple(str(gpu.type) for gpu in host.coprocessors),
    "volunteer": lambda host: (str(host.volunteer_id),),
    "label": lambda host: host.labels,
}
_NUMBER = rf"({'|'.join(NUMBERS)})(>=|<=)([0-9]+(?:\.[0-9]+)?(?:e[0-9]{{1,2}})?)"
_NAME = rf"({'|'.join(NAMES)})(!?=)({LABEL}(?:\|{LABEL})*)"
_CONDITION = re.compile(rf"{_NUMBER}|{_NAME}")
_SHAPE = re.sub(r"\((?!\?)", "(?:", rf"(?:{_NUMBER}|{_NAME})")  # without groups
QUEUE_HOSTS = rf"[a-z][a-z0-9_-]{{0,31}}:{_SHAPE}(?:,{_SHAPE})*"  # a word of the setting


@dataclass(frozen=True, slots=True)
class HostCondition:
    """A number of the host is within a bound, or one of its names is (`=`) or is not (`!=`) among `names`."""

    name: str
    relation: str
    bound: float = 0.0
    names: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The condition in words: `label = lab or cluster`, `ram_bytes >= 16 GB`."""
        wanted = " or ".join(self.names)
        if not self.names:
            wanted = size_in_words(self.bound) if self.is_size else f"{self.bound:g}"
        return f"{self.name} {self.relation} {wanted}"

    @property
    def is_size(self) -> bool:
        return self.name.endswith("_bytes")

    def unmet(self, host: Host) -> tuple[str, str] | None:
        """Return the condition and the host's value in words; None if the host meets it.

        >>> HostCondition("ram_bytes", ">=", 16e9).unmet(Host(1, 1, ram_bytes=8e9))
        ('ram_bytes >= 16 GB', '8 GB')
        >>> HostCondition("label", "!=", names=("slow", "old")).unmet(Host(1, 1, labels=("old",)))
        ('label != slow or old', 'old')
        """
        if self.names:
            found = NAMES[self.name](host)
            if any(one in self.names for one in found) == (self.relation == "="):
                return None
            return self.words, ", ".join(filter(None, found)) or "none"
        value = NUMBERS[self.name](host)
        if value >= self.bound if self.relation == ">=" else value <= self.bound:
            return None
        wanted, has = both_in_words(self.bound, value) if self.is_size else (f"{self.bound:g}", f"{value:g}")
        return f"{self.name} {self.relation} {wanted}", has


def hosts_of_queue(text: str, queue: str) -> str | None:
    """Return in words which hosts a queue is bound to; None for all hosts.

    >>> hosts_of_queue("lab:label=lab|cluster,ncpus<=4", "lab")
    'label = lab or cluster, ncpus <= 4'
    """
    return ", ".join(one.words for one in queue_hosts(text).get(queue, ())) or None


@lru_cache(maxsize=8)
def queue_hosts(text: str) -> Mapping[str, tuple[HostCondition, ...]]:
    """Parse the conditions of each bound queue from words QUEUE:CONDITION,CONDITION. Raises InvalidInputError.

    >>> queue_hosts("big:ncpus>=8,platform=x86_64-pc-linux-gnu")["big"][0]
    HostCondition(name='ncpus', relation='>=', bound=8.0, names=())
    """
    found: dict[str, tuple[HostCondition, ...]] = {}
    for word in text.split():
        queue, _, rest = word.partition(":")
        if queue in found:
            raise InvalidInputError(KEY, f"each queue once, with all conditions of {queue} in one word", word)
        found[queue] = tuple(_condition(one, word) for one in rest.split(","))
    return found


def _condition(text: str, word: str) -> HostCondition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InvalidInputError(KEY, "conditions like ncpus>=8 or label=lab|cluster", word)
    number, relation, bound, name, is_in, names = match.groups()
    return (
        HostCondition(number, relation, float(bound))
        if number
        else HostCondition(name, is_in, 0.0, tuple(names.split("|")))
    )
