"""A host's dry run as JSON: everything a decision met, in order. Pure."""

from __future__ import annotations

from administration.catalogue import stale_as_json
from administration.explain.host import HostExplanation
from administration.explain.reserved import lease_as_json
from domain.apps import ProcessorType
from domain.catalogue import Catalogue
from domain.dispatch import RequestView
from domain.hosts import Host
from domain.refusals import Refusal
from domain.reservations import Lease
from domain.units import AppId, Instant
from scheduler.choice import Chosen, Refused
from scheduler.ports import SlotGroup
from scheduler.trace import TraceStep, bests_of
from scheduler.versions import Best, Usable

MOST_GROUPS = 1000  # shown


def host_as_json(explanation: HostExplanation) -> dict[str, object]:
    """One object: the host, what it is supposed to want, its standing per app, what it would get, and every group."""
    view, asking, found = explanation.view, explanation.asking, explanation.found
    assert view.host is not None
    catalogue, now = asking.catalogue, asking.now
    refused = explanation.refused
    return {
        "computed_at": now,
        "host": _host(view.host, view, explanation.calls_per_hour, now),
        "array": "worker" if explanation.on_worker else "filled",
        "would_search": explanation.would_search,
        "refused": None if refused is None else {"code": refused.code.value, "why": refused.detail},
        "wants": [
            {
                "processor_type": want.processor_type,
                "count": want.count,
                "idle": want.req_instances,
                "req_s": want.req_s,
            }
            for want in asking.wants
        ],
        "lease": _lease(catalogue.reserved.leases.get(view.host.host_id), found.choice.lease, now),
        "stale_cut_points": stale_as_json(catalogue),
        "standing": [_standing(app_id, kind, best, catalogue) for app_id, kind, best in bests_of(asking)],
        "would_get": [_chosen(one, now, catalogue) for one in found.choice.chosen],
        "refused_at_large": [_at_large(one, catalogue) for one in found.choice.refused_at_large],
        "groups": [
            _group(place, group, explanation, catalogue) for place, group in enumerate(found.groups[:MOST_GROUPS])
        ],
        "groups_total": len(found.groups),
    }


def _lease(known: Lease | None, made: Lease | None, now: Instant) -> dict[str, object] | None:
    return lease_as_json(made, now, supposed=True) if known is None else lease_as_json(known, now)


def _host(host: Host, view: RequestView, calls_per_hour: float, now: Instant) -> dict[str, object]:
    return {
        "host_id": host.host_id,
        "volunteer_id": host.volunteer_id,
        "ncpus": host.ncpus,
        "flop_per_s": host.flop_per_s,
        "ram_bytes": host.ram_bytes,
        "disk_free_bytes": host.disk_free_bytes,
        "availability_fraction": host.cpu_availability_fraction,
        "platforms": list(host.platforms),
        "last_rpc_at": host.last_rpc_at,
        "silent_s": now - host.last_rpc_at,
        "calls_per_hour": round(calls_per_hour, 3),
        "in_progress": [
            {
                "instance_id": one.instance_id,
                "due_at": one.due_at,
                "est_runtime_s": one.est_runtime_s,
                "tight": one.tight,
            }
            for one in view.held
        ],
    }


def _standing(app_id: AppId, kind: ProcessorType, best: Best | Refusal, catalogue: Catalogue) -> dict[str, object]:
    shown: dict[str, object] = {"app": catalogue.apps[app_id].name, "processor_type": kind}
    if isinstance(best, Refusal):
        return {**shown, "refused": best.code.value, "why": best.detail}
    return {**shown, **_usable(best.for_gated)}


def _usable(usable: Usable) -> dict[str, object]:
    p, version = usable.percentile, usable.version
    return {
        "version": version.title,
        "app_version_id": version.app_version_id,
        "p": p.p,
        "p_because": p.because,
        "flop_per_s": usable.speed.flop_per_s,
        "speed_samples": round(usable.speed.samples, 3),
        "slack_factor": round(usable.speed.slack_factor, 3),
        "quota_left": usable.quota_left,
    }


def _chosen(one: Chosen, now: Instant, catalogue: Catalogue) -> dict[str, object]:
    given = one.assignment
    return {
        "instance_id": given.instance_id,
        "job_id": given.job_id,
        "batch_id": given.batch_id,
        "app": catalogue.apps[given.app_id].name,
        "app_version_id": given.app_version_id,
        "due_at": given.due_at,
        "due_in_s": given.due_at - now,
        "est_runtime_s": given.est_runtime_s,
        "tight": given.tight,
        "because": given.because,
    }


def _at_large(one: Refused, catalogue: Catalogue) -> dict[str, object]:
    app = catalogue.apps.get(one.app_id) if one.app_id is not None else None
    return {
        "app": app.name if app is not None else None,
        "processor_type": one.processor_type,
        "code": one.refusal.code.value,
        "why": one.refusal.detail,
    }


def _group(place: int, group: SlotGroup, explanation: HostExplanation, catalogue: Catalogue) -> dict[str, object]:
    looks = [look for look in explanation.found.steps if look.place == place]
    app = catalogue.apps.get(group.batch.app_id)
    return {
        "place": place + 1,
        "batch_id": group.batch.batch_id,
        "app": app.name if app is not None else None,
        "job_class_id": group.job_class.job_class_id,
        "urgent": group.urgent,
        "slots": explanation.slots[place],
        "given": sum(look.given for look in looks),
        "looks": [look_as_json(look) for look in looks],
    }


def look_as_json(look: TraceStep) -> dict[str, object]:
    """One look: the pass, what was given, and the sentence why not more."""
    refusal = look.refusal
    return {
        "processor_type": look.processor_type,
        "pass": look.stage.value,
        "given": look.given,
        "code": None if refusal is None else refusal.code.value,
        "why": (look.later or None) if refusal is None else refusal.detail,
        "passed_over": [{"code": code.value, "slots": count, "why": why} for code, count, why in look.passed_over],
    }
