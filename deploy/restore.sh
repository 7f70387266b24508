#!/usr/bin/env bash
# Restores a backup made by backup.sh into a new project: an empty directory and an empty database.
#   restore.sh BACKUP_DIR DATA_DIR [DUMP]     the newest dump by default; MUSTER_DATABASE_URL names a PostgreSQL
source "$(dirname "$0")/places.sh"
backup=${1:?usage: restore.sh BACKUP_DIR DATA_DIR [DUMP]}
data=${2:?usage: restore.sh BACKUP_DIR DATA_DIR [DUMP]}
dump=${3:-$(find "$backup" -maxdepth 1 -name 'muster-*.dump' | sort | tail -n 1)}
[ -n "$dump" ] || { echo "no dump in $backup" >&2; exit 1; }
[ ! -e "$data/project.toml" ] || { echo "there is a project in $data: restore into an empty folder" >&2; exit 1; }
umask 077
mkdir -p "$data"
cp --archive "$backup/keys" "$backup/files" "$data/"
cp "$backup/project.toml" "$data/project.toml"
url=$(database_url "$data")
bin=$(postgres_bin "$url")
"$bin/pg_restore" --exit-on-error --single-transaction --no-owner --dbname="$url" "$dump"
echo "restored $dump; now: muster migrate --data-dir $data"
