"""Which components and sub-components does a priority sum have, by Moab's names? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COMPONENTS = ("SERVICE", "TARGET", "CRED", "RESOURCE", "FS")


@dataclass(frozen=True, slots=True)
class SubComponent:
    component: str
    unit: str


SUBCOMPONENTS: Mapping[str, SubComponent] = {
    "QUEUETIME": SubComponent("SERVICE", "min"),
    "XFACTOR": SubComponent("SERVICE", "factor"),
    "DEADLINE": SubComponent("SERVICE", "of 1000"),
    "SPVIOLATION": SubComponent("SERVICE", "0 or 1"),
    "USERPRIO": SubComponent("SERVICE", "priority"),
    "BYPASS": SubComponent("SERVICE", "times"),
    "TARGETQUEUETIME": SubComponent("TARGET", "min^-2"),
    "TARGETXFACTOR": SubComponent("TARGET", "factor^-2"),
    "CLASS": SubComponent("CRED", "number"),
    "QOS": SubComponent("CRED", "level"),
    "PROC": SubComponent("RESOURCE", "cores"),
    "MEM": SubComponent("RESOURCE", "MiB"),
    "DISK": SubComponent("RESOURCE", "MiB"),
    "PE": SubComponent("RESOURCE", "PE"),
    "WALLTIME": SubComponent("RESOURCE", "s"),
    "FSUSER": SubComponent("FS", "points"),
    "FSGROUP": SubComponent("FS", "points"),
    "FSACCOUNT": SubComponent("FS", "points"),
    "FSQOS": SubComponent("FS", "points"),
    "WCACCURACY": SubComponent("FS", "fraction"),
}
