"""The page of all settings, with units, defaults and ranges. Pure."""

from __future__ import annotations

from itertools import groupby

from cli.manual.words import MADE, cell, code, table
from console.settings_pages import spans_of, unit_of
from domain.settings import Settings, meaning_of

_HEAD = f"""\
# Settings

{MADE.format(source="`domain/settings.py` and the files beside it")}

`muster setting set KEY VALUE --why …` changes one, `muster setting reset KEY` takes the default back, and running
services follow within seconds. What happens when a threshold is higher or lower is in
[operating](../operating.md#thresholds-who-may-have-urgent-jobs).
"""


def settings_page() -> str:
    """The whole page."""
    settings = Settings()
    rows = settings.as_mapping()
    spans = spans_of(settings)
    parts = [_HEAD]
    for section, keys in groupby(rows, key=lambda key: key.partition(".")[0]):
        lines = [
            [code(key), unit_of(key, rows[key]), code(plain(rows[key])), spans.get(key, ""), cell(meaning_of(key))]
            for key in keys
        ]
        parts += [f"## {section}\n", table(["key", "unit", "default", "range", "meaning"], lines) + "\n"]
    return "\n".join(parts)


def plain(value: object) -> str:
    """A default as one would type it.

    >>> plain(True), plain(3600.0), plain(0.05), plain("fifo"), plain("")
    ('true', '3600', '0.05', 'fifo', '')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)
