"""Plan classes over the API: what kinds of app versions use and need of a host."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from domain.access import Right
from operations.api import shapes
from operations.api.paging import Page, page_of_all
from operations.api.table import Ask, Route
from operations.apps import plan_class_as_json, plan_class_of
from operations.ports import Applications

TAG = "applications"
SOME = msgspec.Meta(gt=0.0, le=1e12)
NUMBER = msgspec.Meta(ge=0.0, le=1e18)


class PlanClassParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class PlanClassBody(msgspec.Struct, forbid_unknown_fields=True):
    """`gpu_type`: NVIDIA, ATI, intel_gpu or a type of your own; none: for CPUs."""

    ncpus: Annotated[float, msgspec.Meta(ge=0.0, le=1e6)] = 1.0
    gpu_type: str | None = None
    gpu_count: Annotated[float, msgspec.Meta(gt=0.0, le=1e6)] = 1.0
    min_gpu_ram_bytes: Annotated[float, NUMBER] = 0.0
    min_driver_version: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    min_host_ncpus: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    min_host_ram_bytes: Annotated[float, NUMBER] = 0.0
    os_pattern: str = ""
    cpu_speed_fraction: Annotated[float, SOME] = 1.0
    gpu_speed_fraction: Annotated[float, SOME] = 0.1


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
