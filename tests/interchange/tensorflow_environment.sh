#!/usr/bin/env bash
# Makes a Python environment with TensorFlow and tf2onnx, whose models a test imports. It takes 1.6 GB.
#
#   tests/interchange/tensorflow_environment.sh DIR      # then: ARBALEST_TENSORFLOW=DIR make test
#
# Exit codes: 0 they are installed, 1 they cannot be installed, 2 usage, or DIR exists.
set -euo pipefail

if [ $# -ne 1 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$here/../support/python_environment.sh" "$1" numpy==2.4.6 onnx==1.23.2 tensorflow-cpu==2.21.0 tf2onnx==1.17.0
