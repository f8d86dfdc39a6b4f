#!/usr/bin/env bash
# Makes a Python environment with the readers of the files by which a run is watched.
#
#   tests/monitoring/environment.sh DIR       # then: ARBALEST_READERS=DIR make test
#
# Exit codes: 0 they are installed, 1 they cannot be installed, 2 usage, or DIR exists.
set -euo pipefail

if [ $# -ne 1 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$here/../support/python_environment.sh" "$1" tensorboard==2.21.0 prometheus_client==0.26.0
