"""Explains which jobs a host would get if it contacted the server now, with every step of the decision, as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import floor

import feeder.array
from administration.catalogue import fresh_catalogue, stale_as_json
from administration.explain.batch import hold_of, lease_as_json
from administration.explain.dry_run import (
    Untouched,
    assumed_context,
    free_s,
    private_feeder,
    refusal_of_all,
    refusals_of_app,
    telling,
)
from administration.explain.verdict import (
    OF_HOST,
    ClassCondition,
    HostAnswer,
    class_conditions,
    counted,
    host_conclusion,
)
from administration.show import shown
from administration.stopped import stopped_of
from domain.apps import ProcessorType
from domain.batches import BatchState
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.dispatch import RequestView
from domain.formatting import in_words
from domain.hosts import host_in_words
from domain.insight import Caller
from domain.refusals import BEHIND_GATE, Refusal, RefusalCode
from domain.reservations import Lease
from domain.settings import RankingSettings, SchedulerSettings
from domain.units import DAY_S, HOUR_S, AppId, BatchId, HostId, Instant, JobClassId
from domain.views import BatchChoice, BatchSort
from muster_client import shapes
from scheduler.assignment import choice_of, is_to_search
from scheduler.choice import Choice, Chosen, Refused
from scheduler.context import SchedulingContext
from scheduler.ports import SlotSource
from scheduler.stages import Stage
from scheduler.trace import BestOfApp, DecisionTrace, TraceStep, bests_of, stages_by_group, traced
from scheduler.versions import Best
from store.postgres import PostgresStore

MOST_GROUPS = 1000  # maximum number of groups in the JSON
ClassKey = tuple[BatchId, JobClassId, bool]  # batch, class, urgent
MOST_BATCHES = 200  # active batches, in order, of which those without a slot are listed


def silence_in_words(host: str, caller: Caller, now: Instant) -> str:
    """Return when a host last contacted the server, as a sentence; "" within an hour."""
    if now - caller.last_rpc_at <= HOUR_S:
        return ""
    usual = f"; its usual interval is {in_words(caller.rpc_interval_s)}" if caller.rpc_interval_s is not None else ""
    return f"Host {host} last contacted the server {in_words(now - caller.last_rpc_at)} ago{usual}."


def quiet_contact_in_words(host: str, last_rpc_at: Instant, busy_at: Iterable[Instant | None], now: Instant) -> str:
    """Return that a host's last request probably asked for no work, as a sentence; "" if it asked. `busy_at`: when its
    requests for work got jobs or were refused. A request that only got lost jobs again is in neither.

    >>> quiet_contact_in_words("swan (7)", Instant(60.0), [Instant(0.0), None], Instant(120.0))
    'The last request of host swan (7), 60 s ago, probably asked for no work: its client may be suspended, or busy.'
    >>> quiet_contact_in_words("swan (7)", Instant(60.0), [Instant(60.0)], Instant(120.0))
    ''
    """
    if any(one is not None and one >= last_rpc_at for one in busy_at):
        return ""
    asked = "probably asked for no work: its client may be suspended, or busy"
    return f"The last request of host {host}, {in_words(now - last_rpc_at)} ago, {asked}."


async def explain_host(
    store: PostgresStore, clock: Clock, worker: feeder.array.JobArray | None, host_id: HostId
) -> shapes.HostExplained:
    """Make a dry run of the decision for a host, on a view of the worker's job array.

    Without a worker, the array is filled from the database for this call; it may differ from a worker's array. Returns
    the host, its assumed request, its rank per app, the jobs it would get, and all groups.

    `refused` is the reason why the project currently sends no jobs to any host; the dry run is shown anyway.
    `left_out`: batches with unsent instances that the array does not have, and why.
    `would_search`: the worker's array has nothing for the host, so a real request would also search the database.
    Raises NotFoundError.
    """
    caller = await store.insight.caller(host_id)
    catalogue = await fresh_catalogue(store.applications, clock)
    view, array = await asyncio.gather(store.ledger.read(caller.key), _array(store, clock, worker, catalogue))
    now = clock.now()
    context = assumed_context(view, catalogue, now=now)
    runs: list[tuple[DecisionTrace, tuple[int, ...]]] = []

    def decide(one: SchedulingContext, array: SlotSource) -> Choice:
        slots = tuple(len(group.slots()) for group in array.groups())
        found = traced(one, array)
        runs.append((found, slots))
        return found.choice

    await choice_of(context, array, decide)
    found, slots = runs[-1]  # the second run, if the array had nothing and the database was searched
    refused, live = refusal_of_all(view, catalogue), worker is not None
    chosen, bests = found.choice.chosen, bests_of(context, catalogue.apps)
    classes = refused_classes(found, bests)
    conditions = [_helped(one, classes, view, catalogue, now) for one in class_conditions(classes.values())]

    def helped(key: ClassKey) -> list[ClassCondition]:
        own = {key: classes.get(key, ())}
        found = map(of_one_group, class_conditions(own.values()))
        return [_helped(one, own, view, catalogue, now) for one in found]

    whys = () if refused is None else (refused,)
    answer = HostAnswer(host_id, 0.0, 0 if whys else len(chosen), free_s(context, chosen), whys)
    title, batches = host_in_words(host_id, context.host.domain_name), len({one.batch.batch_id for one in chosen})
    own = await store.volunteer_views.host(context.host.volunteer_id, host_id)
    quiet = quiet_contact_in_words(
        title, caller.last_rpc_at, [own.refused_at, *(one.sent_at for one in view.held)], clock.now()
    )
    said = host_conclusion(title, answer, conditions, batches=batches, groups=len(found.groups))
    return {
        "verdict": f"{silence_in_words(title, caller, now) or quiet} {said}".lstrip(),
        "conditions": [
            shown(
                shapes.HostCondition,
                one,
                batch_ids=(ids := _batches_of(one, classes)),
                apps=_apps_of(ids, found, catalogue),
                by_label=_is_by_label(one, classes),
            )
            for one in conditions
        ],
        "computed_at": now,
        "host": _host(view, caller, now),
        "array": "worker" if live else "filled",
        "would_search": live and is_to_search(found.choice),
        "refused": None if refused is None else {"code": refused.code.value, "why": refused.detail},
        "wants": [shown(shapes.WantShown, want, idle=want.req_instances) for want in context.wants],
        "lease": _lease(catalogue.reserved.leases.get(host_id), found.choice.lease, now),
        "stale_cut_points": stale_as_json(catalogue),
        "standing": [_standing(app_id, kind, best, catalogue) for app_id, kind, best in bests],
        "would_get": [_chosen(one, now, catalogue) for one in found.choice.chosen],
        "refused_at_large": [_at_large(one, catalogue) for one in found.choice.refused_at_large],
        "groups": [
            _group(number, place, stages, slots[place], found, catalogue, helped(found.groups[place].key))
            for number, (place, stages) in enumerate(list(stages_by_group(context, found).items())[:MOST_GROUPS], 1)
        ],
        "groups_total": len(found.groups),
        "left_out": await _left_out(store, clock, catalogue, worker, {one.batch.batch_id for one in found.groups}),
    }


async def _left_out(
    store: PostgresStore,
    clock: Clock,
    catalogue: Catalogue,
    worker: feeder.array.JobArray | None,
    offered: Collection[BatchId],
) -> list[shapes.LeftOutShown]:
    """Return the first batches in the order with unsent instances, but without a slot in the job array, and why."""
    first = await store.listings.batches(
        BatchChoice(state=BatchState.ACTIVE), BatchSort.ORDER, after=None, limit=MOST_BATCHES
    )
    missing = [one.batch for one in first if one.batch.counts.unsent and one.batch.batch_id not in offered]
    if not missing:
        return []
    stopped = await stopped_of(store, clock)
    in_back_off = frozenset() if worker is None else worker.rotation.batches_out()
    rules = catalogue.settings.feeder
    found: list[shapes.LeftOutShown] = []
    for batch in missing:
        hold, group = hold_of(batch, catalogue), stopped.group_of(batch)
        if hold is not None or group is not None:
            said = [f"Blocked: {hold}."] if hold else []
            why = " ".join(said + ([f"{group.lost}." if group.lost else group.reason] if group else []))
        elif batch.batch_id in in_back_off:
            why = (
                f"In back-off: {counted(rules.refusals_to_rotate, 'host')} refused its instances and none took one, so "
                f"they are not loaded for up to {in_words(rules.cool_off_s)} (feeder.cool_off_s)."
            )
        else:
            why = "None of its jobs is among those loaded ahead: these are of batches before it."
        found.append({"batch_id": batch.batch_id, "name": batch.name, "unsent": batch.counts.unsent, "why": why})
    return found


def _batches_of(condition: ClassCondition, classes: Mapping[ClassKey, Sequence[Refusal]]) -> list[int]:
    """Return the batches whose jobs a condition refuses, in the sequence of the request."""
    return list(dict.fromkeys(key[0] for key, whys in classes.items() if condition.code in {one.code for one in whys}))


def _apps_of(batch_ids: Collection[int], found: DecisionTrace, catalogue: Catalogue) -> list[str]:
    """Return the names of the apps of batches; an app that the catalogue does not have yet is left out."""
    apps = {one.batch.app_id for one in found.groups if one.batch.batch_id in batch_ids}
    return sorted(catalogue.apps[app_id].name for app_id in apps & catalogue.apps.keys())


def _is_by_label(condition: ClassCondition, classes: Mapping[ClassKey, Sequence[Refusal]]) -> bool:
    """Return whether queues refuse the host because of its labels."""
    whys = (one for refusals in classes.values() for one in refusals if one.code is condition.code)
    return condition.code is RefusalCode.QUEUE and any(one.terms[-1] == "label" for one in whys)


def _helped(
    condition: ClassCondition,
    classes: Mapping[ClassKey, Sequence[Refusal]],
    view: RequestView,
    catalogue: Catalogue,
    now: Instant,
) -> ClassCondition:
    """Return the condition; for a used quota or a gate, with the setting that limits this host."""
    if condition.code is not RefusalCode.DAILY_QUOTA and condition.code not in BEHIND_GATE:
        return condition
    refusals = [one for whys in classes.values() for one in whys if one.code is condition.code]
    refusal = next(one for one in refusals if one.detail == condition.why)
    if condition.code is RefusalCode.DAILY_QUOTA:
        return replace(condition, help=quota_help(refusal, view, catalogue.settings.scheduler, now))
    return replace(condition, help=gate_help(refusal, catalogue.settings.ranking) or condition.help)


LEAST = {  # a host that could take the jobs of a group
    RefusalCode.MEMORY: "a host that offers {} of memory",
    RefusalCode.DISK: "a host that offers {} of disk space",
    RefusalCode.CPUS: "a host that offers {} CPUs",
}


def of_one_group(condition: ClassCondition) -> ClassCondition:
    """Return the condition of a single group, with the host that it needs: without counts of groups."""
    if condition.suggestion is None or condition.code not in LEAST:
        return condition
    needed = OF_HOST[condition.code].words(condition.suggestion.options[0].value)
    return replace(condition, help=LEAST[condition.code].format(needed))


def gate_help(refusal: Refusal, settings: RankingSettings) -> str:
    """Return the setting that would let a host below a gate pass: a threshold helps only if the host has a rank.

    Return "" for a gate that is not a percentile.
    """
    if refusal.code is RefusalCode.NO_RANK:
        least = f"{settings.min_samples:g} results of the app for a rank (ranking.min_samples)"
        return f"The host needs {least}; a lower threshold does not help a host without a rank."
    match refusal.terms:
        case (_, p, _, gate, _, *more):
            is_busy = refusal.code is RefusalCode.BUSY_BELOW_GATE
            idle = f"At most {in_words(more[1])} of queued work" if is_busy else "Valid results on time, for a higher P"
            if p is None:
                return f"{idle}."
            return f"{idle}, or deadline.{gate} of at most {floor(p * 1000.0) / 1000.0:g}."
    return ""


def quota_help(refusal: Refusal, view: RequestView, settings: SchedulerSettings, now: Instant) -> str:
    """Return when a used quota starts again, why it is low, and the setting of its start."""
    idle = whose = ""
    match refusal.terms:
        case (str() as of, sent, quota, _):  # shared with other hosts
            key, start, havs = "shared_quota_start", settings.shared_quota_start, [*view.havs.values()]
            is_low, whose = any(q.earned < 0 for q in view.quotas), f", those of the {of}'s other hosts included"
            idle = "The host gets a job once a processor is idle. " if sent < quota else ""
        case _:
            key, start = "daily_quota_start", settings.daily_quota_start
            havs = [hav for version_id, hav in view.havs.items() if version_id == refusal.terms[0]]
            is_low = any(0 < one.quota_per_day < start for one in havs)
    failed = sum(one.n_error + one.n_timeout for one in havs)
    results = failed + sum(one.n_valid for one in havs)
    low = f" It is low because results failed{whose}; of this host, {failed} of {results} did." if is_low else ""
    resets = f"{idle}The quota starts again at midnight UTC, in {in_words(DAY_S - now % DAY_S)}."
    return f"{resets}{low} Valid results raise it; a new host starts with `scheduler.{key}` ({start})."


def refused_classes(found: DecisionTrace, bests: Sequence[BestOfApp]) -> Mapping[ClassKey, Sequence[Refusal]]:
    """Return the refusals of each group that gave nothing. A refusal of an app applies to all its groups."""
    given = {step.place for step in found.steps if step.given}
    empty = [group for place, group in enumerate(found.groups) if place not in given]
    refused: dict[ClassKey, list[Refusal]] = {group.key: [] for group in empty}
    for group, _, why in found.choice.not_given:
        refused.get(group.key, []).append(why)
    of_apps = {one: refusals_of_app(one, found, bests) for one in {group.batch.app_id for group in empty}}
    for group in empty:
        refused[group.key] += of_apps[group.batch.app_id]
    return {key: telling(whys) for key, whys in refused.items()}


async def _array(
    store: PostgresStore, clock: Clock, worker: feeder.array.JobArray | None, catalogue: Catalogue
) -> SlotSource:
    if worker is not None:
        return Untouched(worker)
    return (await private_feeder(store.waiting, catalogue, clock)).array


def _lease(known: Lease | None, made: Lease | None, now: Instant) -> shapes.LeaseShown | None:
    return lease_as_json(made, now, supposed=True) if known is None else lease_as_json(known, now)


def _host(view: RequestView, caller: Caller, now: Instant) -> shapes.ExplainedHost:
    host = view.host
    assert host is not None
    return shown(
        shapes.ExplainedHost,
        host,
        availability_fraction=host.cpu_availability_fraction,
        silent_s=now - host.last_rpc_at,
        calls_per_hour=round(caller.calls_per_hour(now), 3),
        silent=caller.is_silent(now),
        in_progress=[shown(shapes.ExplainedInstance, one) for one in view.held],
    )


def _standing(app_id: AppId, kind: ProcessorType, best: Best | Refusal, catalogue: Catalogue) -> shapes.StandingShown:
    of = {"app": catalogue.apps[app_id].name, "processor_type": kind}
    if isinstance(best, Refusal):
        return shown(shapes.StandingShown, **of, refused=best.code.value, why=best.detail)
    usable = best.for_gated
    return shown(
        shapes.StandingShown,
        usable,
        **of,
        version=usable.version.title,
        app_version_id=usable.version.app_version_id,
        p=usable.percentile.p,
        p_because=usable.percentile.because,
        flop_per_s=usable.speed.flop_per_s,
        speed_samples=round(usable.speed.samples, 3),
        slack_factor=round(usable.speed.slack_factor, 3),
    )


def _chosen(one: Chosen, now: Instant, catalogue: Catalogue) -> shapes.WouldGet:
    given = one.assignment
    return shown(
        shapes.WouldGet,
        given,
        app=catalogue.apps[one.batch.app_id].name,
        due_in_s=given.due_at - now,
        because=given.due_terms.because,
        terms=shown(shapes.GivenTerms, given.due_terms),
    )


def _at_large(one: Refused, catalogue: Catalogue) -> shapes.RefusedAtLarge:
    app = catalogue.apps.get(one.app_id) if one.app_id is not None else None
    name = None if app is None else app.name
    return shown(shapes.RefusedAtLarge, one, one.refusal, app=name, why=one.refusal.detail)


def _group(
    number: int,
    place: int,
    stages: Sequence[Stage],
    slots: int,
    found: DecisionTrace,
    catalogue: Catalogue,
    refused: Sequence[ClassCondition],
) -> shapes.GroupShown:
    """Return a slot group as JSON; `slots` is the number of slots it had before the dry run, `refused` why it gave no
    job.
    """
    group = found.groups[place]
    steps = [step for step in found.steps if step.place == place]
    app = catalogue.apps.get(group.batch.app_id)
    return shown(
        shapes.GroupShown,
        group,
        group.batch,
        group.job_class,
        place=number,
        stages=[stage.value for stage in stages],
        app=None if app is None else app.name,
        slots=slots,
        given=sum(step.given for step in steps),
        refusals=[shown(shapes.GroupRefusal, one) for one in refused] or rest_refused(steps),
        looks=[step_as_json(step) for step in steps],
    )


def rest_refused(steps: Iterable[TraceStep]) -> list[shapes.GroupRefusal]:
    """Return why a group that gave jobs did not give more, each condition once; nothing for another group."""
    found: dict[RefusalCode, str] = {}
    for step in steps:
        if step.given:
            more = [] if step.refusal is None else [(step.refusal.code, step.refusal.detail)]
            for code, why in [*more, *((code, why) for code, _, why in step.passed_over)]:
                found.setdefault(code, why)
    return [{"code": code.value, "why": why, "help": ""} for code, why in found.items()]


def step_as_json(step: TraceStep) -> shapes.LookShown:
    """Return a trace step as JSON: the stage, what was assigned, and why not more."""
    refusal = step.refusal
    return {
        "processor_type": step.processor_type,
        "pass": step.stage.value,
        "given": step.given,
        "code": None if refusal is None else refusal.code.value,
        "why": (step.later or None) if refusal is None else refusal.detail,
        "passed_over": [{"code": code.value, "slots": count, "why": why} for code, count, why in step.passed_over],
    }
