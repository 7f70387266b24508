#!/usr/bin/env bash
# Runs a command with MUSTER_TEST_DATABASE_URL naming a throw-away cluster of the system's PostgreSQL.
#   tests/debian_postgres.sh .venv/bin/pytest tests/conformance
set -euo pipefail
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || { echo "no PostgreSQL under /usr/lib/postgresql: run tests/install_system.sh" >&2; exit 1; }
# In memory if there is room: on a disk, creating and dropping databases takes most of the time.
room=/tmp
[ -w /dev/shm ] && [ "$(df --output=avail -k /dev/shm | tail -n 1)" -ge 4194304 ] && room=/dev/shm
folder=$(mktemp -d "$room/muster-postgres-XXXXXX")
as_owner() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
stop() {
  as_owner "$bin/pg_ctl" -D "$folder/data" -m immediate -w stop >/dev/null 2>&1 || true
  rm -rf "$folder"
}
trap stop EXIT
[ "$(id -u)" != 0 ] || chown postgres "$folder"
as_owner "$bin/initdb" -D "$folder/data" -U postgres --auth=trust --encoding=utf8 --locale=C >/dev/null
# fsync and full_page_writes off: a test cluster is never recovered.
as_owner "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w \
  -o "-h '' -k $folder -c fsync=off -c full_page_writes=off -c max_connections=200" start >/dev/null
echo "PostgreSQL: $("$bin/postgres" --version)"
MUSTER_TEST_DATABASE_URL="postgresql://postgres@/postgres?host=$folder" "$@"
