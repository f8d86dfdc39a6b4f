#!/usr/bin/env bash
# Installs the Debian packages of packages.txt and of the arguments that are missing. Does nothing if none is missing.
# Otherwise it needs root or sudo. Without either, it prints the command to run and exits 2.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf 'bootstrap: %s\n' "$*"; }

installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Prints the missing packages of packages.txt and of "$@", one per line.
missing_packages() {
  { cat "$here/packages.txt"; printf '%s\n' "$@"; } | while read -r package program _; do
    case $package in '' | '#'*) continue ;; esac
    if [ -n "$program" ] && command -v "$program" >/dev/null; then continue; fi
    installed "$package" || printf '%s\n' "$package"
  done
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  say "no system with Debian packages: make sure that what $here/packages.txt lists is installed, in your system's names"
  exit 0
fi

mapfile -t missing < <(missing_packages "$@")
[ ${#missing[@]} -gt 0 ] || exit 0

become_root=()
if [ "$(id -u)" -ne 0 ]; then
  # Without a terminal, sudo cannot ask for a password.
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    become_root=(sudo)
  else
    {
      say "these packages are missing, and installing them needs root. Run this once, as root:"
      printf '  apt-get update && apt-get install --yes --no-install-recommends %s\n' "${missing[*]}"
    } >&2
    exit 2
  fi
fi

# Shows the output of a command only if it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || { status=$?; cat "$log" >&2; }
  rm -f "$log"
  return "$status"
}
apt() { quietly "${become_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --yes --no-install-recommends "$@"; }

say "installing with apt-get (about a minute): ${missing[*]}"
apt update || say "the package lists could not be refreshed; going on with those that are here"
apt install "${missing[@]}"
say "done"
