#!/usr/bin/env bash
# Installs the Debian packages that the tests need, if they are missing.
set -euo pipefail
missing=()
command -v boinc >/dev/null || missing+=(boinc-client)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || missing+=(haproxy)
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=(postgresql)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "the tests need: ${missing[*]} (install them, or run as root on Debian)" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# The tests start their own servers, so packages must not start theirs on installation.
if [ ! -e /usr/sbin/policy-rc.d ]; then
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
apt-get update -q
apt-get install -y -q --no-install-recommends "${missing[@]}"
