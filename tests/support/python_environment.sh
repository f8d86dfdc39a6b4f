#!/usr/bin/env bash
# Makes a Python environment for tests.
#
#   tests/support/python_environment.sh DIR PACKAGE==VERSION...
#
# Exit codes: 0 the packages are installed, 1 they cannot be installed, 2 usage, or DIR exists.
set -euo pipefail

if [ $# -lt 2 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
directory=$1
shift
if [ -e "$directory" ]; then
  echo "$0: '$directory' is there already; name a new directory" >&2
  exit 2
fi
python3 -m venv "$directory"
if ! "$directory/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; then
  echo "$0: these packages cannot be had here: $*" >&2
  rm -rf -- "$directory"
  exit 1
fi
