#!/usr/bin/env bash
# Runs commands in parallel. Prints the last one's output at once and the others' after it has ended.
# Exits with 1 if any of them failed, and names it.
#   tests/side_by_side.sh 'make e2e' 'make lint main'
set -um -o pipefail
folder=$(mktemp -d)
groups=()
stop() {
  for group in "${groups[@]}"; do kill -TERM -- "-$group" 2>/dev/null; done
  wait
  rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM
for ((i = 1; i < $#; i++)); do
  bash -c "${!i}" >"$folder/$i" 2>&1 </dev/null &
  groups+=($!)
done
bash -c "${!#}" </dev/null & # in the background too: a signal is heeded at once while bash waits
groups+=($!)
failed=()
wait "$!" || failed+=("${!#}")
for ((i = 1; i < $#; i++)); do
  wait "${groups[i - 1]}" || failed+=("${!i}")
  printf '\n---- %s\n' "${!i}"
  cat "$folder/$i"
done
[ ${#failed[@]} -eq 0 ] && exit 0
printf 'failed: %s\n' "${failed[@]}" >&2
exit 1
