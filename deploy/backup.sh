#!/usr/bin/env bash
# Backs up a running project: a consistent dump of its database, its keys, and its files.
#   backup.sh DATA_DIR TARGET_DIR [KEEP]     keeps the last KEEP dumps (14)
# TARGET_DIR/muster-DATE.dump  the database (pg_restore reads it)
# TARGET_DIR/keys/             the keys; without them clients reject the project's programs
# TARGET_DIR/files/            downloads and uploads; copied after the dump, so that every file it refers to is there
source "$(dirname "$0")/places.sh"
data=${1:?usage: backup.sh DATA_DIR TARGET_DIR [KEEP]}
target=${2:?usage: backup.sh DATA_DIR TARGET_DIR [KEEP]}
keep=${3:-14}
umask 077
mkdir -p "$target"
dump=$target/muster-$(date -u +%Y%m%dT%H%M%SZ).dump
trap 'rm -f "$dump.part"' EXIT
url=$(database_url "$data")
bin=$(postgres_bin "$url")
"$bin/pg_dump" --format=custom --no-owner --file="$dump.part" --dbname="$url"
mv "$dump.part" "$dump"
for part in keys files; do
  mkdir -p "$target/$part"
  cp --archive --update "$data/$part/." "$target/$part/"
done
cp "$data/project.toml" "$target/project.toml"
# The console warns when the last recorded backup is older than storage.backup_age_s.
"$bin/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$url" --command="
  INSERT INTO duty (name, done_at) VALUES ('backup', $(date +%s))
  ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at" || echo "the time of the backup was not recorded" >&2
find "$target" -maxdepth 1 -name 'muster-*.dump' | sort | head -n "-$keep" | xargs -r rm -f --
echo "$dump"
