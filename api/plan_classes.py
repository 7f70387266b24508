"""Plan classes over the API: what kinds of app versions use and need of a host."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from administration.apps import plan_class_as_json, plan_class_of
from administration.ports import Applications
from api import shapes
from api.paging import Page, page_of_all
from api.table import Ask, Route
from domain.access import Right
from domain.bounds import BOUNDS

TAG = "applications"


def _within(name: str) -> msgspec.Meta:
    return msgspec.Meta(ge=BOUNDS[name].low, le=BOUNDS[name].high)


def _whole_within(name: str) -> msgspec.Meta:
    return msgspec.Meta(ge=int(BOUNDS[name].low), le=int(BOUNDS[name].high))


class PlanClassParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class PlanClassBody(msgspec.Struct, forbid_unknown_fields=True):
    """`gpu_type`: NVIDIA, ATI, intel_gpu or a type of your own; none: for CPUs."""

    ncpus: Annotated[float, _within("plan_class.ncpus")] = 1.0
    gpu_type: str | None = None
    gpu_count: Annotated[float, _within("gpu_count")] = 1.0
    min_gpu_ram_bytes: Annotated[float, _within("min_gpu_ram_bytes")] = 0.0
    min_driver_version: Annotated[int, _whole_within("min_driver_version")] = 0
    min_host_ncpus: Annotated[int, _whole_within("min_host_ncpus")] = 1
    min_host_ram_bytes: Annotated[float, _within("min_host_ram_bytes")] = 0.0
    os_pattern: str = ""
    cpu_speed_fraction: Annotated[float, _within("cpu_speed_fraction")] = 1.0
    gpu_speed_fraction: Annotated[float, _within("gpu_speed_fraction")] = 0.1


class PlanClassesApi:
    def __init__(self, applications: Applications) -> None:
        self._applications = applications

    def routes(self) -> list[Route[Any, Any]]:
        return [
            Route(
                "GET",
                "/plan-classes",
                "plan_classes",
                "Plan classes, by name.",
                self.list,
                TAG,
                shapes.PlanClassPage,
                Page,
            ),
            Route(
                "PUT",
                "/plan-classes/{name}",
                "set_plan_class",
                "Define or change a plan class.",
                self.set,
                TAG,
                shapes.PlanClassShown,
                PlanClassParams,
                body=PlanClassBody,
                right=Right.OPERATE,
            ),
        ]

    async def list(self, ask: Ask[Page, None]) -> object:
        classes = list((await self._applications.plan_classes()).values())
        return page_of_all(classes, ask.params, "plan_classes", lambda one: one.name, plan_class_as_json)

    async def set(self, ask: Ask[PlanClassParams, PlanClassBody]) -> object:
        new = plan_class_of({"name": ask.params.name, **msgspec.structs.asdict(ask.body)})
        await self._applications.put_plan_class(new)
        return plan_class_as_json(new)
