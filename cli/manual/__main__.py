"""`python -m cli.manual [FOLDER]`: writes the generated files of docs/reference."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from cli.manual.pages import PAGES, schema_sql
from domain.units import Instant
from store import embedded
from store.migrate import migrate


def _schema_sql() -> str:
    """Return the schema of a new embedded database."""
    with tempfile.TemporaryDirectory() as folder:
        server = Path(folder, "postgres")
        try:
            dsn = embedded.ensure_running(server)
            asyncio.run(migrate(dsn, now=Instant(0.0)))
            return schema_sql(dsn)
        finally:
            embedded.stop(server)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")
    for name, page in {**PAGES, "schema.sql": _schema_sql}.items():
        (target / name).write_text(page(), encoding="utf-8")
        print(target / name)
