#!/usr/bin/env bash
# Checks the locked versions for known vulnerabilities; exits with 1 if there are any.
#   audit.sh BIN     the folder of the virtual environment's programs
# Without a network it prints a note and exits with 0, so that offline builds do not fail.
set -euo pipefail
bin=${1:?usage: audit.sh BIN}
cd "$(dirname "$0")/.."
said=$(mktemp)
trap 'rm -f "$said"' EXIT

not_asked() {
  echo "audit: NOT DONE, $1; run \`make audit\` with network access" >&2
  exit 0
}

if [ ! -x "$bin/pip-audit" ]; then
  "$bin/pip" install --quiet --disable-pip-version-check --retries 1 --require-hashes -r requirements-audit.lock \
    >"$said" 2>&1 || not_asked "pip-audit cannot be installed: $(tail -n 1 "$said" | cut -c1-160)"
fi
for lock in requirements.lock requirements-docs.lock requirements-audit.lock; do
  if "$bin/pip-audit" --requirement "$lock" --require-hashes --disable-pip --progress-spinner off --timeout 15 \
    >"$said" 2>&1; then
    echo "audit: $lock: no known vulnerabilities"
  elif grep -q '^Found [0-9]* known vulnerabilit' "$said"; then
    cat "$said" >&2
    echo "audit: $lock: raise the versions named above and regenerate the lock file (CONTRIBUTING.md)" >&2
    exit 1
  else
    not_asked "the vulnerability index does not answer: $(tail -n 1 "$said" | cut -c1-160)"
  fi
done
