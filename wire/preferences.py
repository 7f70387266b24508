"""Encodes and decodes a volunteer's project preferences. Pure. docs/protocol.md.

The stock client stores the element in the project's account file if its text has changed, stops requesting work for
disabled processors, and passes `project_specific` to apps. `mod_time` changes the text with every change of the
preferences, and shows which of two copies is newer.
"""

from __future__ import annotations

import math
from functools import lru_cache

from domain.units import Instant
from wire import text
from wire.messages import ProjectPreferences
from wire.scan import Tag, spans

MOST_RENDERED = 2048
GPU_TAGS = ("no_cuda", "no_ati", "no_intel_gpu")  # one per GPU type that clients know


@lru_cache(maxsize=MOST_RENDERED)
def render_preferences(wanted: ProjectPreferences) -> str:
    """Render the `<project_preferences>` of a reply.

    >>> print(render_preferences(ProjectPreferences(Instant(1.8e9), no_cpu=True, app_ids=(2,))), end="")
    <project_preferences>
    <mod_time>1800000000</mod_time>
    <no_cpu>1</no_cpu>
    <project_specific>
    <apps_selected>
    <app_id>2</app_id>
    </apps_selected>
    </project_specific>
    </project_preferences>
    """
    chosen = "".join([f"<app_id>{app_id}</app_id>\n" for app_id in wanted.app_ids])
    lines = [
        f"<project_preferences>\n<mod_time>{math.floor(wanted.modified_at)}</mod_time>\n",
        "<no_cpu>1</no_cpu>\n" if wanted.no_cpu else "",
        *[f"<{tag}>1</{tag}>\n" for tag in GPU_TAGS if wanted.no_gpu],
        "<project_specific>\n",
        f"<apps_selected>\n{chosen}</apps_selected>\n" if chosen else "",
        "<allow_beta_work>1</allow_beta_work>\n" if wanted.beta else "",
        f"<max_jobs>{wanted.max_jobs}</max_jobs>\n" if wanted.max_jobs else "",
        f"<max_cpus>{wanted.max_cpus}</max_cpus>\n" if wanted.max_cpus else "",
        "</project_specific>\n</project_preferences>\n",
    ]
    return "".join(lines)


def read_preferences(reply: bytes) -> ProjectPreferences | None:
    """Read the preferences of a reply; None if it has none. Raises ProtocolError for an invalid number."""
    found = _first(reply, "project_preferences")
    if found is None:
        return None
    return ProjectPreferences(
        Instant(float(_whole(found, "mod_time"))),
        no_cpu=_whole(found, "no_cpu") != 0,
        no_gpu=all(_whole(found, tag) != 0 for tag in GPU_TAGS),
        beta=_whole(found, "allow_beta_work") != 0,
        max_jobs=_whole(found, "max_jobs"),
        max_cpus=_whole(found, "max_cpus"),
        app_ids=tuple(
            text.whole(found[start:end], "app_id") for start, end in spans(found, Tag("app_id"), 0, len(found))
        ),
    )


def _first(part: bytes, tag: str) -> bytes | None:
    return next((part[start:end] for start, end in spans(part, Tag(tag), 0, len(part))), None)


def _whole(part: bytes, tag: str) -> int:
    raw = _first(part, tag)
    return 0 if raw is None else text.whole(raw, tag)
