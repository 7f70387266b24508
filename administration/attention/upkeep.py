"""Finds what the upkeep of the project needs: periodic tasks, disks, silent hosts, validation, backups. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from administration.attention.item import HALF, AttentionFacts, AttentionKind, Item, Remedy
from domain.access import Right
from domain.attention import (
    LOOKED_AT,
    HostContacts,
    Upkeep,
)
from domain.formatting import age_in_words, roughly, size_in_words
from domain.units import Instant, Seconds

Document = Mapping[str, Any]  # Any: a JSON document

MISSED, LEAST_SILENCE_S = 30.0, Seconds(300.0)  # requests and time without any request, until all hosts count as silent
SILENT_HOSTS, SILENT_FRACTION = 5, 0.2  # of the hosts active in the last week
FULL_FRACTION, ALMOST_FULL_FRACTION = 0.03, 0.1  # free space of a disk
LATE_S = Seconds(60.0)  # a periodic task may be late by this much


def upkeep_items(facts: AttentionFacts) -> Iterator[Item]:
    """Yield the items about the project's processes, disks, hosts, validation and backups."""
    yield from _tasks(facts)
    yield from _disks(facts)
    yield from _hosts(facts.contacts, facts.now)
    yield from _validation(facts.upkeep)
    yield from _backup(facts)


def _tasks(facts: AttentionFacts) -> Iterator[Item]:
    background = [one for one in facts.processes if one.kind == "background"]
    if not background:
        yield Item(
            AttentionKind.NO_BACKGROUND,
            True,
            "background process",
            "",
            "no background process reports: results are not validated, and instances do not time out",
            [Remedy("start the background process, or read its log", "", Right.OPERATE, "muster up")],
        )
        return
    late = {name: facts.now - at for name, at in facts.deadlines.items() if facts.now - at > LATE_S}
    for name, late_s in late.items():
        yield Item(
            AttentionKind.OVERDUE_TASK,
            True,
            f"periodic task {name}",
            "",
            f"overdue by {roughly(late_s)}",
            [Remedy("search the logs of the background processes for its name", "", Right.OPERATE)],
            facts.deadlines[name],
            {"late_by_s": late_s},
            weight=late_s,
        )
    for process in background:
        report: Document = process.report
        for duty in report["duties"]:
            failed_at, done_at = duty["failed_at"], duty["done_at"]
            if duty["mine"] and duty["name"] not in late and failed_at is not None and failed_at > (done_at or 0.0):
                yield Item(
                    AttentionKind.FAILING_TASK,
                    False,
                    f"periodic task {duty['name']}",
                    "",
                    f"its last round failed {age_in_words(facts.now - failed_at)} ago: {duty['failure']}",
                    [Remedy("read the whole error in the logs of the background processes", "", Right.OPERATE)],
                    failed_at,
                    {"failures": duty["failures"]},
                    weight=duty["failures"],
                )


def _disks(facts: AttentionFacts) -> Iterator[Item]:
    disks: dict[tuple[str, str], Document] = {}
    for one in facts.processes:
        node, report = one.name.partition(": ")[0], one.report
        found: Any = report.get("disks", ())
        disks |= {(node, disk["path"]): disk for disk in found}
    for (node, path), disk in disks.items():
        free_fraction = disk["free_bytes"] / max(1.0, disk["total_bytes"])
        if free_fraction < ALMOST_FULL_FRACTION:
            free, total = size_in_words(disk["free_bytes"]), size_in_words(disk["total_bytes"])
            yield Item(
                AttentionKind.DISK,
                free_fraction < FULL_FRACTION,
                f"disk of {path} on {node}",
                "",
                f"{free} of {total} free ({100 * free_fraction:.1f} %)",
                [
                    Remedy("purge ended batches", "settings?q=storage", Right.OPERATE, "muster purge"),
                    Remedy("move files to a bucket, or enlarge the disk", "manual/operating", Right.OPERATE),
                ],
                figures={"free_bytes": disk["free_bytes"], "total_bytes": disk["total_bytes"]},
                weight=1.0 - free_fraction,
            )


def _hosts(contacts: HostContacts, now: Instant) -> Iterator[Item]:
    reach = "check that clients reach the project's URL: name service, certificate, front end"
    check = Remedy(reach, "settings/project.url", Right.OPERATE)
    figures = {"hosts": contacts.hosts, "silent": contacts.silent}
    silence_s, is_small = now - contacts.last_at, contacts.hosts < SILENT_HOSTS
    if not is_small and silence_s > LEAST_SILENCE_S and contacts.missed(now) >= MISSED:
        yield Item(
            AttentionKind.SILENT_HOSTS,
            True,
            "hosts",
            "hosts",
            f"no host has called for {roughly(silence_s)}; {roughly(1.0 / contacts.usual_per_s)} is usual "
            "between requests",
            [check],
            contacts.last_at,
            figures,
            weight=contacts.hosts,
        )
    elif contacts.silent >= max(SILENT_HOSTS, SILENT_FRACTION * contacts.hosts):
        yield Item(
            AttentionKind.SILENT_HOSTS,
            contacts.silent >= HALF * contacts.hosts,
            "hosts",
            "hosts?show=silent&days=1",
            f"{contacts.silent} of the {contacts.hosts} hosts active in the last week have not called for more than a "
            "day and three of their usual intervals",
            [Remedy("see these hosts", "hosts?show=silent&days=1"), check],
            figures=figures,
            weight=contacts.silent,
        )


def _validation(upkeep: Upkeep) -> Iterator[Item]:
    waiting = f"{'more than ' if upkeep.waiting >= LOOKED_AT else ''}{upkeep.waiting} jobs wait for validation"
    if upkeep.failing or upkeep.waiting >= LOOKED_AT:
        failing = f"comparing the results of {upkeep.failing} jobs failed repeatedly"
        yield Item(
            AttentionKind.VALIDATION,
            False,
            "validation",
            "",
            f"{failing}; {waiting}" if upkeep.failing else waiting,
            [
                Remedy("read the errors in the log of the background process", "", Right.OPERATE),
                Remedy("look for missing outputs", "", Right.OPERATE, "muster check"),
            ],
            figures={"failing": upkeep.failing, "waiting": upkeep.waiting},
        )


def _backup(facts: AttentionFacts) -> Iterator[Item]:
    upkeep, most_s = facts.upkeep, facts.backup_age_s
    age_s = facts.now - (upkeep.installed_at if upkeep.backup_at is None else upkeep.backup_at)
    if 0.0 < most_s < age_s:
        age = "no backup is recorded" if upkeep.backup_at is None else f"the last backup is {roughly(age_s)} old"
        yield Item(
            AttentionKind.BACKUP,
            False,
            "backup",
            "manual/operating",
            f"{age}; expected every {roughly(most_s)} (storage.backup_age_s)",
            [Remedy("run deploy/backup.sh, or record the backups of another tool", "manual/operating", Right.OPERATE)],
            upkeep.backup_at,
            {"age_s": age_s},
        )
