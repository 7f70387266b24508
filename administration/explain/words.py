"""Formats the JSON of explanations as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import domain.hosts
from administration.explain.batch import kept_in_words, lease_in_words
from administration.explain.verdict import counted
from administration.thresholds.shown import stale_in_words
from domain.formatting import in_words
from domain.views import UnsentExtras

Document = Mapping[str, Any]  # Any: a JSON document

ARRAYS = {
    "worker": "evaluated on the current job array of one worker; other workers have other jobs",
    "filled": "evaluated on a job array filled for this request; workers may have other jobs: query a worker with "
    "--server",
}
SEARCHES = "; a request would also search the database"
MOST_GROUPS = 40  # maximum in the text; the JSON has all groups


def host_in_words(shown: Document) -> str:
    """Describe which jobs a host would get if it contacted the server now, and why not more."""
    return "\n".join(_host(shown))


def _host(shown: Document) -> Iterator[str]:
    host = shown["host"]
    yield shown["verdict"]
    yield (
        f"host {domain.hosts.host_in_words(host['host_id'], host['domain_name'])}: {host['ncpus']} CPUs of "
        f"{host['flop_per_s']:.3g} flop/s, "
        f"{host['calls_per_hour']:.2f} calls an hour, last {in_words(max(0.0, host['silent_s']))} ago, "
        f"{len(host['in_progress'])} jobs in progress"
    )
    if shown["refused"] is not None:
        yield f"refused all work now: {shown['refused']['why']}"
    yield ARRAYS[shown["array"]] + (SEARCHES if shown["would_search"] else "")
    wants = ", ".join(f"{one['processor_type']} ({one['idle']:g} of {one['count']} idle)" for one in shown["wants"])
    yield f"assumed request: {wants or 'nothing'}"
    yield from lease_in_words(shown["lease"])
    yield from stale_in_words(shown["stale_cut_points"], shown["computed_at"])
    yield "rank and version per app:"
    for one in shown["standing"]:
        place = f"  {one['app']} {one['processor_type']}: "
        if "refused" in one:
            yield f"{place}{one['refused']}: {one['why']}"
            continue
        p = "none" if one["p"] is None else f"{one['p']:.3f}"
        yield f"{place}version {one['version']}, P {p} ({one['p_because']}), R_q = {one['slack_factor']:g} R"
    yield "it would be sent:" if shown["refused"] is None else "without this refusal it would be sent:"
    for one in shown["would_get"]:
        tight = "tight, " if one["tight"] else ""
        yield (
            f"  instance {one['instance_id']} of job {one['job_id']}, batch {one['batch_id']} ({one['app']}): "
            f"{tight}due in {in_words(one['due_in_s'])}; {one['because']}"
        )
    if not shown["would_get"]:
        yield "  nothing"
    yield from _groups(shown)
    for one in shown["left_out"]:
        yield f"left out: batch {one['batch_id']} ({one['name']}), {one['unsent']} unsent: {one['why']}"


MARKS = {  # stage -> why its groups come before others
    "leased": "the host is reserved for it",
    "gated": "needs a fast and reliable host",
    "prompt": "sent first",
    "locality": "the host has its files",
    "beta": "a test, for which the volunteer is willing",
    "unpaid": "not charged, therefore last",
}


def marks_of(group: Document) -> list[str]:
    """Return what decides about a group's place.

    >>> marks_of({"urgent": True, "stages": ["prompt", "all"]})
    ['retries and copies', 'sent first']
    """
    first = ["retries and copies"] if group["urgent"] else []
    return first + [MARKS[stage] for stage in group["stages"] if stage in MARKS]


def outcome_of(group: Document) -> str:
    """Return what a dry run gives a host of a group, in words.

    >>> nothing = {"given": 0, "refusals": []}
    >>> [outcome_of({**nothing, **more}) for more in ({}, {"given": 2}, {"refusals": [{"code": "memory"}]})]
    ['not reached', '2 given', 'refused']
    """
    if group["given"]:
        return f"{group['given']} given"
    return "refused" if group["refusals"] else "not reached"


def _groups(shown: Document) -> Iterator[str]:
    yield f"job classes in the sequence of the request ({shown['groups_total']}):"
    for group in shown["groups"][:MOST_GROUPS]:
        urgent = "".join(f", {mark}" for mark in marks_of(group))
        yield (
            f"  {group['place']}. batch {group['batch_id']} ({group['app']}), class {group['job_class_id']}{urgent}, "
            f"{group['slots']} slots: {outcome_of(group)}"
        )
        for one in group["refusals"]:
            rest, helps = "others refused: " * bool(group["given"]), f" ({one['help']})" * bool(one["help"])
            yield f"       {rest}{one['code']}: {one['why']}{helps}"
    if shown["groups_total"] > MOST_GROUPS:
        yield f"  and {shown['groups_total'] - MOST_GROUPS} more: see --json"


def batch_in_words(shown: Document) -> str:
    """Describe what delays a batch."""
    return "\n".join(_batch(shown))


def _batch(shown: Document) -> Iterator[str]:
    order, extras = shown["order"], UnsentExtras(shown["copies_unsent"], shown["retries_unsent"])
    yield shown["verdict"]
    yield from (f"  {one}" for one in shown["facts"])
    yield from (f"  To help: {one['words']}" for one in shown["remedies"])
    yield f"batch {shown['batch_id']} {shown['name']!r} ({shown['app']}, {shown['qos']}) is {shown['state']}"
    yield (
        f"jobs: {shown['jobs_validated']} of {shown['jobs_total']} valid, {shown['jobs_failed']} failed; instances: "
        f"{unsent_in_words(shown['unsent'], extras)}, {shown['in_progress']} in progress, {shown['retries']} unusable"
    )
    place = "" if order["place"] is None else f"position {order['place']} of {order['of']}; "
    yield (
        f"order: {place}{counted(order['batches_ahead'], 'batch', 'batches')} before it "
        f"(tier {order['order_tier']}, key {order['order_key']:.0f})"
    )
    if order["first_ahead"]:
        named = [f"batch {one['batch_id']} {one['name']}".rstrip() for one in order["first_ahead"]]
        more = order["batches_ahead"] - len(named)
        yield f"before it: {', '.join(named)}{f' and {more} more' if more > 0 else ''}"
    if order["sent_first"] is not None:
        yield order["sent_first"]
    if order["queue"] is not None:
        yield f"queue: {order['queue']}"
    if order["queue_hosts"] is not None:
        yield f"hosts: only with {order['queue_hosts']}, by its queue"
    if order["hold"] is not None:
        yield f"blocked: {order['hold']}"
    if shown["complete_in_s"] is None:
        yield "completion target: none yet"
    elif shown["complete_in_s"] >= 0:
        yield f"completion target: in {in_words(shown['complete_in_s'])}"
    else:
        yield f"completion target: {in_words(-shown['complete_in_s'])} ago"
    gate = "first instances go to any host" if shown["gate"] == "none" else f"gated by {shown['gate']}"
    yield f"feeding: {gate}; a refill now gives it {shown['slots']} of {shown['slots_total']} slots"
    yield from kept_in_words(shown["kept"])
    yield from lease_in_words(shown["lease"])
    yield from stale_in_words(shown["stale_cut_points"], shown["computed_at"])
    if shown["sample"] is None:
        yield "it has no unsent instances"
    else:
        yield from _sample(shown["sample"])


def unsent_in_words(unsent: int, extras: UnsentExtras) -> str:
    """Return the number of a batch's unsent instances, and which of them are copies and retries.

    >>> unsent_in_words(17, UnsentExtras(copies=17)), unsent_in_words(5, UnsentExtras())
    ('17 copies unsent', '5 unsent')
    >>> unsent_in_words(40, UnsentExtras(copies=3, retries=1))
    '40 unsent, with 3 copies and 1 retry'
    """
    copies = counted(extras.copies, "copy", "copies") if extras.copies else ""
    retries = counted(extras.retries, "retry", "retries") if extras.retries else ""
    kinds = " and ".join(f"{extras.least}{one}" for one in (copies, retries) if one)
    if kinds and unsent == extras.copies + extras.retries:
        return f"{kinds} unsent"
    return counted(unsent, "unsent", "unsent") + (f", with {kinds}" if kinds else "")


def _sample(sample: Document) -> Iterator[str]:
    taking = sample["would_take"]
    yield (
        f"of the {sample['hosts']} hosts that called last ({sample['calls_per_hour']:.1f} calls an hour), "
        f"{taking['hosts']} ({taking['calls_per_hour']:.1f} calls an hour) would take some of its jobs if the batch "
        f"came first"
    )
    for one in sample["held_back"]:
        yield (
            f"  {one['code']}: {one['hosts']} hosts, {one['calls_per_hour']:.1f} calls an hour; "
            f"host {one['example_host_id']}: {one['example']}"
        )
        if one["help"]:
            yield f"    {one['help']}"


def job_in_words(shown: Document) -> str:
    """Describe why a job's unsent instances wait, and the state of its other instances."""
    return "\n".join(_job(shown))


def _job(shown: Document) -> Iterator[str]:
    yield shown["verdict"]
    failure = f": {shown['failure']}" if shown["failure"] else ""
    yield f"job {shown['job_id']} of batch {shown['batch_id']} is {shown['state']}{failure}"
    for one in shown["instances"]:
        where = ", copy" if one["copied_because"] is not None else ""
        where += f", host {one['host_id']}" if one["host_id"] is not None else ""
        why = "; ".join(str(part) for part in (one["because"], one["reason"]) if part)
        yield f"  instance {one['instance_id']}: {one['state']}{where}{'; ' if why else ''}{why}"
    if shown["waiting"] and shown["hold"] is not None:
        yield f"blocked: {shown['hold']}"
    for one in shown["waiting"]:
        yield from _waiting(one, shown["batches_ahead"])
        yield from stale_in_words(one["stale_cut_points"], shown["computed_at"])


def _waiting(one: Document, batches: int) -> Iterator[str]:
    yield f"instance {one['instance_id']} waits:"
    if one["sample"] is None:
        yield "  no longer waiting: it was just sent or ended"
        return
    place = "in the job array after a refill" if one["in_array"] else "not in the job array after a refill"
    yield f"  {place}; {counted(batches, 'batch', 'batches')} before it"
    if one["copied_because"] is not None:
        yield f"  a copy: {one['copied_because']}"
    elif one["retries"]:
        yield f"  a retry: {one['retries']} instances of the job ended without a usable result"
    if one["sibling_hosts"]:
        yield f"  {_excluded(', '.join(map(str, one['sibling_hosts'])), one['one_per'])}"
    for line in _sample(one["sample"]):
        yield f"  {line}"


def _excluded(hosts: str, one_per: str | None) -> str:
    """Describe which hosts are excluded because they, or hosts of the same volunteer, have had the job."""
    match one_per:
        case "volunteer":
            return f"not for hosts {hosts} or other hosts of their volunteers: one instance per volunteer"
        case "host":
            return f"not for hosts {hosts}: one instance per host"
        case _:
            return f"hosts {hosts} had the job and may get it again once it is no longer in progress there"


def instance_in_words(shown: Document) -> str:
    """Describe how a due date was set, and the instance's outcome."""
    return "\n".join(_instance(shown))


def _instance(shown: Document) -> Iterator[str]:
    yield shown["verdict"]
    yield (
        f"instance {shown['instance_id']} of job {shown['job_id']}, batch {shown['batch_id']} ({shown['qos']}) "
        f"is {shown['state']}"
    )
    if shown["copied_because"] is not None:
        yield f"copy, because: {shown['copied_because']}"
    if shown["due"] is not None:
        yield from _due(shown["due"], shown["host_id"])
    if shown["today"] is not None:
        yield from _today(shown["today"])
        yield from stale_in_words(shown["today"]["stale_cut_points"], shown["computed_at"])
    outcome = shown["outcome"]
    if outcome["turnaround_s"] is not None:
        late = outcome["late_s"]
        by = f"{in_words(-late)} before" if late <= 0 else f"{in_words(late)} after"
        yield f"reported after {in_words(outcome['turnaround_s'])}, {by} its due date"
    if outcome["reason"]:
        yield f"reason: {outcome['reason']}"
    if outcome["is_canonical"]:
        yield "canonical instance of the job"
    for one in shown["waiting"]:
        yield from _waiting(one, 0) if one["sample"] is None else _only_sample(one)


def _only_sample(one: Document) -> Iterator[str]:
    yield "it waits:" if one["in_array"] else "it waits, and is not in the job array after a refill:"
    for line in _sample(one["sample"]):
        yield f"  {line}"


def _due(due: Document, host_id: int) -> Iterator[str]:
    yield f"due {in_words(due['allowed_s'])} after dispatch to host {host_id}, because: {due['because']}"
    if due["terms"] is not None:
        yield f"  inputs at dispatch, rule {due['terms']['rule']}: {_inputs(due['terms'])}"
    yield f"  R at dispatch {in_words(due['est_runtime_s'])}; allowed {due['allowed_over_runtime']:g} R"
    bound = "equal to the due date" if due["is_delay_bound"] else "the maximum for the job"
    yield f"  delay bound D {in_words(due['delay_bound_s'])}, {bound}"
    yield "  tight: the due date was set by the host's speed" if due["tight"] else "  not tight"
    if due["grace_s"] is not None:
        yield f"  timeout {in_words(due['grace_s'])} after the due date"


def _inputs(terms: Document) -> str:
    p = "none" if terms["p"] is None else f"{terms['p']:.3f}"
    gate = "no gate" if terms["gate"] == "none" else f"{terms['gate']} {terms['threshold']:g}"
    return (
        f"start {in_words(terms['start_s'])}, queue {in_words(terms['queue_s'])}, "
        f"R_q {in_words(terms['safe_runtime_s'])}, P {p}, {gate}"
    )


def _today(today: Document) -> Iterator[str]:
    yield "the same inputs today, for an idle host:"
    yield (
        f"  speed {today['flop_per_s']:.3g} flop/s ({today['speed_samples']:g} samples), available "
        f"{today['availability_fraction']:.2f} of the time: R {in_words(today['runtime_s'])}"
    )
    yield f"  R_q {in_words(today['safe_runtime_s'])} (R times {today['slack_factor']:g}, or R + min_slack_s)"
    complete = today["complete_in_s"]
    yield f"  C {'none' if complete is None else f'in {in_words(complete)}' if complete >= 0 else 'is past'}"
    yield f"  T_retry {in_words(today['retry_turnaround_s'])}, D {in_words(today['delay_bound_s'])}"
    yield f"  P {'none' if today['p'] is None else round(today['p'], 3)} ({today['p_because']})"
    answer = today["idle_host_would_get"]
    yield f"  so: {answer['refused']}: {answer['why']}" if "refused" in answer else f"  so: {answer['because']}"


IN_WORDS: Mapping[str, Callable[[Document], str]] = {
    "host": host_in_words,
    "batch": batch_in_words,
    "job": job_in_words,
    "instance": instance_in_words,
}
