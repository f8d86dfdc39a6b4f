#!/usr/bin/env bash
# Makes a Python environment with the readers of the files by which a run is watched.
#
#   tests/monitoring/environment.sh DIR       # then: ARBALEST_READERS=DIR make test
#
# Exit codes: 0 they are installed, 1 they cannot be installed, 2 usage, or DIR exists.
set -euo pipefail

READERS=(tensorboard==2.21.0 prometheus_client==0.26.0)

if [ $# -ne 1 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
if [ -e "$1" ]; then
  echo "$0: '$1' is there already; name a new directory" >&2
  exit 2
fi
python3 -m venv "$1"
if ! "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${READERS[@]}"; then
  echo "$0: the readers cannot be had here" >&2
  rm -rf -- "$1"
  exit 1
fi
