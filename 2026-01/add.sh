#!/bin/sh
# Adds the application and its version, $1: 100 is 1.00. Run it in this folder, with MUSTER_DATA_DIR set.
set -e
version=${1:-100}
muster app list --json | grep -q '"name":"2026-01"' || muster app add 2026-01
muster app version add 2026-01 --platform x86_64-pc-linux-gnu --version "$version" --main program.sh
