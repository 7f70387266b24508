"""Cases of priorities as sums, and of single measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.units import HOUR_S, Seconds
from priority.charging import service_units
from priority.emulate import target_of
from priority.measures import expansion_factor, processor_equivalents
from priority.standings import delta
from tests.cases.comparing import Within
from tests.cases.reference import flux, maui, slurm
from tests.cases.reference.maui import alike, outstanding_proc_s, weighted_points, window_percents

Inputs = Mapping[str, Any]

WHOLE_NUMBERS = 1.0  # printed parts are rounded, and so is their sum
PRINTED_WINDOWS = 1.4  # percentage points: the guide truncates some figures, and one does not follow from its formula


def flux_priority(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    return {
        "priority": {
            job["id"]: flux.priority(
                fairshare=job["fairshare"],
                queue=job.get("queue", 0.0),
                bank=job.get("bank", 0.0),
                urgency=job.get("urgency", flux.NEUTRAL_URGENCY),
                weights=job.get("weights", inputs.get("weights", {})),
            )
            for job in inputs["jobs"]
        }
    }


def maui_fs_priority(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    relative = str(inputs.get("fspolicy", "")).endswith("%")
    terms = [
        maui.FairShareTerm(one["cred"], one["weight"], one["usage"], target_of(one.get("target"), one.get("mode")))
        for one in inputs["creds"]
    ]
    return {
        "deltas": {one.name: delta(one.target, one.usage, relative=relative) for one in terms},
        "priority": maui.fair_share_points(terms, weight=inputs["fsweight"], relative=relative),
    }


def maui_params(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    answers: dict[str, Any] = {
        "queuetime_points": {
            one["id"]: weighted_points(one["queued_min"], weight=one["weight"], cap=one.get("cap"))
            for one in inputs.get("queuetime", [])
        },
        "effective_xf_weight": [
            maui.effective_weight(one["xfactorweight"], one.get("qos_extra", 0.0)) for one in inputs.get("qos_xf", [])
        ],
    }
    if "pe" in inputs:
        weights = inputs["pe"]
        answers["points_per_pe"] = weighted_points(
            1.0, weight=weights["peweight"], component_weight=weights["resweight"]
        )
    return answers


def maui_misc(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    answers: dict[str, Any] = {}
    if "decay_table" in inputs:
        table = inputs["decay_table"]
        rows = [window_percents(factor, table["windows"]) for factor in table["factors"]]
        answers["decay_percent"] = Within(rows, PRINTED_WINDOWS)
    if "window_file" in inputs:
        answers["window_total"] = maui.file_total(inputs["window_file"])
    if "outstanding" in inputs:
        jobs = [(job["procs"], Seconds(job["remaining_h"] * HOUR_S)) for job in inputs["outstanding"]]
        answers["outstanding_proc_seconds"] = outstanding_proc_s(jobs)
    if "nodeset" in inputs:
        nodeset = inputs["nodeset"]
        answers["nodeset_allowed"] = [alike(mix, nodeset["tolerance"]) for mix in nodeset["mixes"]]
    return answers


def mdiag_p(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    priority: dict[str, Any] = {}
    percent: dict[str, Any] = {}
    for table in inputs["tables"]:
        weights = table["component_weights"]
        for row in table["rows"]:
            found = maui.priority_row(weights, {name: row.get(name, []) for name in ("Cred", "FS", "Serv")})
            priority[row["job"]] = Within(found.priority, WHOLE_NUMBERS)
            percent[row["job"]] = list(found.percent)
    return {"priority": priority, "percent": percent}


def diagnose_p(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    weights = inputs["weights"]
    return {
        "resource_percent": {
            job["job"]: maui.resource_percent(
                priority=job["priority"],
                procs=job["procs"],
                resource_weight=weights["resource"],
                proc_weight=weights["proc"],
            )
            for job in inputs["jobs"]
        }
    }


def slurm_misc(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    answers: dict[str, Any] = {}
    if "partition" in inputs:
        priorities, weight = inputs["partition"]["priority"], inputs["partition"]["weight"]
        answers["normalised"] = slurm.partition_points(priorities, weight)
        answers["raw"] = slurm.partition_points(priorities, weight, normalise=False)
    weights = inputs.get("tres_weights", {})
    for name in ("sum", "max"):
        jobs = [{"cpu": cpus, "mem_gib": memory} for cpus, memory in inputs.get(f"jobs_{name}", [])]
        answers[f"billed_{name}"] = [slurm.billed(job, weights, largest_only=name == "max") for job in jobs]
    return answers


def pe(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    return {"pe": {job["id"]: processor_equivalents(job["request"], job["configured"]) for job in inputs["jobs"]}}


def xfactor(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    least_s = inputs.get("xfminwclimit_h", 0.0) * HOUR_S
    return {
        "xfactor": [
            [
                expansion_factor(waited_s=waited * HOUR_S, runtime_s=limit * HOUR_S, least_runtime_s=least_s)
                for waited in inputs["effective_queue_time_h"]
            ]
            for limit in inputs["wallclock_limit_h"]
        ]
    }


def nci_su(inputs: Inputs, _expected: Inputs) -> Mapping[str, Any]:
    return {
        "su": {
            job["id"]: service_units(
                rate=job["rate"],
                cores=job["ncpus"],
                memory=job.get("mem_gib", 0.0),
                memory_per_core=job.get("mem_per_cpu_gib"),
                wall_h=job["wall_h"],
            )
            for job in inputs["jobs"]
        }
    }
