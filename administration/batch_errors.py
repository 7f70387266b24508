"""Groups the errors of a batch by outcome, exit status and the end of standard error. Pure.

Lines are made alike first, so that two errors that differ only in numbers, addresses or folders are in one group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from domain.attention import NEARLY_ALL, FailingVersion, nearly_all_fail
from domain.batches import BatchCounts
from domain.views import FailedInstance
from muster_client import shapes

LOOKED_AT = 1000  # instances read per state
TAIL_CHARS = 1000  # of standard error, read per instance
LINES = 3  # of them, compared
LINE_CHARS = 200
MOST_GROUPS = 100
_TAG = re.compile(r"</?[A-Za-z_!\[][^<>]{0,60}>|\]\]>")
_VARYING = (
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+-]+)+[\\/]"), "…/"),  # folders
    (re.compile(r"0x[0-9A-Fa-f]+|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"), "#"),  # addresses and digests
    (re.compile(r"\d+(?:[.:,-]\d+)*"), "#"),
)


def alike(text: str) -> str:
    """Return the last lines of an error with numbers, addresses and folders replaced.

    >>> alike("<stderr_txt>\\n12:00:01 read /slots/3/in.txt\\nbad row 17 at 0x7ffe\\n</stderr_txt>")
    '# read …/in.txt\\nbad row # at #'
    """
    told = _last_lines(text)
    for pattern, by in _VARYING:
        told = pattern.sub(by, told)
    return told


def example_in_words(group: shapes.ErrorGroup) -> str:
    """Return the last lines of the group's example as they are: with its numbers, addresses and folders."""
    return _last_lines(group["example"]["stderr"]) or _last_lines(group["example"]["reason"])


def _last_lines(text: str) -> str:
    lines = [" ".join(line.split())[:LINE_CHARS] for line in _TAG.sub("", text).splitlines()]
    return "\n".join([line for line in lines if line][-LINES:])


@dataclass(slots=True)
class _Group:
    example: FailedInstance
    instances: int = 0
    jobs: set[int] = field(default_factory=set)
    hosts: set[int] = field(default_factory=set)
    versions: Counter[tuple[str, int, str]] = field(default_factory=Counter)


def grouped(batch_id: int, failed: Sequence[FailedInstance], *, more: bool) -> shapes.BatchErrors:
    """Return the groups, the largest first. `more`: the batch has further errors, which were not read."""
    found = groups_of(failed)
    return {
        "batch_id": batch_id,
        "looked_at": len(failed),
        "more": more,
        "groups": found[:MOST_GROUPS],
        "groups_left_out": max(0, len(found) - MOST_GROUPS),
    }


def groups_of(failed: Sequence[FailedInstance]) -> list[shapes.ErrorGroup]:
    """Return the groups, the largest first."""
    groups: dict[tuple[str, int | None, str], _Group] = {}
    for one in failed:
        key = (one.state.value, one.exit_status, alike(one.stderr) or alike(one.reason))
        group = groups.setdefault(key, _Group(one))
        group.instances += 1
        group.jobs.add(one.job_id)
        group.hosts.add(one.host_id)
        group.versions[one.platform, one.version_num, one.plan_class] += 1
    found = sorted(groups.items(), key=lambda item: (-item[1].instances, item[0][0], item[1].example.instance_id))
    return [_shown(*item) for item in found]


def _shown(key: tuple[str, int | None, str], group: _Group) -> shapes.ErrorGroup:
    one = group.example
    return {
        "state": key[0],
        "exit_status": key[1],
        "message": key[2],
        "instances": group.instances,
        "jobs": len(group.jobs),
        "hosts": len(group.hosts),
        "versions": [
            {"platform": platform, "version_num": number, "plan_class": plan_class, "instances": count}
            for (platform, number, plan_class), count in group.versions.most_common()
        ],
        "example": {
            "instance_id": one.instance_id,
            "job_id": one.job_id,
            "host_id": one.host_id,
            "reason": one.reason,
            "stderr": one.stderr,
        },
    }


def fail_alike(counts: BatchCounts, found: shapes.BatchErrors) -> bool:
    """Return whether all or nearly all jobs of a batch fail, and with one error: retried ones would fail again.

    >>> one = {"looked_at": 20, "groups": [{"instances": 19}]}
    >>> fail_alike(BatchCounts(jobs_failed=9, jobs_validated=1), one), fail_alike(BatchCounts(jobs_failed=9), one)
    (True, True)
    >>> fail_alike(BatchCounts(jobs_failed=9, jobs_validated=2), one), fail_alike(BatchCounts(jobs_failed=1), one)
    (False, False)
    """
    most = max((one["instances"] for one in found["groups"]), default=0)
    return nearly_all_fail(counts) and most >= NEARLY_ALL * found["looked_at"] > 0


def with_error(failing: Iterable[FailingVersion], group: shapes.ErrorGroup) -> Sequence[FailingVersion]:
    """Return those of the failing versions of an app whose instances have the group's error."""
    own = {(one["platform"], one["version_num"], one["plan_class"]) for one in group["versions"]}
    return [one for one in failing if (one.platform, one.version_num, one.plan_class) in own]


def in_words(shown: shapes.BatchErrors) -> str:
    """Return the groups as lines for a terminal."""
    if not shown["groups"]:
        return f"batch {shown['batch_id']} has no errors"
    lines = list(_lines(shown["groups"]))
    if shown["more"]:
        lines.append(f"of the first {shown['looked_at']} errors, those of the most retried jobs first")
    return "\n".join(lines)


def _lines(groups: Iterable[shapes.ErrorGroup]) -> Iterable[str]:
    for one in groups:
        status = "" if one["exit_status"] is None else f", exit status {one['exit_status']}"
        counts = f"{one['instances']} instances of {one['jobs']} jobs on {one['hosts']} hosts"
        yield f"{counts}: {one['state']}{status}; such as instance {one['example']['instance_id']}"
        yield from (f"    {line}" for line in example_in_words(one).splitlines())
        named = (f"{version_in_words(of)} {of['instances']}" for of in one["versions"])
        yield f"    versions: {', '.join(named)}"


def version_in_words(one: shapes.ErrorVersion) -> str:
    """Return a version's number, platform and plan class.

    >>> version_in_words({"platform": "x86_64-pc-linux-gnu", "version_num": 104, "plan_class": "mt", "instances": 3})
    '1.04 x86_64-pc-linux-gnu (mt)'
    """
    plan_class = f" ({one['plan_class']})" if one["plan_class"] else ""
    return f"{one['version_num'] / 100:.2f} {one['platform']}{plan_class}"
