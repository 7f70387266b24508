"""Words errors for forms: by the label of the field instead of its name in the API. Marks code and settings. Pure."""

from __future__ import annotations

import re

from markupsafe import Markup

from domain.errors import InvalidInputError, MusterError
from domain.settings import Settings

LABELS = {  # field of a form or of the API -> its label in forms
    "abort": "A ban aborts jobs in progress",
    "batch": "Batch",
    "count": "Jobs",
    "deadline": "Deadline (UTC)",
    "days": "Days until it expires",
    "deadline_at": "New deadline (UTC)",
    "deadline_s": "Deadline",
    "delay_bound_h": "Delay bound (h)",
    "delay_bound_s": "Delay bound",
    "disk_bytes": "Disk",
    "disk_mb": "Disk (MB)",
    "fpops_est": "Size",
    "gflop": "Size (Gflop)",
    "granted_su": "Service units per period",
    "hard": "Hard limit",
    "max_jobs": "Jobs in progress per host",
    "memory_bytes": "Memory",
    "memory_mb": "Memory (MB)",
    "minutes": "At most one message per",
    "new_name": "Name",
    "output_mb": "Maximum output size (MB)",
    "parent": "Below the account",
    "period_days": "Length of a period (days)",
    "period_s": "Length of a period",
    "qos": "Quality of service",
    "soft": "Soft limit",
    "target": "What",
    "why": "Reason",
}


def label_of(field: str) -> str:
    """Return the label of a field.

    >>> label_of("jobs.fpops_est"), label_of("user_priority"), label_of("max_jobs")
    ('Size', 'User priority', 'Jobs in progress per host')
    """
    name = field.rpartition(".")[2]
    return LABELS.get(name) or (name[:1].upper() + name[1:]).replace("_", " ")


def with_code(text: str) -> Markup:
    """Return a text with the parts between backticks as code.

    >>> with_code("Paused: `muster resume`.")
    Markup('Paused: <code>muster resume</code>.')
    """
    parts = enumerate(text.split("`"))
    return Markup().join(Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in parts)


SETTING = re.compile(r"\b(?:" + "|".join(map(re.escape, Settings().as_mapping())) + r")\b(?!\.?\w)")


def with_settings(text: str, root: str) -> Markup:
    """Return a text in which each setting links to its page below the console's root.

    >>> with_settings("at most 50 % (scheduler.urgent_share_fraction)", "/c").partition("(")[2]
    Markup('<a href="/c/settings/scheduler.urgent_share_fraction">scheduler.urgent_share_fraction</a>)')
    """
    said, at = Markup(), 0
    for found in SETTING.finditer(text):
        link = Markup('<a href="{}/settings/{}">{}</a>').format(root, found[0], found[0])
        said, at = said + text[at : found.start()] + link, found.end()
    return said + text[at:]


def at_field(error: InvalidInputError) -> str:
    """Return what is wrong with a field, to be shown below it.

    >>> at_field(InvalidInputError("deadline", "a date and time", ""))
    'required: a date and time'
    >>> at_field(InvalidInputError("count", "a whole number from 1 to 9", "x"))
    "expected a whole number from 1 to 9, got 'x'"
    >>> at_field(InvalidInputError("soft", "at most the hard limit of 2", 5.0))
    'expected at most the hard limit of 2, got 5'
    """
    if error.choose:
        return f"choose {error.expected}"
    if error.got in ("", None):
        return f"required: {error.expected}"
    got = f"{error.got:.12g}" if isinstance(error.got, float) else repr(error.got)
    return f"expected {error.expected}, got {got:.100}"


def in_form(error: MusterError) -> str:
    """Return an error as a sentence of a page with a form.

    >>> in_form(InvalidInputError("deadline", "a date and time", ""))
    'Deadline (UTC) is required: a date and time'
    >>> in_form(InvalidInputError("batch", "at least one batch", "", choose=True))
    'Choose at least one batch'
    >>> in_form(InvalidInputError("jobs.count", "a whole number from 1 to 9", 0))
    'Jobs: expected a whole number from 1 to 9, got 0'
    """
    if not isinstance(error, InvalidInputError):
        return str(error).rstrip(".")
    if error.choose:
        return f"Choose {error.expected}"
    joint = " is " if error.got in ("", None) else ": "
    return f"{label_of(error.field)}{joint}{at_field(error)}"
