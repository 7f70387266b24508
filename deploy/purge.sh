#!/usr/bin/env bash
# Purges the jobs of batches that ended more than MONTHS months ago.
#   purge.sh DATA_DIR MONTHS
source "$(dirname "$0")/places.sh"
data=${1:?usage: purge.sh DATA_DIR MONTHS}
months=${2:?usage: purge.sh DATA_DIR MONTHS}
before=$(date -u -d "$(date -u +%Y-%m-01) -$months months" +%Y-%m)
exec "$(dirname "$python")/muster" purge --data-dir "$data" --before "$before" --yes --json
